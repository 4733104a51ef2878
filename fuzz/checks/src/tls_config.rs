// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any text is a run of the TLS client or of the calibration, or one mistake.

use warifu_calibrate_bench::tls;
use warifu_tls_client::client;

/// Checks one input.
pub fn check(text: &str) {
    match client::Config::parse(text) {
        Ok(config) => assert!(config.request().starts_with(b"GET /")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = tls::Config::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any text is a configuration of the emulated link, or a control line to it, or one mistake.

use warifu_link::{Command, Config};

/// Checks one input.
pub fn check(text: &str) {
    if let Err(error) = Config::parse(text) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = Command::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

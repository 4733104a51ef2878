// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `warifu calibrate` times: TLS messages over memory, the ciphers of DDS, and
//! the calls of a signature.
//!
//! - [`tls`]: how long libssl takes to make and to process each TLS message on this machine.
//! - [`ciphers`]: how long those of DDS Security take.
//! - [`token`]: how long the calls of a signature take in any PKCS#11 module.
//!
//! `warifu-calibrate-bench` is driven by one JSON object on standard input, so that no PIN is
//! among the arguments.

pub mod ciphers;
mod error;
mod p256;
pub mod tls;
pub mod token;

pub use error::BenchError;

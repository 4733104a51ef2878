// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real OpenSSL behind the study's vocabulary.
//!
//! - [`Pki`] makes certificates whose sizes are a function of their type, level and role.
//! - [`record()`] gives the bytes of every message of a [`Variant`], as the system's OpenSSL
//!   makes them.
//! - The programs of this crate use the same pieces: `warifu-tls` makes a PKI and records,
//!   `warifu-tls-client` is the lab's client.
//!
//! The lab and calibration use this crate. The simulator does not: it depends on the
//! figures that come out of it, never on OpenSSL.

pub mod client;
pub mod context;
pub mod error;
pub mod evp;
mod ffi;
pub mod key_store;
pub mod party;
pub mod pki;
pub mod record;
#[cfg(test)]
mod testing;
pub mod variant;

pub use error::Error;
pub use ffi::{Content, Watch};
pub use party::{Exchange, From};
pub use pki::Pki;
pub use record::{MessageRecord, Recording, WriteRecord, record, record_exchange};
pub use variant::Variant;
pub use warifu_os::VERSION;

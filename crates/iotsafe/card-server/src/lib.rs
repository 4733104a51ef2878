// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interfaces of a virtual IoT SAFE card (`warifu-card`): a Unix socket ([`frame`]), a modem
//! with AT+CSIM on a pseudo-terminal ([`at`]), and PC/SC through vsmartcard's virtual reader
//! ([`vpcd`]).
//!
//! One process owns the card's state file ([`store`]) and carries out commands one at a time
//! ([`host`]); clients do not see one another's logical channels ([`channels`]).
//!
//! It is a development tool: the card's keys are in that file, not in a chip.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod at;
pub mod channels;
pub mod csr;
mod error;
pub mod faults;
pub mod frame;
pub mod host;
pub mod pcsc;
pub mod personalise;
pub mod pty;
pub mod serve;
pub mod store;
pub mod subject;
pub mod unix;
pub mod vpcd;
pub mod x509;

pub use error::ServerError;

use warifu_os::Log;

/// The server's messages on stderr.
pub const LOG: Log = Log::new("warifu-card-server");

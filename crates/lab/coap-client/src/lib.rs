// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's CoAP client: many GET requests in an open loop from one thread, each on a libcoap
//! context and a UDP port of its own.
//!
//! Requests begin at times of their own, whether or not earlier ones have been answered, so that a
//! slow one delays no other. A context is made before its clock starts; the session, and with it
//! the socket, is made after. Times are CLOCK_MONOTONIC. Retransmission (RFC 7252 section 4.2) and
//! block-wise transfer (RFC 7959) are libcoap's own.

mod config;
mod context;
mod engine;
mod error;
mod exchange;
mod ffi;
mod outcome;
mod record;

pub use config::Config;
pub use context::version;
pub use engine::run;
pub use error::Error;
pub use outcome::{Datagram, Direction, Outcome};
pub use warifu_open_loop::{Ended, Totals};

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protocol emulation: what happens on a connection and how many bytes it takes, without time.
//!
//! [`scenario`] turns a case into its [`Scenario`]: traces, one program per party, and when each
//! happens. Every application protocol has a module of its own, which turns a stack and a session
//! state into a [`Trace`] and the next session state. Lengths follow from the encoding rules of the
//! RFCs and the sizes of the certificates; the order of steps is that of the real programs, which
//! the module names. Nothing here reads a clock, a socket or a random generator.

pub mod coap;
pub mod dds;
mod error;
pub mod https;
mod order;
mod protocol;
mod render;
mod scenario;
mod tls;
mod trace;

pub use error::TraceError;
pub use order::{Stuck, in_order};
pub use protocol::{scenario, why_not_emulated};
pub use render::render;
pub use scenario::{Episode, Scenario};
pub use tls::{SessionState, Ticket};
pub use trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

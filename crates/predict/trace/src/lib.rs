// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protocol emulation: what happens on a connection and how many bytes it takes, without time.
//!
//! [`emulate`] turns a stack and a session state into a [`Trace`] and the next session state;
//! [`scenario`] does so for all connections of a case. Lengths follow from the encoding rules
//! of the RFCs and the sizes of the certificates; the order of steps is that of OpenSSL 3.0
//! and nginx 1.22. Nothing here reads a clock, a socket or a random generator.

mod der;
mod emulate;
mod error;
mod http;
mod messages;
mod messages_12;
mod messages_13;
mod order;
mod records;
mod render;
mod script;
mod session;
mod ticket;
mod tls12;
mod tls13;
mod trace;

pub use emulate::{Scenario, emulate, emulate_first, scenario};
pub use error::TraceError;
pub use http::{DEFAULT_HOST, request_text, response_head};
pub use order::{Stuck, in_order};
pub use render::render;
pub use session::{SessionState, Ticket};
pub use trace::{Bytes, Carrier, Mark, Message, MessageId, Party, Program, Resource, Step, Trace};

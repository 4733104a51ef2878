// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protocol emulation: what happens on a connection and how many bytes it takes, without time.
//!
//! [`emulate`] turns a stack and a session state into a [`Trace`] and the next session state.
//! Nothing here reads a clock, a socket or a random generator.

mod trace;

pub use trace::{Bytes, Carrier, Mark, Message, MessageId, Party, Program, Resource, Step, Trace};

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cuts the time inside libssl into messages.
//!
//! Sending, the message callback fires after the work. Receiving, it fires before: the state
//! machine's next turn, which the info callback reports, closes the interval. What is left when a
//! call returns belongs to the message that was at work. So the intervals tile the calls.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::clock::Reading;
use crate::ffi::{Content, Watch};
use crate::party::{Call, Observer};
use crate::record::message_name;

/// What an interval was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// Whether the message was made, not processed.
    pub sent: bool,
    /// IANA's name, or `ChangeCipherSpec`, `ApplicationData`, `Alert`.
    pub message: &'static str,
}

/// A part with its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub part: Part,
    pub time: Reading,
}

/// One end's intervals as they come.
#[derive(Default)]
pub(super) struct Intervals {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where the last interval ended.
    cut: Reading,
    /// A message whose processing is under way.
    receiving: Option<&'static str>,
    /// Whether the call under way has closed an interval.
    closed_any: bool,
    done: Vec<Interval>,
}

impl Intervals {
    pub(super) fn new() -> Arc<Intervals> {
        Arc::default()
    }

    /// Takes all intervals so far.
    pub(super) fn take(&self) -> Vec<Interval> {
        std::mem::take(&mut self.state().done)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, part: Part) {
        let now = Reading::now();
        self.done.push(Interval { part, time: now.since(self.cut) });
        self.cut = now;
        self.closed_any = true;
    }

    fn close_receiving(&mut self) {
        if let Some(message) = self.receiving.take() {
            self.close(Part { sent: false, message });
        }
    }

    /// Adds the time since the last cut to the last interval.
    fn extend_last(&mut self) {
        let now = Reading::now();
        if let Some(last) = self.done.last_mut() {
            let more = now.since(self.cut);
            last.time.wall_ns += more.wall_ns;
            last.time.cpu_ns += more.cpu_ns;
            self.cut = now;
        }
    }
}

impl Watch for Intervals {
    fn message(&self, sent: bool, content: Content, bytes: &[u8]) {
        let message = match content {
            Content::Handshake => message_name(bytes),
            Content::ChangeCipherSpec => "ChangeCipherSpec",
            Content::Alert => "Alert",
            Content::RecordHeader | Content::InnerType | Content::Other => return,
        };
        let mut state = self.state();
        state.close_receiving();
        if sent {
            state.close(Part { sent, message });
        } else {
            state.receiving = Some(message);
        }
    }

    fn turn(&self) {
        self.state().close_receiving();
    }
}

impl Observer for Arc<Intervals> {
    fn begin(&mut self, _call: Call) {
        let mut state = self.state();
        state.closed_any = false;
        state.cut = Reading::now();
    }

    fn end(&mut self, call: Call, took_data: bool) {
        let mut state = self.state();
        state.close_receiving();
        match call {
            Call::Write | Call::WriteEarly => {
                state.close(Part { sent: true, message: "ApplicationData" });
            }
            Call::Read | Call::ReadEarly if took_data => {
                state.close(Part { sent: false, message: "ApplicationData" });
            }
            // A read that finds nothing, or the tail of a handshake's call.
            _ if state.closed_any => state.extend_last(),
            _ => {}
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cuts the time inside libssl into messages.
//!
//! Sending, the message callback fires after the work. Receiving, it fires before: the header of
//! the next record, which comes before that record is opened, or the state machine's next turn,
//! which the info callback reports, closes the interval. What is left when a call returns belongs
//! to the message that was at work. A call that meets no message (a read that finds nothing) is
//! kept apart. So the intervals tile the calls.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use warifu_tls_client::party::{Call, Observer};
use warifu_tls_client::record::message_name;
use warifu_tls_client::{Content, Watch};

use super::reading::Reading;

/// What records of application data are called.
const APPLICATION_DATA: &str = "ApplicationData";

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
    /// Where the call under way began.
    begun: Reading,
    /// Whether it has closed an interval.
    closed_any: bool,
    done: Vec<Interval>,
    /// Time in calls that met no message.
    idle: Reading,
    /// Time in all calls.
    total: Reading,
}

/// All of one end's time inside libssl during a connection.
pub(super) struct Times {
    /// The messages' parts, in their order.
    pub parts: Vec<Interval>,
    /// Time in calls that met no message.
    pub idle: Reading,
    /// Time in all calls: the sum of the parts and `idle`.
    pub total: Reading,
}

impl Intervals {
    pub(super) fn new() -> Arc<Intervals> {
        Arc::default()
    }

    /// Takes all times so far.
    pub(super) fn take(&self) -> Times {
        let state = std::mem::take(&mut *self.state());
        Times { parts: state.done, idle: state.idle, total: state.total }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, now: Reading, part: Part) {
        self.done.push(Interval { part, time: now.since(self.cut) });
        self.cut = now;
        self.closed_any = true;
    }

    fn close_receiving(&mut self) {
        if let Some(message) = self.receiving.take() {
            self.close(Reading::now(), Part { sent: false, message });
        }
    }

    fn end(&mut self, call: Call, took_data: bool) {
        let now = Reading::now();
        self.total = self.total.plus(now.since(self.begun));
        let data = match call {
            Call::Write | Call::WriteEarly => Some(Part { sent: true, message: APPLICATION_DATA }),
            Call::Read | Call::ReadEarly if took_data => {
                Some(Part { sent: false, message: APPLICATION_DATA })
            }
            _ => None,
        };
        let receiving = self.receiving.take().map(|message| Part { sent: false, message });
        // The header of a record of application data has closed what was received before it.
        match (data.or(receiving), self.done.last_mut()) {
            (Some(part), _) => self.close(now, part),
            (None, Some(last)) if self.closed_any => {
                last.time = last.time.plus(now.since(self.cut));
            }
            (None, _) => self.idle = self.idle.plus(now.since(self.cut)),
        }
    }
}

impl Watch for Intervals {
    fn message(&self, sent: bool, content: Content, bytes: &[u8]) {
        let message = match content {
            Content::Handshake => message_name(bytes),
            Content::ChangeCipherSpec => "ChangeCipherSpec",
            Content::Alert => "Alert",
            Content::RecordHeader if !sent => return self.state().close_receiving(),
            Content::RecordHeader | Content::InnerType | Content::Other => return,
        };
        let mut state = self.state();
        state.close_receiving();
        if sent {
            state.close(Reading::now(), Part { sent, message });
        } else {
            state.receiving = Some(message);
        }
    }

    fn turn(&self) {
        self.state().close_receiving();
    }
}

impl Observer for &Intervals {
    fn begin(&mut self, _call: Call) {
        let mut state = self.state();
        state.closed_any = false;
        state.begun = Reading::now();
        state.cut = state.begun;
    }

    fn end(&mut self, call: Call, took_data: bool) {
        self.state().end(call, took_data);
    }
}

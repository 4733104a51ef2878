// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `timelines.json`: single connections of a prediction as they happened, for people to look at.
//!
//! A typical one of a case and one at its P99 are simulated once more with what happens written
//! down, since no distribution shows what a connection waits for.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::json_file::write_json;
use crate::seal::Sealed;

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "timelines.json";

/// The version of its format that is written.
pub const TIMELINES_VERSION: u32 = 1;

/// The connections of a prediction that were simulated once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timelines {
    /// [`TIMELINES_VERSION`] of the writer.
    pub version: u32,
    /// Which cases of the study have timelines, in words: `all 24 cases`.
    pub which: String,
    /// The timelines, case by case in the order of the study.
    pub timelines: Vec<Timeline>,
}

/// One connection. Times are from its first mark on, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Of which case.
    pub case_id: String,
    /// Its metric that the connection was chosen by.
    pub metric: String,
    /// The quantile that its value is: so large a part of all connections took no longer.
    pub quantile: f64,
    /// Which trial, from 0.
    pub trial: u64,
    /// Which of the trial's connections, from 0.
    pub connection: u32,
    /// The trial's seed.
    pub seed: u64,
    /// The metric's value.
    pub total_ns: u64,
    /// What the device passed on the way.
    pub marks: Vec<TimelineMark>,
    /// What each end did; beside that it waited.
    pub activities: Vec<TimelineActivity>,
    /// What was written.
    pub messages: Vec<TimelineMessage>,
    /// Every packet that was sent.
    pub packets: Vec<TimelinePacket>,
    /// Every timer that expired.
    pub timers: Vec<TimelineTimer>,
    /// Entries beyond the most that are stored of a timeline.
    pub left_out: u32,
}

/// Something that the device passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineMark {
    /// Its name.
    pub name: String,
    /// When.
    pub at_ns: u64,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineEnd {
    /// The device.
    Client,
    /// The server.
    Server,
}

/// What an activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineKind {
    /// Computing for the protocol.
    Compute,
    /// Operating system and event loop.
    System,
    /// The key store.
    KeyStore,
    /// Waiting for a processor or a key store that is busy with others.
    Queue,
    /// Waiting deliberately.
    Pause,
}

/// What an end did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineActivity {
    /// Which end.
    pub end: TimelineEnd,
    /// Of what kind.
    pub kind: TimelineKind,
    /// What: an operation's or a call's name.
    pub name: String,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// A message that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineMessage {
    /// By whom.
    pub end: TimelineEnd,
    /// What it is.
    pub label: String,
    /// Its length, B.
    pub bytes: u32,
    /// When it was handed to its carrier.
    pub at_ns: u64,
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelinePacket {
    /// By whom it was sent.
    pub end: TimelineEnd,
    /// When.
    pub at_ns: u64,
    /// When it arrived; null for one that was lost.
    pub arrives_ns: Option<u64>,
    /// Its length, B.
    pub bytes: u32,
    /// TCP's flags as tcpdump prints them, or `UDP`.
    pub flags: String,
    /// Whether its content had been sent before.
    pub again: bool,
    /// The messages that it has a part of: the first, and the first that it has none of.
    pub messages: (u32, u32),
}

/// A timer that expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineTimer {
    /// At which end.
    pub end: TimelineEnd,
    /// When.
    pub at_ns: u64,
    /// Which.
    pub kind: TimelineTimerKind,
}

/// The timers of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineTimerKind {
    /// To send again what no answer came to, or to ask for one.
    Retransmit,
    /// To acknowledge what came.
    DelayedAck,
}

impl Timelines {
    /// Writes them as `folder/timelines.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<Sealed, ResultsError> {
        write_json(&folder.join(FILE_NAME), self)
    }
}

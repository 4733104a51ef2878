// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one trial gives.

use warifu_model::{Counter, Definition, Mark, Metric, Stage};

/// What one trial gives, connection by connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// For each instance of the case's scenario, one for each of its episodes.
    pub connections: Vec<ConnectionOutcome>,
}

/// What one connection gives. Times are from the beginning of the trial on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOutcome {
    /// When the device's program passed each mark, in the order of [`Mark::ALL`].
    pub marks: [u64; Mark::COUNT],
    /// Where the time from the first mark to the last went, in the order of [`Stage::ALL`]; their
    /// sum is that time.
    pub stages: [u64; Stage::ALL.len()],
    /// What had been counted since the first mark, at each mark that a metric of the case needs it
    /// for, in the order of [`Mark::ALL`] and of [`Counter`].
    pub counters: [[u64; Counter::COUNT]; Mark::COUNT],
    /// Whether the connection came to nothing; the other fields then mean nothing.
    pub failed: bool,
}

impl ConnectionOutcome {
    /// One metric of a connection that did not fail, in the metric's unit.
    pub fn value(&self, metric: Metric) -> u64 {
        match metric.definition() {
            Definition::Between(from, until) => {
                self.marks[until as usize].saturating_sub(self.marks[from as usize])
            }
            Definition::Until(counter, until) => self.counters[until as usize][counter as usize],
            Definition::Failed => u64::from(self.failed),
        }
    }
}

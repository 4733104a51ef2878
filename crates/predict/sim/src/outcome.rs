// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one trial gives.

use warifu_model::{Counter, Definition, Mark, Metric, Stage};

/// What one trial gives, connection by connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// For each instance of the case's scenario, one for each of its episodes.
    pub connections: Vec<ConnectionOutcome>,
}

impl Outcome {
    /// One metric of all connections together, in the metric's unit; `None` where one of them
    /// failed, but for the metric that says so.
    pub fn value(&self, metric: Metric) -> Option<u64> {
        let failed = self.connections.iter().any(|connection| connection.failed);
        let marks = |mark: Mark| self.connections.iter().map(move |of| of.marks[mark as usize]);
        match metric.definition() {
            Definition::Failed => Some(u64::from(failed)),
            Definition::Seen => None,
            _ if failed => None,
            Definition::Between(from, until) => {
                Some(marks(until).max()?.saturating_sub(marks(from).min()?))
            }
            Definition::Until(..) => {
                Some(self.connections.iter().map(|connection| connection.value(metric)).sum())
            }
        }
    }
}

/// What one connection gives. Times are from the beginning of the trial on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOutcome {
    /// When the device's program passed each mark, in the order of [`Mark::ALL`].
    pub marks: [u64; Mark::COUNT],
    /// Where the time from the first mark to [`Mark::FirstResponse`] went, in the order of
    /// [`Stage::ALL`]; their sum is that time.
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
            // Nobody asks: the runner has no column of what nothing predicts.
            Definition::Seen => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_scenario() {
        let connection = |start, response, bytes| {
            let mut of = ConnectionOutcome::default();
            of.marks[Mark::Start as usize] = start;
            of.marks[Mark::FirstResponse as usize] = response;
            of.counters[Mark::FirstResponse as usize][Counter::PacketBytes as usize] = bytes;
            of
        };
        let mut outcome =
            Outcome { connections: vec![connection(5, 30, 100), connection(2, 20, 40)] };
        assert_eq!(outcome.value(Metric::ScenarioDuration), Some(28));
        assert_eq!(outcome.value(Metric::ScenarioBytesLink), Some(140));
        assert_eq!(outcome.value(Metric::ScenarioFailed), Some(0));
        outcome.connections[1].failed = true;
        assert_eq!(outcome.value(Metric::ScenarioDuration), None);
        assert_eq!(outcome.value(Metric::ScenarioFailed), Some(1));
    }
}

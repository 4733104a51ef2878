// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run did so far.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use warifu_os::clock::process_cpu_time;

use crate::nanos;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every trial has ended.
    Done,
    /// It was asked to stop; trials under way are not reported.
    Stopped,
}

/// What a run did, besides its outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Trials reported.
    pub reported: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// The latest beginning of a trial after its time, ns.
    pub latest_ns: u64,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
    /// Processor time of this process since then, ns. Near `elapsed_ns`, the client itself was
    /// the bottleneck, and the rate has to come down.
    pub cpu_ns: u64,
}

impl Totals {
    /// Counts a trial that has ended.
    pub fn count(&mut self, failed: bool) {
        self.reported += 1;
        self.failed += u32::from(failed);
    }

    /// Notes that a trial began so much after its time; returns ns.
    pub fn note_late(&mut self, late: Duration) -> u64 {
        let late_ns = nanos(late);
        self.latest_ns = self.latest_ns.max(late_ns);
        late_ns
    }
}

impl Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} failed, begun at most {:.3} ms late, {:.0} % of a processor used",
            self.failed,
            self.latest_ns as f64 / 1e6,
            100.0 * self.cpu_ns as f64 / self.elapsed_ns.max(1) as f64
        )
    }
}

/// Keeps the times of [`Totals`], and reports them now and then.
#[derive(Debug)]
pub struct Meter {
    begun: Instant,
    cpu_before_ns: u64,
    reported: Instant,
}

impl Meter {
    /// Begins now.
    #[must_use]
    pub fn start() -> Meter {
        let begun = Instant::now();
        Meter { begun, cpu_before_ns: process_cpu_time().0, reported: begun }
    }

    /// When it began.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Updates the times, and reports the totals if a second has passed since it last did.
    pub fn update(&mut self, totals: &mut Totals, progress: &mut dyn FnMut(Totals)) {
        totals.elapsed_ns = nanos(self.begun.elapsed());
        totals.cpu_ns = process_cpu_time().0 - self.cpu_before_ns;
        if self.reported.elapsed() >= REPORT_EVERY {
            progress(*totals);
            self.reported = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_as_text() {
        let mut totals = Totals { elapsed_ns: 4_000, cpu_ns: 1_000, ..Totals::default() };
        totals.count(false);
        totals.count(true);
        assert_eq!(totals.note_late(Duration::from_micros(1_250)), 1_250_000);
        totals.note_late(Duration::from_micros(3));
        assert_eq!(
            totals.to_string(),
            "1 failed, begun at most 1.250 ms late, 25 % of a processor used"
        );
        assert_eq!(totals.reported, 2);
    }

    #[test]
    fn meter_reports_once_a_second() {
        let mut meter = Meter::start();
        let (mut totals, mut reports) = (Totals::default(), 0);
        meter.update(&mut totals, &mut |_| reports += 1);
        meter.reported -= REPORT_EVERY;
        meter.update(&mut totals, &mut |_| reports += 1);
        meter.update(&mut totals, &mut |_| reports += 1);
        assert_eq!(reports, 1);
        assert!(totals.elapsed_ns > 0);
    }
}

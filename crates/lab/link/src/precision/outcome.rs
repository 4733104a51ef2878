// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the precision measurement found, as a table and as JSON.

use serde::Serialize;
use std::fmt::Write;
use warifu_link::Report;
use warifu_link::report::{Quantiles, Scheduler};

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    kernel: String,
    processors: usize,
    seed: u64,
    scheduler: Scheduler,
    /// Processors that were kept awake.
    kept_awake: Vec<usize>,
    checks: Vec<Check>,
    program_rtt_ms: Vec<ProgramRtt>,
    forward_overhead_us: Vec<Overhead>,
    windows: Vec<Window>,
}

/// One figure with the bounds that it must keep.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// Of `expected`, `measured`, `low` and `high`.
    pub unit: &'static str,
    /// Count of samples.
    pub n: u64,
    /// The fewest that pass: what few are left of may be the best of them.
    pub n_min: u64,
    /// The nominal value.
    pub expected: f64,
    /// The value found.
    pub measured: f64,
    /// The least that passes.
    pub low: f64,
    /// The most that passes; absent for a bare minimum.
    pub high: Option<f64>,
}

/// Round trips as an ordinary program sees them, two programs' wake-ups included; told without
/// judgement.
#[derive(Debug, Serialize)]
struct ProgramRtt {
    nominal: f64,
    n: u64,
    p50: f64,
    p99: f64,
}

/// One-way latency at no delay: half a round trip of a 64-byte UDP payload, the programs' own
/// system calls and wake-ups included.
#[derive(Debug, Serialize)]
pub struct Overhead {
    /// `link` or `loopback` (the same programs without the link).
    pub over: &'static str,
    /// `idle` (one packet every 20 ms) or `busy` (the next as soon as the last is back).
    pub load: &'static str,
    /// Count of round trips.
    pub n: u64,
    /// Minimum, in microseconds.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

/// The link's report on one measurement, in short.
#[derive(Debug, Serialize)]
struct Window {
    what: String,
    accepted: bool,
    rejected_because: Vec<String>,
    lateness_a_to_b_us: Quantiles,
    lateness_b_to_a_us: Quantiles,
    late_fraction: f64,
    late_fraction_max: f64,
    spun_us: f64,
    run_queue_wait_us: Option<f64>,
    steal_ms: Option<f64>,
}

impl Check {
    /// Whether the value is within its bounds, and of samples enough.
    pub fn passed(&self) -> bool {
        self.n >= self.n_min
            && self.measured >= self.low
            && self.high.is_none_or(|high| self.measured <= high)
    }

    fn verdict(&self) -> String {
        if self.n < self.n_min {
            format!("FAIL: fewer than {} samples", self.n_min)
        } else {
            if self.passed() { "pass" } else { "FAIL" }.to_owned()
        }
    }
}

impl Overhead {
    /// Of round trips, in ascending nanoseconds.
    pub fn of(over: &'static str, load: &'static str, round_trips_ns: &[u64]) -> Overhead {
        let at = |q: f64| quantile(round_trips_ns, q) / 2e3;
        Overhead {
            over,
            load,
            n: round_trips_ns.len() as u64,
            min: at(0.0),
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

/// The value at quantile `q` of an ascending sample (the nearest rank), NaN if it is empty.
pub fn quantile(ascending: &[u64], q: f64) -> f64 {
    let rank = (q * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).map_or(f64::NAN, |&value| value as f64)
}

impl Outcome {
    /// Nothing found yet; `kept_awake` are the processors that were.
    pub fn new(seed: u64, scheduler: Scheduler, kept_awake: Vec<usize>) -> Outcome {
        Outcome {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            seed,
            scheduler,
            kept_awake,
            checks: Vec::new(),
            program_rtt_ms: Vec::new(),
            forward_overhead_us: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Adds a figure that is judged.
    pub fn check(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds ascending round trips as the programs saw them.
    pub fn program_rtt(&mut self, nominal_ms: u64, round_trips_ns: &[u64]) {
        self.program_rtt_ms.push(ProgramRtt {
            nominal: nominal_ms as f64,
            n: round_trips_ns.len() as u64,
            p50: quantile(round_trips_ns, 0.5) / 1e6,
            p99: quantile(round_trips_ns, 0.99) / 1e6,
        });
    }

    /// Adds a latency that is told without judgement.
    pub fn overhead(&mut self, overhead: Overhead) {
        self.forward_overhead_us.push(overhead);
    }

    /// Adds the link's own report on a measurement.
    pub fn window(&mut self, what: &str, report: Report) {
        self.windows.push(Window {
            what: what.to_owned(),
            accepted: report.accepted,
            rejected_because: report.rejected_because,
            lateness_a_to_b_us: report.a_to_b.lateness_us,
            lateness_b_to_a_us: report.b_to_a.lateness_us,
            late_fraction: report.late_fraction,
            late_fraction_max: report.late_fraction_max,
            spun_us: report.spun_us,
            run_queue_wait_us: report.run_queue_wait_us,
            steal_ms: report.steal_ms,
        });
    }

    /// Whether every check passed, and the link accepts all windows in which something was
    /// measured.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(Check::passed) && self.windows.iter().all(|window| window.accepted)
    }

    /// All of it in one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// All of it for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = self.write_table(&mut text);
        text
    }

    fn write_table(&self, text: &mut String) -> std::fmt::Result {
        let Scheduler { fifo, memory_locked, wake_up_ns, .. } = self.scheduler;
        writeln!(
            text,
            "kernel {}, {} processors{}, seed {}, SCHED_FIFO {}, memory {}, timer set {:.1} us \
             earlier, the median of its wake-ups",
            self.kernel,
            self.processors,
            if self.kept_awake.is_empty() { "" } else { " kept awake" },
            self.seed,
            if fifo { "granted" } else { "refused" },
            if memory_locked { "locked" } else { "not locked" },
            wake_up_ns as f64 / 1e3,
        )?;
        if !self.checks.is_empty() {
            writeln!(
                text,
                "\n{:<30}{:>8}{:>12}{:>12}  {:<34}verdict",
                "check", "n", "expected", "measured", "passes"
            )?;
        }
        for check in &self.checks {
            let bounds = match check.high {
                Some(high) => format!("{:.3} to {:.3} {}", check.low, high, check.unit),
                None => format!(">= {:.3} {}", check.low, check.unit),
            };
            let verdict = check.verdict();
            writeln!(
                text,
                "{:<30}{:>8}{:>12.3}{:>12.3}  {bounds:<34}{verdict}",
                check.what, check.n, check.expected, check.measured
            )?;
        }
        for ProgramRtt { nominal, n, p50, p99 } in &self.program_rtt_ms {
            writeln!(
                text,
                "  RTT {nominal} ms with both programs' wake-ups: median {p50:.3} ms, P99 {p99:.3} \
                 ms, n = {n}"
            )?;
        }
        if !self.forward_overhead_us.is_empty() {
            writeln!(
                text,
                "\nhalf a round trip at no delay, us\n{:<20}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
                "over, load", "n", "min", "p5", "p50", "p95", "p99", "max"
            )?;
        }
        for o in &self.forward_overhead_us {
            let name = format!("{}, {}", o.over, o.load);
            writeln!(
                text,
                "{name:<20}{:>8}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}",
                o.n, o.min, o.p5, o.p50, o.p95, o.p99, o.max
            )?;
        }
        writeln!(
            text,
            "\n{:<34}{:>9}{:>9}{:>9}{:>10}{:>10}  accepted",
            "the link's lateness, us", "p50", "p99", "p99.9", "max", "late %"
        )?;
        for window in &self.windows {
            let (a, b) = (&window.lateness_a_to_b_us, &window.lateness_b_to_a_us);
            let worse = |of: fn(&Quantiles) -> f64| of(a).max(of(b));
            let (p50, p99, p999, max) =
                (worse(|q| q.p50), worse(|q| q.p99), worse(|q| q.p999), worse(|q| q.max));
            let late = window.late_fraction * 100.0;
            let accepted = match (window.accepted, window.late_fraction_max < 1.0) {
                (true, true) => "yes",
                (true, false) => "yes; lateness not judged",
                (false, _) => "NO",
            };
            writeln!(
                text,
                "{:<34}{p50:>9.1}{p99:>9.1}{p999:>9.1}{max:>10.1}{late:>10.4}  {accepted}",
                window.what
            )?;
            for reason in &window.rejected_because {
                writeln!(text, "    {reason}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sample: Vec<u64> = (1..=100).collect();
        let at = |q| quantile(&sample, q);
        assert_eq!((at(0.0), at(0.5), at(0.99), at(1.0)), (1.0, 50.0, 99.0, 100.0));
        assert!(quantile(&[], 0.5).is_nan());
    }

    fn check(n: u64, measured: f64, high: Option<f64>) -> Check {
        let what = String::new();
        Check { what, unit: "ms", n, n_min: 990, expected: 1.0, measured, low: 1.0, high }
    }

    #[test]
    fn check_passes_within_bounds_only() {
        let passed = |measured, high| check(1_000, measured, high).passed();
        assert!(passed(1.0, Some(1.1)) && passed(9.0, None));
        assert!(!passed(1.2, Some(1.1)) && !passed(0.9, None) && !passed(f64::NAN, Some(2.0)));
    }

    #[test]
    fn check_of_few_samples_does_not_pass() {
        assert!(check(990, 1.0, None).passed());
        let few = check(5, 1.0, None);
        assert!(!few.passed());
        assert_eq!(few.verdict(), "FAIL: fewer than 990 samples");
    }

    #[test]
    fn window_that_the_link_rejects_does_not_pass() {
        for accepted in [true, false] {
            let mut outcome = Outcome::new(1, Scheduler::default(), Vec::new());
            outcome.check(check(1_000, 1.0, None));
            outcome.windows.push(Window {
                what: "loss".to_owned(),
                accepted,
                rejected_because: Vec::new(),
                lateness_a_to_b_us: Quantiles::default(),
                lateness_b_to_a_us: Quantiles::default(),
                late_fraction: 0.0,
                late_fraction_max: 0.01,
                spun_us: 0.0,
                run_queue_wait_us: None,
                steal_ms: None,
            });
            assert_eq!(outcome.passed(), accepted);
            assert_eq!(outcome.table().contains("  NO"), !accepted);
        }
    }
}

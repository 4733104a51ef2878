// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the link did in a window of time, and whether it did it well enough to be believed.

use crate::random::Direction;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use warifu_model::{Nanos, Probability};

/// Lateness is kept from 1 ns to 10 s at three significant figures; what is later counts as 10 s.
const LATENESS_MAX_NS: u64 = 10_000_000_000;

/// One window's report, as printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether what was measured over the link in this window may be used.
    pub accepted: bool,
    /// Why not, each reason with what to do; empty if accepted.
    pub rejected_because: Vec<String>,
    /// Length of the window.
    pub seconds: f64,
    /// The seed in force.
    pub seed: u64,
    /// From A to B.
    pub a_to_b: DirectionReport,
    /// From B to A.
    pub b_to_a: DirectionReport,
    /// Share of delivered packets, both directions, that were later than the bound.
    pub late_fraction: f64,
    /// That bound.
    pub lateness_bound_us: f64,
    /// The largest share of late packets with which the window is accepted.
    pub late_fraction_max: f64,
    /// The scheduling that was granted.
    pub scheduler: Scheduler,
    /// Time for which the forwarding thread waited awake for packets that were due sooner than it
    /// could have been woken.
    pub spun_us: f64,
    /// Time for which the forwarding thread could run but did not (/proc/thread-self/schedstat);
    /// absent if the kernel does not say.
    pub run_queue_wait_us: Option<f64>,
    /// Time that the hypervisor took from all processors (/proc/stat, `steal`), in steps of 10 ms.
    pub steal_ms: Option<f64>,
    /// Kernel release.
    pub kernel: String,
    /// What could not be set up as wanted, each with what to do.
    pub warnings: Vec<String>,
}

/// What the kernel granted the link for its precision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// Whether SCHED_FIFO is active.
    pub fifo: bool,
    /// Its priority, 0 without it.
    pub priority: i32,
    /// Whether memory is locked.
    pub memory_locked: bool,
    /// Whether the timer slack is 1 ns.
    pub timer_slack_1ns: bool,
    /// Whether the kernel stamps packets when they are sent; else they are stamped when read, a
    /// wake-up later.
    pub kernel_stamps: bool,
    /// How late the timer wakes the forwarding thread, the median of some wake-ups timed at the
    /// start; it is set so much earlier.
    pub wake_up_ns: u64,
}

/// One direction's part of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// The counts.
    #[serde(flatten)]
    pub counters: Counters,
    /// Packets under way when the window opened.
    pub under_way_at_start: u64,
    /// Packets under way when the window closed.
    pub under_way_at_end: u64,
    /// Packets that the kernel dropped before the link could read them.
    pub device_dropped: Option<u64>,
    /// How late packets were handed over.
    pub lateness_us: Quantiles,
}

/// Counts of one direction. `packets_in` and those under way at the start equal those delivered,
/// dropped, oversize, undeliverable, flushed and under way at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets read from the device.
    pub packets_in: u64,
    /// Their bytes (IP packets).
    pub bytes_in: u64,
    /// Packets handed over.
    pub delivered: u64,
    /// Their bytes.
    pub bytes_delivered: u64,
    /// Packets lost by the loss model.
    pub dropped_by_loss: u64,
    /// Packets dropped by the drop script.
    pub dropped_by_script: u64,
    /// Packets that found the queue full.
    pub dropped_by_queue: u64,
    /// Packets for which the pool had no room: the link was asked for more than it can hold.
    pub dropped_by_overload: u64,
    /// Packets longer than the MTU, which someone must have raised on the device.
    pub oversize: u64,
    /// Packets that the receiving device refused.
    pub undeliverable: u64,
    /// Packets discarded by a `set` command.
    pub flushed: u64,
    /// Of the packets read, those without a kernel stamp, whose time counts from when they were
    /// read.
    pub unstamped: u64,
}

/// A distribution by its quantiles, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Count of values.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

/// What is counted while the window is open. Made by whoever asks for a report, so that the
/// forwarding thread allocates nothing.
#[derive(Debug)]
pub struct Window {
    pub(crate) counters: [Counters; 2],
    pub(crate) lateness: [Histogram<u64>; 2],
    pub(crate) late: u64,
    pub(crate) spun_ns: u64,
    pub(crate) start: Edge,
    pub(crate) end: Edge,
    pub(crate) seed: u64,
}

/// What is read when a window opens and closes; the report has the differences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edge {
    pub(crate) at: Nanos,
    pub(crate) under_way: [u64; 2],
    pub(crate) device_dropped: [Option<u64>; 2],
    pub(crate) run_queue_wait_ns: Option<u64>,
    pub(crate) steal_ticks: Option<u64>,
}

impl Window {
    /// An empty window.
    #[must_use]
    #[allow(clippy::expect_used, reason = "the bounds are constants that hdrhistogram takes")]
    pub fn new() -> Window {
        let histogram = || {
            Histogram::new_with_bounds(1, LATENESS_MAX_NS, 3)
                .expect("1 ns to 10 s at 3 figures are bounds that hdrhistogram takes")
        };
        Window {
            counters: [Counters::default(); 2],
            lateness: [histogram(), histogram()],
            late: 0,
            spun_ns: 0,
            start: Edge::default(),
            end: Edge::default(),
            seed: 0,
        }
    }

    /// Records that a packet of `bytes`, due at `due`, is handed over at `now`.
    pub(crate) fn delivered(
        &mut self,
        direction: Direction,
        bytes: u64,
        due: Nanos,
        now: Nanos,
        bound: Nanos,
    ) {
        let lateness = now - due;
        let counters = &mut self.counters[direction.index()];
        counters.delivered += 1;
        counters.bytes_delivered += bytes;
        self.lateness[direction.index()].saturating_record(lateness.0.max(1));
        self.late += u64::from(lateness > bound);
    }

    /// The report of a closed window.
    pub(crate) fn report(&self, judge: &Judge) -> Report {
        let delivered: u64 = self.counters.iter().map(|counters| counters.delivered).sum();
        let late_fraction = if delivered == 0 { 0.0 } else { self.late as f64 / delivered as f64 };
        let [a_to_b, b_to_a] = Direction::BOTH.map(|direction| self.direction(direction.index()));
        let rejected_because = judge.objections(late_fraction, [&a_to_b, &b_to_a]);
        let difference =
            |of: fn(&Edge) -> Option<u64>| Some(of(&self.end)?.saturating_sub(of(&self.start)?));
        Report {
            accepted: rejected_because.is_empty(),
            rejected_because,
            seconds: (self.end.at - self.start.at).0 as f64 / 1e9,
            seed: self.seed,
            a_to_b,
            b_to_a,
            late_fraction,
            lateness_bound_us: judge.lateness_bound.0 as f64 / 1e3,
            late_fraction_max: judge.late_fraction_max.0,
            scheduler: judge.scheduler.clone(),
            spun_us: self.spun_ns as f64 / 1e3,
            run_queue_wait_us: difference(|edge| edge.run_queue_wait_ns).map(|ns| ns as f64 / 1e3),
            // USER_HZ, in which /proc/stat counts, is 100 on every Linux architecture of today
            // (proc_stat(5)).
            steal_ms: difference(|edge| edge.steal_ticks).map(|ticks| ticks as f64 * 10.0),
            kernel: judge.kernel.clone(),
            warnings: judge.warnings.clone(),
        }
    }

    fn direction(&self, index: usize) -> DirectionReport {
        let device_dropped =
            match (self.start.device_dropped[index], self.end.device_dropped[index]) {
                (Some(start), Some(end)) => Some(end.saturating_sub(start)),
                _ => None,
            };
        DirectionReport {
            counters: self.counters[index],
            under_way_at_start: self.start.under_way[index],
            under_way_at_end: self.end.under_way[index],
            device_dropped,
            lateness_us: Quantiles::of(&self.lateness[index]),
        }
    }
}

impl Default for Window {
    fn default() -> Window {
        Window::new()
    }
}

impl Quantiles {
    /// The quantiles of a histogram of nanoseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Quantiles {
        let at = |q: f64| histogram.value_at_quantile(q) as f64 / 1e3;
        Quantiles {
            n: histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

/// What a window is judged by, and what of the report does not change.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub(crate) lateness_bound: Nanos,
    pub(crate) late_fraction_max: Probability,
    pub(crate) scheduler: Scheduler,
    pub(crate) kernel: String,
    pub(crate) warnings: Vec<String>,
}

impl Judge {
    fn objections(&self, late_fraction: f64, directions: [&DirectionReport; 2]) -> Vec<String> {
        let mut objections = Vec::new();
        if late_fraction > self.late_fraction_max.0 {
            objections.push(format!(
                "{:.3} % of packets were more than {} us late, {:.3} % are allowed: measure on a \
                 quieter machine, or send less{}",
                late_fraction * 100.0,
                self.lateness_bound.0 as f64 / 1e3,
                self.late_fraction_max.0 * 100.0,
                if self.scheduler.fifo {
                    ""
                } else {
                    ", and as root, so that SCHED_FIFO is granted"
                },
            ));
        }
        let mut object = |count: u64, what: &str| {
            if count > 0 {
                objections.push(format!("{count} packets {what}"));
            }
        };
        for direction in directions {
            let counters = &direction.counters;
            object(
                direction.device_dropped.unwrap_or(0),
                "were dropped before the link could read them: send less, or free a processor",
            );
            object(
                counters.dropped_by_overload,
                "found no room in the pool: limit the rate with a queue, or shorten the delay",
            );
            object(
                counters.undeliverable,
                "were refused by the receiving device: keep it up while measuring",
            );
            object(
                counters.oversize,
                "were longer than the MTU: set it in the configuration, not on the device",
            );
        }
        objections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge() -> Judge {
        Judge {
            lateness_bound: Nanos(500_000),
            late_fraction_max: Probability(0.001),
            scheduler: Scheduler::default(),
            kernel: String::new(),
            warnings: Vec::new(),
        }
    }

    fn window(on_time: u64, late: u64) -> Window {
        let mut window = Window::new();
        for number in 0..on_time + late {
            let lateness = if number < late { 600_000 } else { 20_000 };
            window.delivered(
                Direction::AToB,
                100,
                Nanos(1_000),
                Nanos(1_000 + lateness),
                judge().lateness_bound,
            );
        }
        window
    }

    #[test]
    fn too_many_late_packets_reject_the_window() {
        assert!(window(999, 1).report(&judge()).accepted);
        let rejected = window(998, 2).report(&judge());
        assert!(!rejected.accepted);
        assert!(
            rejected.rejected_because[0]
                .starts_with("0.200 % of packets were more than 500 us late"),
            "{rejected:?}"
        );
        assert_eq!(rejected.late_fraction, 0.002);
        assert_eq!(rejected.a_to_b.counters.bytes_delivered, 100_000);
    }

    #[test]
    fn unexplained_drops_reject_the_window() {
        for spoil in [
            (|window: &mut Window| window.counters[1].dropped_by_overload = 1) as fn(&mut Window),
            |window| window.counters[0].undeliverable = 1,
            |window| window.counters[0].oversize = 1,
            |window| {
                window.start.device_dropped = [Some(3), Some(3)];
                window.end.device_dropped = [Some(3), Some(4)];
            },
        ] {
            let mut window = window(10, 0);
            spoil(&mut window);
            let report = window.report(&judge());
            assert_eq!((report.accepted, report.rejected_because.len()), (false, 1), "{report:?}");
        }
    }

    #[test]
    fn empty_window_json_round_trip() {
        let report = Window::new().report(&judge());
        assert!(report.accepted);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn quantiles_are_in_microseconds() {
        let quantiles = window(990, 10).report(&judge()).a_to_b.lateness_us;
        assert_eq!(quantiles.n, 1000);
        assert!(
            (quantiles.p50 - 20.0).abs() < 0.1 && (quantiles.max - 600.0).abs() < 1.0,
            "{quantiles:?}"
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is measured, and the bounds that the link must keep on a quiet machine.

use super::Bench;
use super::outcome::{Check, Outcome, Overhead, quantile};
use super::probe::{Pair, UDP_OVERHEAD_BYTES, tcp_throughput_bps};
use statrs::distribution::{Binomial, DiscreteCDF};
use warifu_link::random::Direction;
use warifu_link::{LinkConfig, LinkError};
use warifu_model::{BitsPerSecond, Loss, Nanos, Probability};

/// Bounds asked of the link: median and 99th percentile of the round trip, in milliseconds above
/// the nominal.
const RTT_MEDIAN_MS: f64 = 0.1;
const RTT_P99_MS: f64 = 0.5;
/// Round trips measured at each RTT, and the time between them: no divisor of a delay, or a packet
/// sent would wake the processor just when another falls due.
const PROBES: u64 = 1_000;
const PROBE_INTERVAL: Nanos = Nanos(10_700_000);
/// The least share of them that has to come back. A receiver gives up after half a second without
/// any.
const PROBES_MIN: u64 = PROBES * 99 / 100;
/// Relative error allowed to a rate.
const RATE_ERROR: f64 = 0.03;
/// Least TCP throughput at no delay.
const THROUGHPUT_MIN_BPS: f64 = 1e9;
/// Packets sent for each loss.
const LOSS_PACKETS: u64 = 20_000;
/// A full Ethernet frame's IP packet, and the UDP payload that fills it.
const PACKET_BYTES: usize = 1500;

/// Round trips at 60 and 150 ms. They are judged as the kernel stamps them on arrival: the wake-up
/// of the programs that measure, which they would take over any link, is told beside.
pub fn rtt(bench: &mut Bench, outcome: &mut Outcome) -> Result<(), LinkError> {
    for rtt_ms in [60_u64, 150] {
        let delay = Nanos::from_micros(rtt_ms * 1_000 / 2);
        set(
            bench,
            LinkConfig { delay_a_to_b: delay, delay_b_to_a: delay, ..LinkConfig::default() },
        )?;
        let round_trips = Pair::across(bench, Direction::AToB)?.round_trips(PROBES, PROBE_INTERVAL);
        let nominal = rtt_ms as f64;
        for (name, q, bound) in [("median", 0.5, RTT_MEDIAN_MS), ("P99", 0.99, RTT_P99_MS)] {
            outcome.check(Check {
                what: format!("RTT {rtt_ms} ms, {name}"),
                unit: "ms",
                n: round_trips.link_ns.len() as u64,
                n_min: PROBES_MIN,
                expected: nominal,
                measured: quantile(&round_trips.link_ns, q) / 1e6,
                low: nominal,
                high: Some(nominal + bound),
            });
        }
        outcome.program_rtt(rtt_ms, &round_trips.programs_ns);
        outcome.window(&format!("RTT {rtt_ms} ms"), bench.link.report()?);
    }
    Ok(())
}

/// Loss of 2 and 5 % in each direction, counted by the receiver.
pub fn loss(bench: &mut Bench, outcome: &mut Outcome) -> Result<(), LinkError> {
    for probability in [0.02, 0.05] {
        for direction in Direction::BOTH {
            let loss = Loss::Independent { probability: Probability(probability) };
            set(bench, LinkConfig { loss, ..LinkConfig::default() })?;
            // 10,000 packets a second: slow enough for the receiver's socket to lose none.
            let rate = BitsPerSecond(10_000 * 8 * (64 + UDP_OVERHEAD_BYTES as u64));
            let arrived =
                Pair::across(bench, direction)?.flood(LOSS_PACKETS, 64, rate).len() as u64;
            let (low, high) = binomial_interval(LOSS_PACKETS, probability);
            let percent = |count: f64| count / LOSS_PACKETS as f64 * 100.0;
            let what = format!("loss {} %, {}", probability * 100.0, arrow(direction));
            outcome.check(Check {
                what: what.clone(),
                unit: "%",
                n: LOSS_PACKETS,
                n_min: LOSS_PACKETS,
                expected: probability * 100.0,
                measured: percent((LOSS_PACKETS - arrived) as f64),
                low: percent(low),
                high: Some(percent(high)),
            });
            outcome.window(&what, bench.link.report()?);
        }
    }
    Ok(())
}

/// Rates, offered a fifth more than they carry, measured between the first and the last arrival.
pub fn rate(bench: &mut Bench, outcome: &mut Outcome) -> Result<(), LinkError> {
    for (rate_kbps, seconds) in [(250_u64, 8), (1_000, 4), (10_000, 3), (100_000, 3)] {
        for direction in Direction::BOTH {
            let rate = BitsPerSecond(rate_kbps * 1_000);
            set(
                bench,
                LinkConfig {
                    rate_a_to_b: Some(rate),
                    rate_b_to_a: Some(rate),
                    queue_packets: Some(20),
                    ..LinkConfig::default()
                },
            )?;
            let offered = BitsPerSecond(rate.0 + rate.0 / 5);
            let count = offered.0 * seconds / (8 * PACKET_BYTES as u64);
            let arrivals = Pair::across(bench, direction)?.flood(
                count,
                PACKET_BYTES - UDP_OVERHEAD_BYTES,
                offered,
            );
            let span = arrivals.last().copied().unwrap_or_default()
                - arrivals.first().copied().unwrap_or_default();
            let bits = arrivals.len().saturating_sub(1) as f64 * (PACKET_BYTES * 8) as f64;
            let nominal = rate_kbps as f64;
            let what = format!("rate {rate_kbps} kbit/s, {}", arrow(direction));
            outcome.check(Check {
                what: what.clone(),
                unit: "kbit/s",
                n: arrivals.len() as u64,
                // What the rate carries meanwhile, but for a tenth.
                n_min: rate.0 * seconds / (8 * PACKET_BYTES as u64) * 9 / 10,
                expected: nominal,
                measured: bits * 1e6 / span.0 as f64,
                low: nominal * (1.0 - RATE_ERROR),
                high: Some(nominal * (1.0 + RATE_ERROR)),
            });
            outcome.window(&what, bench.link.report()?);
        }
    }
    Ok(())
}

/// TCP at no delay and an MTU of 1500, without segmentation offload: every packet goes through the
/// link by itself. Its window of packets waits for the link, so that most are late by the link's
/// own speed: their lateness is not judged.
pub fn throughput(bench: &mut Bench, outcome: &mut Outcome) -> Result<(), LinkError> {
    bench.link.allow_late(Probability(1.0));
    for direction in Direction::BOTH {
        set(bench, LinkConfig::default())?;
        let bps = tcp_throughput_bps(bench, direction, Nanos(4_000_000_000))?;
        let report = bench.link.report()?;
        let carried = if direction == Direction::AToB { &report.a_to_b } else { &report.b_to_a };
        let what = format!("TCP at no delay, {}", arrow(direction));
        outcome.check(Check {
            what: what.clone(),
            unit: "Mbit/s",
            n: carried.counters.delivered,
            n_min: 1,
            expected: THROUGHPUT_MIN_BPS / 1e6,
            measured: bps / 1e6,
            low: THROUGHPUT_MIN_BPS / 1e6,
            high: None,
        });
        outcome.window(&what, report);
    }
    bench.link.allow_late(bench.config.late_fraction_max);
    Ok(())
}

/// The latency that the link adds by being there, beside that of the loopback device.
pub fn overhead(bench: &mut Bench, outcome: &mut Outcome) -> Result<(), LinkError> {
    for (load, count, pause) in [("idle", 500, Nanos(20_000_000)), ("busy", 20_000, Nanos::ZERO)] {
        set(bench, LinkConfig::default())?;
        let pairs =
            [("link", Pair::across(bench, Direction::AToB)?), ("loopback", Pair::loopback(bench)?)];
        for (over, pair) in pairs {
            outcome.overhead(Overhead::of(over, load, &pair.ping_pong(count, pause)));
        }
        outcome.window(&format!("no delay, {load}"), bench.link.report()?);
    }
    Ok(())
}

/// The central 95 % of the count of losses among `n` packets.
fn binomial_interval(n: u64, probability: f64) -> (f64, f64) {
    // The probabilities are ours and from 0 to 1, which is all that `new` asks.
    Binomial::new(probability, n).map_or((f64::NAN, f64::NAN), |binomial| {
        (binomial.inverse_cdf(0.025) as f64, binomial.inverse_cdf(0.975) as f64)
    })
}

fn set(bench: &mut Bench, link: LinkConfig) -> Result<(), LinkError> {
    bench.link.set(link, None).map(|_| ())
}

fn arrow(direction: Direction) -> &'static str {
    if direction == Direction::AToB { "A to B" } else { "B to A" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_interval_is_the_textbooks() {
        // By the normal approximation 400 -+ 1.96 * sqrt(392) = 361.2 to 438.8.
        assert_eq!(binomial_interval(20_000, 0.02), (362.0, 439.0));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times finer than a nanosecond, known from one bound to another: `"5.67 ns"`,
//! `"10 us to 50 us"`, `"44 cycles"` of a clock.

use std::ops::Add;

use toml::Value;

use super::shown::{Show, Shown};
use crate::units::Nanos;

/// A time that is known to lie between two bounds, ns; both are the same where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// At least.
    pub low_ns: f64,
    /// At most.
    pub high_ns: f64,
}

/// A clock, MHz, from the slowest to the fastest that it may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clock(Bounds);

/// A piece of work, as a time or as cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    Time(Span),
    Cycles(Bounds),
}

/// From the lesser to the greater, neither negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    low: f64,
    high: f64,
}

impl Span {
    /// So many of them.
    pub fn times(self, count: f64) -> Span {
        Span { low_ns: self.low_ns * count, high_ns: self.high_ns * count }
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span { low_ns: self.low_ns + other.low_ns, high_ns: self.high_ns + other.high_ns }
    }
}

impl Clock {
    /// Reads `"200 MHz"` or `"100 MHz to 200 MHz"`.
    pub(super) fn read(value: &Value) -> Result<Clock, String> {
        bounds(value.as_str().unwrap_or_default(), &[("MHz", 1.0), ("GHz", 1e3)])
            .filter(|(bounds, _)| bounds.low >= 0.001)
            .map(|(bounds, _)| Clock(bounds))
            .ok_or_else(|| "expected a clock such as \"200 MHz\" or \"100 MHz to 200 MHz\"".into())
    }
}

impl Work {
    pub(super) fn read(value: &Value) -> Result<Work, String> {
        const UNITS: [(&str, f64); 5] =
            [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("cycles", 1.0)];
        match bounds(value.as_str().unwrap_or_default(), &UNITS) {
            Some((cycles, "cycles")) => Ok(Work::Cycles(cycles)),
            Some((time, _)) => Ok(Work::Time(Span { low_ns: time.low, high_ns: time.high })),
            None => {
                Err("expected a time such as \"5.7 ns\" or \"10 us to 50 us\", or cycles such \
                         as \"44 cycles\""
                    .into())
            }
        }
    }

    /// As a time: the fewest cycles of the fastest clock, and the most of the slowest.
    pub(super) fn at(self, clock: Option<Clock>) -> Result<Span, String> {
        match (self, clock) {
            (Work::Time(span), _) => Ok(span),
            (Work::Cycles(cycles), Some(Clock(mhz))) => Ok(Span {
                low_ns: cycles.low * 1e3 / mhz.high,
                high_ns: cycles.high * 1e3 / mhz.low,
            }),
            (Work::Cycles(_), None) => {
                Err("expected a time, or state clock = \"200 MHz\" above it".into())
            }
        }
    }
}

/// `"A UNIT"` or `"A UNIT to B UNIT"`, both in the same unit, and which.
fn bounds<'u>(text: &str, units: &[(&'u str, f64)]) -> Option<(Bounds, &'u str)> {
    let one = |text: &str| {
        let (number, unit) = text.trim().split_once(' ')?;
        let &(name, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
        let number: f64 = number.parse().ok()?;
        // What takes longer than a quarter of an hour is no call of a cipher.
        let value = number * scale;
        (number >= 0.0 && value <= 1e12).then_some((value, name))
    };
    let (low, unit) = one(text.split(" to ").next()?)?;
    let (high, other) = match text.split_once(" to ") {
        Some((_, high)) => one(high)?,
        None => (low, unit),
    };
    // Cycles and times differ in kind; times may differ in unit.
    let same = (unit == "cycles") == (other == "cycles");
    (same && low <= high).then_some((Bounds { low, high }, unit))
}

impl Show for Span {
    fn shown(&self, _: &str) -> Shown {
        if self.low_ns == self.high_ns {
            let last_digit = (self.low_ns.fract() == 0.0)
                .then_some(Nanos(self.low_ns as u64))
                .and_then(|time| Show::shown(&time, "ns").last_digit);
            return Shown { text: time(self.low_ns), number: Some(self.low_ns), last_digit };
        }
        Shown::word(format!("{} to {}", time(self.low_ns), time(self.high_ns)))
    }
}

impl Show for Clock {
    fn shown(&self, _: &str) -> Shown {
        let Bounds { low, high } = self.0;
        if low == high {
            return Shown { text: format!("{low} MHz"), number: Some(low), last_digit: None };
        }
        Shown::word(format!("{low} MHz to {high} MHz"))
    }
}

/// Four significant digits are more than any of these figures deserves.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    let digits = if value > 0.0 { (3.0 - value.log10().floor()).clamp(0.0, 6.0) } else { 0.0 };
    let text = format!("{value:.*}", digits as usize);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(text: &str) -> Result<Work, String> {
        Work::read(&Value::String(text.into()))
    }

    #[test]
    fn times_and_cycles() {
        let span = |low_ns, high_ns| Ok(Work::Time(Span { low_ns, high_ns }));
        assert_eq!(work("5.674 ns"), span(5.674, 5.674));
        assert_eq!(work("900 ns to 1.5 us"), span(900.0, 1_500.0));
        assert_eq!(work("44 cycles"), Ok(Work::Cycles(Bounds { low: 44.0, high: 44.0 })));
        for wrong in [
            "",
            "5",
            "ns",
            "5ns",
            "-1 ns",
            "nan ns",
            "inf ns",
            "1e99 s",
            "2 us to 1 us",
            "1 ns to",
            "1 ns to 2 ns to 3 ns",
            "1 ns to 2 cycles",
            "1 kB",
        ] {
            assert!(work(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0 MHz", "200", "200 mhz", "2 MHz to 1 MHz"] {
            assert!(Clock::read(&Value::String(wrong.into())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_with_unit() {
        let shown = |low_ns, high_ns| Show::shown(&Span { low_ns, high_ns }, "ns").text;
        assert_eq!(shown(0.0, 0.0), "0 ns");
        assert_eq!(shown(5.6738, 5.6738), "5.674 ns");
        assert_eq!(shown(0.1507, 12_345.6), "0.1507 ns to 12.35 us");
    }
}

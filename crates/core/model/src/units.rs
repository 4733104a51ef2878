// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Units as newtypes over integers. Text is parsed once (`"60 ms"`), integers are used inside.
//!
//! Every type reads what its `Display` writes, exactly.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;

/// A duration or an instant of virtual time, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A data rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "u64")]
pub struct BitsPerSecond(pub u64);

/// A probability from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Probability(pub f64);

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteCount(pub u64);

/// Why a text is no quantity: `expected a duration such as "60 ms"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(pub String);

const EXPECTED_DURATION: &str = "expected a duration such as \"60 ms\"";
const EXPECTED_RATE: &str = "expected a rate such as \"250 kbit/s\"";
const EXPECTED_SIZE: &str = "expected a size such as \"846 B\", \"1 kB\" or \"4 KiB\"";
const EXPECTED_PROBABILITY: &str = "expected a probability from 0 to 1";

/// Units of time, in ns. The micro sign exists twice in Unicode (U+00B5, U+03BC).
const DURATION_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Units of rate, in bit/s; decimal prefixes, as links are sold.
const RATE_UNITS: [(&str, u64); 4] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
/// Units of size, in B: decimal prefixes as the SI has them, binary ones by their IEC 80000-13
/// names. "KB", which is neither, is refused.
const SIZE_UNITS: [(&str, u64); 5] =
    [("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("KiB", 1_024), ("MiB", 1_024 * 1_024)];

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);

    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs * 1_000_000_000)
    }

    /// The size of the last digit that is written of it: 10 us of `172.69 ms`, 1 ms of `50 ms`.
    pub fn last_digit(self) -> Nanos {
        let (scale, _) = self.written_in();
        let mut size = scale;
        while size > 1 && !self.0.is_multiple_of(size) {
            size /= 10;
        }
        Nanos(size)
    }

    /// The unit that it is written in, and its length, ns.
    const fn written_in(self) -> (u64, &'static str) {
        // Zero is written in the unit that people compare it with.
        match self.0 {
            0 => (1_000_000, "ms"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        }
    }

    /// The value in milliseconds, for display only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Nanos {
    type Output = Nanos;

    /// Saturates: a wire of 1 bit/s may owe more time than fits, and "never" is then right.
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    /// The time from `other` to `self`, zero if `other` is the later one.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        quantity(text, &DURATION_UNITS, EXPECTED_DURATION, "1 ns").map(Nanos)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = self.written_in();
        write!(f, "{} {unit}", Decimal::of_ratio(self.0, scale))
    }
}

impl BitsPerSecond {
    /// Refuses 0.
    pub fn new(rate: u64) -> Result<Self, UnitError> {
        match rate {
            0 => Err(UnitError("expected a rate above 0; leave it out for no limit".into())),
            rate => Ok(BitsPerSecond(rate)),
        }
    }
}

impl TryFrom<u64> for BitsPerSecond {
    type Error = UnitError;

    fn try_from(rate: u64) -> Result<Self, UnitError> {
        BitsPerSecond::new(rate)
    }
}

impl FromStr for BitsPerSecond {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.to_ascii_lowercase().ends_with("bps") {
            return Err(UnitError(format!("{EXPECTED_RATE} (bit/s, kbit/s, Mbit/s, Gbit/s)")));
        }
        BitsPerSecond::new(quantity(text, &RATE_UNITS, EXPECTED_RATE, "1 bit/s")?)
    }
}

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "bit/s"),
            1_000..1_000_000 => (1_000, "kbit/s"),
            1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
            _ => (1_000_000_000, "Gbit/s"),
        };
        write!(f, "{} {unit}", Decimal::of_ratio(self.0, scale))
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if ["KB", "kb", "Kb", "mb", "Mb"].iter().any(|unit| text.ends_with(unit)) {
            // 1000 or 1024, bytes or bits? All are in use, so none is guessed.
            return Err(UnitError("expected B, kB (1000 B), KiB (1024 B), MB or MiB".into()));
        }
        quantity(text, &SIZE_UNITS, EXPECTED_SIZE, "1 B").map(ByteCount)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0 B"),
            bytes if bytes % (1024 * 1024) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes % 1024 == 0 => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

impl Probability {
    /// Refuses what is not from 0 to 1.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&value) {
            // Adding zero turns -0.0, which prints differently, into 0.0.
            Ok(Probability(value + 0.0))
        } else {
            Err(UnitError(EXPECTED_PROBABILITY.into()))
        }
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refuse = || UnitError(format!("{EXPECTED_PROBABILITY}, such as \"2 %\" or 0.02"));
        let (number, shift) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), -2),
            None => (text.trim(), 0),
        };
        let decimal = Decimal::parse(number).ok_or_else(refuse)?;
        // Shifting the decimal point in the text, not dividing: "7 %" must equal 0.07.
        let value: f64 = decimal.shifted(shift).to_string().parse().map_err(|_| refuse())?;
        Probability::new(value)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{}` of an f64 writes the shortest digits that read back as the same number.
        match Decimal::parse(&self.0.to_string()) {
            Some(decimal) => write!(f, "{} %", decimal.shifted(2)),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

/// Reads `NUMBER UNIT` as an exact multiple of the smallest unit.
fn quantity(
    text: &str,
    units: &[(&str, u64)],
    expected: &str,
    smallest: &str,
) -> Result<u64, UnitError> {
    let refuse = || UnitError(expected.to_string());
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refuse)?;
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start();
    let scale = units.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?.1;
    let decimal = Decimal::parse(number).ok_or_else(refuse)?;
    decimal.times(scale).map_err(|finer| {
        UnitError(if finer {
            format!("{expected}, a whole multiple of {smallest}")
        } else {
            format!("{expected}, not so large")
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn duration(text: &str) -> Result<u64, String> {
        text.parse::<Nanos>().map(|value| value.0).map_err(|error| error.0)
    }

    #[test]
    fn durations_with_units() {
        assert_eq!(duration("60 ms"), Ok(60_000_000));
        assert_eq!(duration("1.5 s"), Ok(1_500_000_000));
        assert_eq!(duration("250us"), Ok(250_000));
        assert_eq!(duration("80 \u{b5}s"), Ok(80_000));
        assert_eq!(duration("80 \u{3bc}s"), Ok(80_000));
        assert_eq!(duration(".5 ms"), Ok(500_000));
        assert_eq!(duration("2 min"), Ok(120_000_000_000));
        for wrong in ["60 kbit/s", "60", "ms", "-1 ms", "1e3 ms", "1.2.3 ms", "60 MS", "", "1 m"] {
            assert_eq!(duration(wrong), Err(EXPECTED_DURATION.into()), "{wrong}");
        }
        assert_eq!(
            duration("0.1 ns").unwrap_err(),
            format!("{EXPECTED_DURATION}, a whole multiple of 1 ns")
        );
        assert_eq!(
            duration("6000000 h").unwrap_err(),
            format!("{EXPECTED_DURATION}, not so large")
        );
        assert_eq!(
            duration("99999999999999999999999999999999999999999999 ns").unwrap_err(),
            format!("{EXPECTED_DURATION}, not so large")
        );
    }

    #[test]
    fn rates_and_sizes_and_probabilities() {
        assert_eq!("250 kbit/s".parse(), Ok(BitsPerSecond(250_000)));
        assert_eq!("0.1 Mbit/s".parse(), Ok(BitsPerSecond(100_000)));
        assert!("1 Mbps".parse::<BitsPerSecond>().unwrap_err().0.contains("Mbit/s"));
        assert!("0 bit/s".parse::<BitsPerSecond>().unwrap_err().0.contains("above 0"));
        assert_eq!("846 B".parse(), Ok(ByteCount(846)));
        assert_eq!("4 KiB".parse(), Ok(ByteCount(4096)));
        assert_eq!("4 kB".parse(), Ok(ByteCount(4_000)));
        assert_eq!("0.1 kB".parse(), Ok(ByteCount(100)));
        assert_eq!("1 MB".parse(), Ok(ByteCount(1_000_000)));
        assert_eq!("1 MiB".parse(), Ok(ByteCount(1_048_576)));
        for wrong in ["4 KB", "4 kb", "4 Mb"] {
            let message = wrong.parse::<ByteCount>().unwrap_err().0;
            assert_eq!(message, "expected B, kB (1000 B), KiB (1024 B), MB or MiB");
        }
        assert_eq!("2 %".parse(), Ok(Probability(0.02)));
        assert_eq!("7%".parse(), Ok(Probability(0.07)));
        assert_eq!("0.02".parse(), Ok(Probability(0.02)));
        assert_eq!("1.2".parse::<Probability>().unwrap_err().0, EXPECTED_PROBABILITY);
        assert_eq!("102 %".parse::<Probability>().unwrap_err().0, EXPECTED_PROBABILITY);
        assert!("two".parse::<Probability>().is_err());
        assert!(Probability::new(f64::NAN).is_err());
    }

    #[test]
    fn times_saturate() {
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
        assert_eq!(Nanos(1) - Nanos(2), Nanos::ZERO);
        assert_eq!(Nanos(5) - Nanos(2) + Nanos(1), Nanos(4));
    }

    #[test]
    fn json_rate_of_zero() {
        assert_eq!(serde_json::from_str::<BitsPerSecond>("8").unwrap(), BitsPerSecond(8));
        let error = serde_json::from_str::<BitsPerSecond>("0").unwrap_err().to_string();
        assert!(error.starts_with("expected a rate above 0"), "{error}");
        assert_eq!(serde_json::to_string(&BitsPerSecond(8)).unwrap(), "8");
    }

    #[test]
    fn displayed_units() {
        assert_eq!(Nanos::from_millis(60).to_string(), "60 ms");
        assert_eq!(Nanos(1_500_000_000).to_string(), "1.5 s");
        assert_eq!(Nanos(80_250).to_string(), "80.25 us");
        assert_eq!(Nanos::ZERO.to_string(), "0 ms");
        assert_eq!(BitsPerSecond(250_000).to_string(), "250 kbit/s");
        assert_eq!(ByteCount(846).to_string(), "846 B");
        assert_eq!(ByteCount(8192).to_string(), "8 KiB");
        assert_eq!(Probability(0.07).to_string(), "7 %");
        assert_eq!(Probability(0.0).to_string(), "0 %");
    }

    proptest! {
        #[test]
        fn duration_round_trip(value: u64) {
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
        }

        #[test]
        fn rate_round_trip(value in 1_u64..) {
            prop_assert_eq!(BitsPerSecond(value).to_string().parse(), Ok(BitsPerSecond(value)));
        }

        #[test]
        fn size_round_trip(value: u64) {
            prop_assert_eq!(ByteCount(value).to_string().parse(), Ok(ByteCount(value)));
        }

        #[test]
        fn probability_round_trip(value in 0.0..=1.0_f64) {
            prop_assert_eq!(Probability(value).to_string().parse(), Ok(Probability(value)));
        }

        #[test]
        fn any_text_without_panic(text in ".{0,40}") {
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<BitsPerSecond>();
            let _ = text.parse::<ByteCount>();
            let _ = text.parse::<Probability>();
        }
    }
}

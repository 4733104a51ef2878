// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure's value: as people write it, as a number, and how finely it is known.

use crate::case::Loss;
use crate::distribution::Distribution;
use crate::quantities::show_jitter;
use crate::units::{BitsPerSecond, Nanos};

/// A figure's value, for tables and for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// As people write it, with the unit; a distribution by its mean and bounds.
    pub text: String,
    /// The number of units, of a distribution the mean; `None` for what is no single number.
    pub number: Option<f64>,
    /// The size of the last digit of a time, as its text writes it, or the mean of a distribution;
    /// `None` for other values and for zero, which is known exactly or neglected.
    pub last_digit: Option<Nanos>,
}

impl Shown {
    /// A value that is no number: a truth, a list, a word.
    pub(crate) fn word(text: impl Into<String>) -> Shown {
        Shown { text: text.into(), number: None, last_digit: None }
    }
}

/// What a figure of a profile can be.
pub(crate) trait Show {
    /// As tables and programs take it. `unit` is the figure's, `1` for pure numbers.
    fn shown(&self, unit: &str) -> Shown;
}

impl Show for Nanos {
    fn shown(&self, _: &str) -> Shown {
        let last_digit = (*self != Nanos::ZERO).then(|| self.last_digit());
        Shown { text: self.to_string(), number: Some(self.0 as f64), last_digit }
    }
}

impl From<Nanos> for Shown {
    fn from(time: Nanos) -> Shown {
        time.shown("ns")
    }
}

impl Show for Distribution {
    fn shown(&self, unit: &str) -> Shown {
        if self.min() == self.max() {
            return self.min().shown(unit);
        }
        let rounded = |value: Nanos| Nanos(significant(value.0));
        let mean = rounded(self.mean()).shown(unit);
        let (text, min, max) = (mean.text, rounded(self.min()), rounded(self.max()));
        Shown { text: format!("mean {text}, {min} to {max}"), ..mean }
    }
}

impl Show for bool {
    fn shown(&self, _: &str) -> Shown {
        Shown::word(self.to_string())
    }
}

macro_rules! show_number {
    ($($type:ty)+) => {$(
        impl Show for $type {
            fn shown(&self, unit: &str) -> Shown {
                let text = match unit.strip_prefix('1') {
                    // `250/s`, and a bare number where the unit is 1.
                    Some(per) => format!("{self}{per}"),
                    None => format!("{self} {unit}"),
                };
                Shown { text, number: Some(f64::from(*self)), last_digit: None }
            }
        }
    )+};
}

show_number!(u8 u16 u32);

impl Show for BitsPerSecond {
    fn shown(&self, _: &str) -> Shown {
        Shown { text: self.to_string(), number: Some(self.0 as f64), last_digit: None }
    }
}

impl Show for Loss {
    fn shown(&self, _: &str) -> Shown {
        let number = match self {
            Loss::None => Some(0.0),
            Loss::Independent { probability } => Some(probability.0),
            Loss::GilbertElliott { .. } => None,
        };
        Shown { text: self.to_string(), number, last_digit: None }
    }
}

/// Jitter.
impl Show for Vec<Nanos> {
    fn shown(&self, _: &str) -> Shown {
        Shown::word(show_jitter(self))
    }
}

/// Five significant digits are more than any of these figures deserves.
fn significant(value: u64) -> u64 {
    let step = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(4));
    value.saturating_add(step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    fn shown(text: &str, number: Option<f64>, last_digit: Option<u64>) -> Shown {
        Shown { text: text.into(), number, last_digit: last_digit.map(Nanos) }
    }

    #[test]
    fn times_with_the_size_of_their_last_digit() {
        for (time, text, last) in [
            (172_690_000, "172.69 ms", 10_000),
            (50_000_000, "50 ms", 1_000_000),
            (1_000_000_000, "1 s", 1_000_000_000),
            (1_200, "1.2 us", 100),
            (250, "250 ns", 1),
        ] {
            assert_eq!(Nanos(time).shown("ns"), shown(text, Some(time as f64), Some(last)));
        }
        assert_eq!(Nanos::ZERO.shown("ns"), shown("0 ms", Some(0.0), None));
    }

    #[test]
    fn distributions_by_mean_and_bounds() {
        let law = Distribution::from_quantiles(vec![Nanos(1_000_000), Nanos(2_500_000)]).unwrap();
        let expected = shown("mean 1.75 ms, 1 ms to 2.5 ms", Some(1_750_000.0), Some(10_000));
        assert_eq!(law.shown("ns"), expected);
        let constant = Distribution::constant(Nanos(5_000));
        assert_eq!(constant.shown("ns"), shown("5 us", Some(5_000.0), Some(1_000)));
        assert_eq!(significant(123_456_789), 123_460_000);
        assert_eq!(significant(7), 7);
    }

    #[test]
    fn numbers_carry_their_unit_once() {
        assert_eq!(250_u32.shown("1/s"), shown("250/s", Some(250.0), None));
        assert_eq!(717_u32.shown("1/1024"), shown("717/1024", Some(717.0), None));
        assert_eq!(3_u8.shown("1"), shown("3", Some(3.0), None));
        assert_eq!(1358_u16.shown("B"), shown("1358 B", Some(1358.0), None));
        assert_eq!(true.shown(""), shown("true", None, None));
        let loss = Loss::Independent { probability: Probability(0.02) };
        assert_eq!(loss.shown("1"), shown("2 %", Some(0.02), None));
        assert_eq!(BitsPerSecond(250_000).shown("bit/s").number, Some(250_000.0));
    }
}

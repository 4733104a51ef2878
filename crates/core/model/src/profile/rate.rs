// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each byte adds to a cost: a time that may be finer than a nanosecond, and a law of such
//! times where it is known no better.

use std::fmt;

use toml::Value;

use super::figure::{per_byte, scale};
use crate::distribution::Distribution;
use crate::reader::{self, show};
use crate::units::Nanos;

/// A second for each byte is no rate of computation.
const MOST_NS: f64 = 1e9;
/// A law of more quantiles than that is a mistake.
const MOST_QUANTILES: usize = 1_000;

/// The time of a byte (or of an instruction), ns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rate {
    /// Evenly spaced quantiles from 0 to 1; a single one where it is always the same.
    quantiles: Box<[f64]>,
}

impl Rate {
    /// Nothing for a byte.
    pub(super) fn zero() -> Rate {
        Rate::constant(0.0)
    }

    /// Always the same.
    pub(super) fn constant(ns: f64) -> Rate {
        Rate { quantiles: Box::new([ns]) }
    }

    /// Reads `"0.8 ns"`, or `{ quantiles = [0.5, 0.8, 1.1], unit = "ns" }`, where the numbers may
    /// be one text.
    pub(super) fn read(value: &Value) -> Result<Rate, String> {
        let Some(table) = value.as_table() else {
            // A value that is no text gives the sentence that says what is expected.
            return per_byte(value.as_str().unwrap_or_default()).map(Rate::constant).map_err(
                |expected| format!("{expected} or {{ quantiles = [..], unit = \"ns\" }}"),
            );
        };
        for key in table.keys() {
            if !["quantiles", "unit"].contains(&key.as_str()) {
                let message = reader::unknown(key, ["quantiles", "unit"].into_iter());
                return Err(format!("{} {message}", reader::shown_key(key)));
            }
        }
        let unit = table.get("unit").ok_or("unit is missing: add unit = \"ns\"").map(scale)??;
        let time = |number: Option<f64>, shown: &dyn fmt::Display| match number.map(|n| n * unit) {
            Some(ns) if (0.0..MOST_NS).contains(&ns) => Ok(ns),
            Some(_) => Err(format!("quantiles: {shown} is not from 0 to below 1 s")),
            None => Err(format!("quantiles: {shown} is not a number")),
        };
        let number =
            |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
        let quantiles: Vec<f64> = match table.get("quantiles") {
            Some(Value::String(text)) => text
                .split_whitespace()
                .take(MOST_QUANTILES + 1)
                .map(|word| time(word.parse().ok(), &show(&Value::String(word.into()))))
                .collect::<Result<_, _>>()?,
            Some(Value::Array(list)) => list
                .iter()
                .take(MOST_QUANTILES + 1)
                .map(|value| time(number(value), &show(value)))
                .collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        if quantiles.is_empty() || quantiles.len() > MOST_QUANTILES {
            return Err(format!("quantiles: expected a list of 1 to {MOST_QUANTILES} times"));
        }
        if let Some([first, second]) =
            quantiles.array_windows().find(|[first, second]| second < first)
        {
            let (first, second) = (first / unit, second / unit);
            return Err(format!(
                "quantiles: {second} stands after {first}: expected ascending order"
            ));
        }
        Ok(Rate { quantiles: quantiles.into() })
    }

    /// Its mean, ns: the area under the quantiles.
    pub(super) fn mean_ns(&self) -> f64 {
        let sum: f64 = self.quantiles.iter().sum();
        match (&*self.quantiles, self.quantiles.len() - 1) {
            ([only], _) => *only,
            ([first, .., last], steps) => (sum - (first + last) / 2.0) / steps as f64,
            ([], _) => 0.0,
        }
    }

    /// The value in its middle, ns.
    pub(super) fn median_ns(&self) -> f64 {
        self.quantile_ns(0.5)
    }

    /// How many quantiles it has, one at least.
    pub(super) fn len(&self) -> usize {
        self.quantiles.len()
    }

    /// What a fraction `p` of all values do not exceed, ns; between quantiles it is linear.
    pub(super) fn quantile_ns(&self, p: f64) -> f64 {
        let last = self.quantiles.len() - 1;
        let position = p.clamp(0.0, 1.0) * last as f64;
        let index = (position as usize).min(last);
        let at = |index: usize| self.quantiles.get(index.min(last)).copied().unwrap_or(0.0);
        at(index) + (at(index + 1) - at(index)) * (position - index as f64)
    }

    /// Whether it is known to be always the same.
    pub(super) fn is_constant(&self) -> bool {
        self.quantiles.first() == self.quantiles.last()
    }

    /// The law of so many bytes together, each of which takes the same.
    pub(super) fn law(&self, bytes: f64) -> Distribution {
        let nanos = |ns: &f64| Nanos((ns * bytes).round() as u64);
        let quantiles = self.quantiles.iter().map(nanos).collect();
        // In order, as the rate is, and never empty.
        Distribution::from_quantiles(quantiles)
            .unwrap_or_else(|_| Distribution::constant(Nanos::ZERO))
    }

    /// `0.8 ns`, or the ends of its law: `0.5 to 1.1 ns`.
    pub(super) fn shown(&self) -> String {
        match (self.quantiles.first(), self.quantiles.last()) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last} ns"),
            _ => format!("{} ns", self.mean_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Result<Rate, String> {
        let table: toml::Table = format!("rate = {text}").parse().unwrap();
        Rate::read(&table["rate"])
    }

    #[test]
    fn a_time_or_a_law() {
        assert_eq!(rate("\"0.8 ns\""), Ok(Rate::constant(0.8)));
        let law = rate("{ quantiles = [0.5, 1, 4], unit = \"ns\" }").unwrap();
        assert_eq!(rate("{ quantiles = \"0.5 1 4\", unit = \"ns\" }"), Ok(law.clone()));
        assert_eq!((law.mean_ns(), law.median_ns()), (1.625, 1.0));
        assert_eq!(law.shown(), "0.5 to 4 ns");
        assert!(!law.is_constant() && Rate::zero().is_constant());
        let of_ten = law.law(10.0);
        assert_eq!((of_ten.min(), of_ten.max()), (Nanos(5), Nanos(40)));
        assert_eq!(of_ten.mean_ns(), 16.25);
        let even = rate("{ quantiles = [1, 2, 4, 8], unit = \"us\" }").unwrap();
        assert_eq!(even.median_ns(), 3_000.0);
    }

    #[test]
    fn mistakes_in_a_rate() {
        for (text, part) in [
            ("5", "expected a time per byte"),
            ("\"-1 ns\"", "expected a time per byte"),
            ("\"2e9 ns\"", "expected a time per byte"),
            ("{ quantiles = [1, 2] }", "unit is missing"),
            ("{ quantiles = [1], unit = \"kbit/s\" }", "unit is"),
            ("{ quantiles = [2, 1], unit = \"ns\" }", "ascending order"),
            ("{ quantiles = [nan, 1], unit = \"ns\" }", "NaN is not from 0 to below 1 s"),
            ("{ quantiles = [1, inf], unit = \"ns\" }", "below 1 s"),
            ("{ quantiles = [-1], unit = \"ns\" }", "below 1 s"),
            ("{ quantiles = [1], unit = \"s\" }", "below 1 s"),
            ("{ quantiles = [], unit = \"ns\" }", "a list of 1 to 1000 times"),
            ("{ quantiles = 5, unit = \"ns\" }", "a list of 1 to 1000 times"),
            ("{ quantiles = [3, 2.5], unit = \"us\" }", "2.5 stands after 3"),
            ("{ quantiles = \"1 x\", unit = \"ns\" }", "\"x\" is not a number"),
            ("{ quantiles = [\"1 ns\"], unit = \"ns\" }", "\"1 ns\" is not a number"),
            ("{ quantile = [1], unit = \"ns\" }", "did you mean quantiles"),
        ] {
            let message = rate(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        let many = vec!["1"; MOST_QUANTILES + 1].join(",");
        assert!(rate(&format!("{{ quantiles = [{many}], unit = \"ns\" }}")).is_err());
    }
}

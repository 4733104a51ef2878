// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds that results are judged by: `"https.establishment.p99" = "< 5 s"`.

use std::fmt;

use super::assignment::Item;
use crate::case::Case;
use crate::keyword::{Keyword, one_of};
use crate::metric::{Metric, Quantity};
use crate::nearest::nearest;
use crate::reader::{Mistakes, show, shown_key};
use crate::units::{ByteCount, Nanos, Probability};

/// A bound on a statistic of a metric, for every case of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The metric.
    pub metric: Metric,
    /// Its statistic.
    pub statistic: Statistic,
    /// How the statistic must compare with the bound.
    pub operator: Operator,
    /// The bound, in the metric's unit (ns, B, 1, mJ or mAh).
    pub bound: f64,
    /// As written: `https.establishment.p99 < 5 s`.
    pub text: String,
}

/// A statistic of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The largest value.
    Max,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Keyword for Statistic {
    const ALL: &'static [Self] = &[
        Statistic::Mean,
        Statistic::P50,
        Statistic::P90,
        Statistic::P95,
        Statistic::P99,
        Statistic::Max,
    ];
    const ALIASES: &'static [(&'static str, Self)] = &[("median", Statistic::P50)];

    fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::P50 => "p50",
            Statistic::P90 => "p90",
            Statistic::P95 => "p95",
            Statistic::P99 => "p99",
            Statistic::Max => "max",
        }
    }
}

impl Operator {
    /// The sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
        }
    }

    /// Whether `value` compares so with `bound`.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Operator::Less => value < bound,
            Operator::AtMost => value <= bound,
            Operator::Greater => value > bound,
            Operator::AtLeast => value >= bound,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads all bounds; mistakes are named.
pub(crate) fn read(
    items: &[Item],
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) -> Vec<Requirement> {
    let mut list = Vec::new();
    for item in items {
        let mistakes = if item.by_flag { in_flags } else { in_file };
        let key = format!("require.{}", shown_key(&item.key));
        match subject(&item.key) {
            Err(message) => mistakes.add(key, message),
            Ok((metric, statistic)) => {
                match bound(metric.quantity(), item.value.as_str().unwrap_or_default()) {
                    Err(expected) => {
                        mistakes.add(key, format!("is {}: {expected}", show(&item.value)));
                    }
                    Ok((operator, bound)) => {
                        let text = item.value.as_str().unwrap_or_default().trim();
                        let text = format!("{} {text}", item.key);
                        list.push(Requirement { metric, statistic, operator, bound, text });
                    }
                }
            }
        }
    }
    list
}

/// Names bounds on metrics that no case has: they would hold whatever happens.
pub(crate) fn refuse_without_effect(
    items: &[Item],
    cases: &[Case],
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) {
    for item in items {
        let Ok((metric, _)) = subject(&item.key) else { continue };
        if cases.iter().any(|case| metric.applies_to(case)) {
            continue;
        }
        let name = metric.name();
        let with_layer = cases.iter().find(|case| case.stack.has(metric.layer()));
        let message = if let Some(lacks) = with_layer.and_then(|case| metric.lacks(case)) {
            format!("judges no case: {name} {lacks}, or remove it")
        } else {
            let protocol = cases.first().map_or("", |case| case.stack.protocol().name());
            format!(
                "judges no case: {protocol} has no {name}; remove it, or require one of its own \
                 metrics"
            )
        };
        let mistakes = if item.by_flag { in_flags } else { in_file };
        mistakes.add(format!("require.{}", shown_key(&item.key)), message);
    }
}

/// `https.establishment.p99` as metric and statistic.
fn subject(key: &str) -> Result<(Metric, Statistic), String> {
    let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    let (name, statistic) = match key.rsplit_once('.') {
        // A metric's own name has a dot, so the statistic may be what is missing.
        Some(_) if names.contains(&key) => {
            let all: Vec<&str> = Statistic::ALL.iter().map(|statistic| statistic.name()).collect();
            return Err(format!("lacks its statistic: add .{}", all.join(", .")));
        }
        Some((name, statistic)) => (name, statistic),
        None => (key, ""),
    };
    let Some(metric) = Metric::ALL.iter().copied().find(|metric| metric.name() == name) else {
        let hint = match nearest(name, names.iter().copied()) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("expected {}", one_of(&names)),
        };
        return Err(format!("is not a metric; {hint}"));
    };
    let statistic = Statistic::from_word(statistic)
        .map_err(|expected| format!("has no such statistic: {expected}"))?;
    if metric.quantity() == Quantity::Share && statistic != Statistic::Mean {
        return Err(format!("is 0 or 1 in each trial: require {name}.mean, their share"));
    }
    Ok((metric, statistic))
}

/// `< 5 s` as operator and bound, in the unit of values as stored.
fn bound(quantity: Quantity, text: &str) -> Result<(Operator, f64), String> {
    let example = match quantity {
        Quantity::Duration => "\"< 5 s\"",
        Quantity::Bytes => "\"< 4 KiB\"",
        Quantity::Count => "\"<= 20\"",
        Quantity::Share => "\"< 1 %\"",
        Quantity::Rate => "\">= 100 1/s\"",
        Quantity::Energy => "\"< 5 mJ\"",
        Quantity::Charge => "\"< 0.5 mAh\"",
    };
    let text = text.trim();
    let operators = [Operator::AtMost, Operator::AtLeast, Operator::Less, Operator::Greater];
    let Some(operator) = operators.into_iter().find(|op| text.starts_with(op.sign())) else {
        return Err(format!("expected a bound such as {example}"));
    };
    let rest = text[operator.sign().len()..].trim();
    let bound = match quantity {
        Quantity::Duration => {
            rest.parse::<Nanos>().map(|bound| bound.0 as f64).map_err(|error| error.0)
        }
        Quantity::Bytes => {
            rest.parse::<ByteCount>().map(|bound| bound.0 as f64).map_err(|error| error.0)
        }
        Quantity::Share => {
            rest.parse::<Probability>().map(|bound| bound.0).map_err(|error| error.0)
        }
        Quantity::Count => {
            rest.parse::<u32>().map(f64::from).map_err(|_| "expected a whole number".into())
        }
        Quantity::Rate | Quantity::Energy | Quantity::Charge => amount(rest, quantity.unit()),
    };
    bound.map(|bound| (operator, bound)).map_err(|why| format!("{why} after {}", operator.sign()))
}

/// `5.5 mJ`: a number and the one unit in which values are stored.
fn amount(text: &str, unit: &str) -> Result<f64, String> {
    let number = text.strip_suffix(unit).and_then(|number| number.trim_end().parse().ok());
    number
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("expected a number of {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_in_the_units_of_their_metric() {
        let subject = subject("https.establishment.p99");
        assert_eq!(subject, Ok((Metric::HttpsEstablishment, Statistic::P99)));
        let bound = |metric: Metric, text| bound(metric.quantity(), text);
        let bytes = Metric::BytesLink;
        assert_eq!(bound(Metric::TcpConnect, "<= 1.5 s"), Ok((Operator::AtMost, 1.5e9)));
        assert_eq!(bound(bytes, ">4 KiB"), Ok((Operator::Greater, 4096.0)));
        assert_eq!(bound(Metric::PacketsLink, ">= 20"), Ok((Operator::AtLeast, 20.0)));
        assert_eq!(bound(Metric::ConnectionFailed, "< 1 %"), Ok((Operator::Less, 0.01)));
        assert!(bound(Metric::ConnectionFailed, "< 2").unwrap_err().contains("from 0 to 1"));
        assert!(bound(bytes, "< 5 s").unwrap_err().contains("expected a size"));
        assert!(bound(bytes, "5 B").unwrap_err().contains("such as \"< 4 KiB\""));
        assert!(Operator::Less.holds(1.0, 2.0) && !Operator::Less.holds(2.0, 2.0));
    }

    #[test]
    fn bounds_on_energy_and_charge() {
        assert_eq!(bound(Quantity::Energy, "< 5.5 mJ"), Ok((Operator::Less, 5.5)));
        assert_eq!(bound(Quantity::Charge, ">= 0.25mAh"), Ok((Operator::AtLeast, 0.25)));
        let error = bound(Quantity::Energy, "< 5 mAh").unwrap_err();
        assert_eq!(error, "expected a number of mJ after <");
        assert!(bound(Quantity::Charge, "< inf mAh").is_err());
    }

    #[test]
    fn unknown_metrics_and_statistics() {
        assert!(subject("https.establishment").unwrap_err().contains("add .mean, .p50"));
        assert!(subject("https.etablishment.p99").unwrap_err().contains("https.establishment?"));
        assert!(subject("https.establishment.p999").unwrap_err().contains("p99"));
        assert!(
            subject("connection.failed.p95")
                .unwrap_err()
                .contains("require connection.failed.mean")
        );
        assert!(subject("x").is_err());
    }
}

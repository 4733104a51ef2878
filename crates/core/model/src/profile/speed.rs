// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much slower or faster than its costs a machine is for a whole connection.
//!
//! Costs are drawn step by step, so that a connection's slow steps and its quick ones nearly
//! cancel. Real slowness (a neighbour on the host, a clock rate, cold caches) lasts for longer than
//! a step: it is shared by all steps of a connection. A profile may state that as a factor by which
//! all computing of a role in a connection takes longer.

use toml::Value;

use super::figure::{FigureOf, Input, Provenance};
use super::shown::Shown;
use crate::reader::{Section, show};

/// A law of more quantiles than that is a mistake.
const MOST_QUANTILES: usize = 1_000;

/// A machine that is a hundred times slower than itself is a mistake; so is one as much quicker.
const MOST: f64 = 100.0;

/// A device's `[speed]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// The factor that all computing of a role in one connection has in common: evenly spaced
    /// quantiles from 0 to 1, not falling, linear between them. A single one is no law: all costs
    /// times that.
    pub connection: Box<[f64]>,
    /// The same of what is computed with cold caches, after a wait; `connection` where there is
    /// none. A connection has the same place in both laws.
    pub waited: Option<Box<[f64]>>,
    /// The standard deviation of the logarithm of the factor that a whole sitting (a part of a
    /// measurement, some minutes) has in common, whose median is 1. A trial is of some sitting or
    /// other, and draws it.
    pub sitting: Option<f64>,
    /// The same of system calls and wake-ups (the stages `client_system` and `server_system`, but
    /// for the time of the network's interfaces in them, which no factor changes), which have a
    /// factor of their own, independent of that of what computes; where there is none, `sitting`
    /// holds for them as well.
    pub sitting_system: Option<f64>,
    pub(super) provenance: Provenance,
}

impl Speed {
    /// Reads `[speed]` of a profile, if there is one.
    pub(super) fn read(root: &Section<'_>, around: &Provenance) -> Option<Speed> {
        root.table.get("speed")?;
        let section = root.section("speed")?;
        if section.table.get("connection").is_none() {
            section.refuse("connection", "is missing: expected factors such as [0.95, 1, 1.2]");
        }
        let connection = section.read("connection", factors);
        let waited = section.read("waited", factors);
        let deviation = |value: &Value| match number(value) {
            Some(share) if (0.0..1.0).contains(&share) => Ok(share),
            _ => Err("expected a share from 0 to below 1".to_owned()),
        };
        let sitting = section.read("sitting", deviation);
        let sitting_system = section.read("sitting_system", deviation);
        let provenance = Provenance::read(&section, around);
        section.get("note");
        section.refuse_unknown();
        Some(Speed { connection: connection?, waited, sitting, sitting_system, provenance })
    }

    /// The factor of warm computing that a fraction `p` of all connections do not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        quantile(&self.connection, p)
    }

    /// As figures that predictions rest on.
    pub(super) fn inputs(&self, device: &str) -> Vec<Input> {
        let shown = |factors: &[f64]| {
            let [low, middle, high] =
                [0.05, 0.5, 0.95].map(|p| format!("{:.3}", quantile(factors, p)));
            Shown::word(format!("median {middle}, nine in ten from {low} to {high}"))
        };
        let figure =
            |key: &str, shown| self.provenance.input(FigureOf::Device, (device, key), shown, "1");
        let sittings =
            [("speed.sitting", self.sitting), ("speed.sitting_system", self.sitting_system)];
        let sittings = sittings.into_iter().filter_map(|(key, share)| {
            let text = format!("{:.4}", share?);
            Some(figure(key, Shown { text, number: share, last_digit: None }))
        });
        let waited = self.waited.as_ref().map(|of| figure("speed.waited", shown(of)));
        let connection = figure("speed.connection", shown(&self.connection));
        std::iter::once(connection).chain(waited).chain(sittings).collect()
    }
}

/// The factor that a fraction `p` of all do not exceed; there is one at least.
fn quantile(factors: &[f64], p: f64) -> f64 {
    let last = factors.len() - 1;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let index = position as usize;
    let (low, high) = (factors[index], factors[(index + 1).min(last)]);
    low + (high - low) * (position - index as f64)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|whole| whole as f64))
}

fn factors(value: &Value) -> Result<Box<[f64]>, String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() || list.len() > MOST_QUANTILES {
        return Err(format!("expected a list of 1 to {MOST_QUANTILES} factors"));
    }
    let factor = |value: &Value| match number(value) {
        Some(factor) if (1.0 / MOST..=MOST).contains(&factor) => Ok(factor),
        _ => Err(format!("{} is no factor: expected 0.01 to 100", show(value))),
    };
    let factors: Box<[f64]> = list.iter().map(factor).collect::<Result<_, _>>()?;
    match factors.array_windows().find(|[first, second]| second < first) {
        Some([first, second]) => {
            Err(format!("{second} stands after {first}: expected ascending order"))
        }
        None => Ok(factors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::DeviceProfile;

    const DEVICE: &str = "name = \"d\"\ndescription = \"a device\"\nsource = \"a bench\"\n\
                          kind = \"measured\"\n[[operation]]\nname = \"server.sign\"\n\
                          warm = \"1 ms\"\n";

    fn parse(speed: &str) -> Result<Option<Speed>, String> {
        let text = format!("{DEVICE}{speed}");
        let profile = DeviceProfile::parse("d", &text, "d.toml");
        profile.map(|of| of.speed).map_err(|error| error.to_string())
    }

    #[test]
    fn a_law_of_factors_and_a_sittings_spread() {
        assert_eq!(parse(""), Ok(None));
        let speed = parse("[speed]\nconnection = [0.9, 1, 1.5]\nsitting = 0.04\n");
        let speed = speed.unwrap().unwrap();
        assert_eq!((speed.quantile(0.0), speed.quantile(0.5)), (0.9, 1.0));
        assert_eq!((speed.quantile(0.75), speed.quantile(1.0)), (1.25, 1.5));
        assert_eq!(speed.sitting, Some(0.04));
        let [connection, sitting] = speed.inputs("d").try_into().unwrap();
        assert_eq!(connection.name(), "d speed.connection");
        assert_eq!(connection.value.text, "median 1.000, nine in ten from 0.910 to 1.450");
        assert_eq!((sitting.name(), sitting.value.number), ("d speed.sitting".into(), Some(0.04)));
        assert_eq!(sitting.source, "a bench");
        assert_eq!((speed.waited.as_ref(), speed.sitting_system), (None, None));
        let speed = parse("[speed]\nconnection = [1]\nsitting = 0.04\nsitting_system = 0.2\n");
        let speed = speed.unwrap().unwrap();
        assert_eq!((speed.sitting, speed.sitting_system), (Some(0.04), Some(0.2)));
        let [_, _, system] = speed.inputs("d").try_into().unwrap();
        assert_eq!(
            (system.name(), system.value.text),
            ("d speed.sitting_system".into(), "0.2000".into())
        );
        let speed = parse("[speed]\nconnection = [1]\nwaited = [0.8, 1, 2]\n").unwrap().unwrap();
        let [_, waited] = speed.inputs("d").try_into().unwrap();
        assert_eq!(waited.name(), "d speed.waited");
        assert_eq!(waited.value.text, "median 1.000, nine in ten from 0.820 to 1.900");
    }

    #[test]
    fn mistakes_name_the_key() {
        for (text, expected) in [
            ("", "d.toml: speed.connection is missing: expected factors"),
            ("connection = 1.2", "d.toml: speed.connection is 1.2: expected a list of 1 to 1000"),
            ("connection = []", "d.toml: speed.connection is []: expected a list of 1 to 1000"),
            ("connection = [1, 0.9]", "0.9 stands after 1: expected ascending order"),
            ("connection = [0, 1]", "0 is no factor: expected 0.01 to 100"),
            ("connection = [1, nan]", "NaN is no factor: expected 0.01 to 100"),
            ("connection = [1, \"2\"]", "\"2\" is no factor"),
            ("connection = [1]\nwaited = [2, 1]", "1 stands after 2: expected ascending order"),
            ("connection = [1]\nsitting = 1.5", "d.toml: speed.sitting is 1.5: expected a share"),
            (
                "connection = [1]\nsitting_system = -1",
                "speed.sitting_system is -1: expected a share",
            ),
            ("connection = [1]\nsiting = 0.1", "speed.siting is unknown; did you mean sitting?"),
        ] {
            let message = parse(&format!("[speed]\n{text}\n")).unwrap_err();
            assert!(message.contains(expected), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
        assert!(parse("speed = 3\n").unwrap_err().contains("operation[0].speed"));
    }
}

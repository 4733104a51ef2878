// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the bench is asked to do.

use serde::Deserialize;
use warifu_tls_client::{Error, Variant};

use super::samples::Temperature;

/// A guard against a typing mistake: an hour of cold rounds of one variant.
const MOST_ROUNDS: u32 = 100_000;
/// Longer pauses find no colder processor.
const MOST_GAP_MS: f64 = 1_000.0;
/// Nor do longer rests.
const MOST_REST_MS: f64 = 60_000.0;

/// A run of the bench, as JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is timed.
    pub variants: Vec<Variant>,
    /// Connections of each variant without pauses.
    pub warm: u32,
    /// Connections of each variant with a pause before each wake-up.
    pub cold: u32,
    /// That pause, ms.
    #[serde(default = "gap_ms")]
    pub gap_ms: f64,
    /// Connections of each variant without pauses, each of which begins after a rest.
    #[serde(default)]
    pub rested: u32,
    /// That rest, ms.
    #[serde(default = "rest_ms")]
    pub rest_ms: f64,
    /// Length of the response with its head, B.
    #[serde(default = "response_bytes")]
    pub response_bytes: usize,
    /// Repetitions of each stand-alone operation; 0 leaves them out.
    #[serde(default)]
    pub primitives: u32,
}

const fn gap_ms() -> f64 {
    10.0
}

const fn rest_ms() -> f64 {
    500.0
}

const fn response_bytes() -> usize {
    1_065
}

impl Config {
    /// Reads and checks it; an error names the key and the fix.
    pub fn parse(text: &str) -> Result<Config, Error> {
        let mut from = serde_json::Deserializer::from_str(text);
        let config: Config = serde_path_to_error::deserialize(&mut from)
            .map_err(|error| Error::Config(format!("{}: {}", error.path(), error.inner())))?;
        from.end().map_err(|error| Error::Config(format!("after the configuration: {error}")))?;
        let refuse = |text: String| Err(Error::Config(text));
        for (index, variant) in config.variants.iter().enumerate() {
            if let Err(error) = variant.check() {
                return refuse(format!("variants[{index}].{error}"));
            }
        }
        let rounds = config.warm.saturating_add(config.cold).saturating_add(config.rested);
        if rounds > MOST_ROUNDS || (rounds == 0 && config.primitives == 0) {
            return refuse(format!(
                "warm + cold + rested is {rounds}: expected 1 to {MOST_ROUNDS}"
            ));
        }
        if config.primitives > MOST_ROUNDS {
            return refuse(format!(
                "primitives is {}: expected at most {MOST_ROUNDS}",
                config.primitives
            ));
        }
        if !(0.0..=MOST_GAP_MS).contains(&config.gap_ms) {
            return refuse(format!("gap_ms is {}: expected 0 to {MOST_GAP_MS}", config.gap_ms));
        }
        if !(0.0..=MOST_REST_MS).contains(&config.rest_ms) {
            return refuse(format!("rest_ms is {}: expected 0 to {MOST_REST_MS}", config.rest_ms));
        }
        if config.response_bytes > 1 << 20 {
            return refuse(format!(
                "response_bytes is {}: expected at most 1048576",
                config.response_bytes
            ));
        }
        Ok(config)
    }

    /// How many of the rested rounds are to be done when so many of the others are: they are spread
    /// evenly among them.
    pub(super) fn rested_after(&self, done: u32) -> u32 {
        let others = u64::from(self.warm + self.cold);
        let rested = (u64::from(self.rested) * u64::from(done)).checked_div(others);
        rested.map_or(self.rested, |rested| rested as u32)
    }

    /// Cold rounds are spread evenly among the warm ones.
    pub(super) fn temperature_of(&self, round: u32) -> Temperature {
        let (cold, all) = (u64::from(self.cold), u64::from(self.warm + self.cold));
        let before = u64::from(round) * cold / all;
        let after = (u64::from(round) + 1) * cold / all;
        if after > before { Temperature::Cold } else { Temperature::Warm }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Config::parse(&text);
        }

        #[test]
        fn cold_rounds_match_the_request(warm in 0_u32..500, cold in 0_u32..500) {
            prop_assume!(warm + cold > 0);
            let config = Config {
                variants: Vec::new(), warm, cold, gap_ms: 1.0, rested: 0, rest_ms: 1.0,
                response_bytes: 0, primitives: 0,
            };
            let count = (0..warm + cold)
                .filter(|&round| config.temperature_of(round) == Temperature::Cold)
                .count();
            prop_assert_eq!(count, cold as usize);
        }
    }

    #[test]
    fn rested_rounds_are_spread_among_the_others() {
        let parse = |warm: u32, rested: u32| {
            let text =
                format!(r#"{{"variants": [], "warm": {warm}, "cold": 0, "rested": {rested}}}"#);
            Config::parse(&text).unwrap()
        };
        let config = parse(10, 4);
        let done: Vec<u32> = (0..=10).map(|done| config.rested_after(done)).collect();
        assert_eq!(done, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4]);
        assert_eq!(parse(0, 4).rested_after(0), 4, "where there are no others, at once");
        assert_eq!((config.rest_ms, config.gap_ms), (500.0, 10.0));
    }

    #[test]
    fn mistakes_name_the_key() {
        let said = |text: &str| Config::parse(text).unwrap_err().to_string();
        assert!(
            said(r#"{"variants": [], "warm": 0, "cold": 0}"#).contains("warm + cold + rested is 0")
        );
        assert!(
            said(r#"{"variants": [], "warm": 1, "cold": 0, "gap_ms": -1}"#)
                .contains("gap_ms is -1")
        );
        assert!(
            said(r#"{"variants": [{"tls": "1.4"}], "warm": 1, "cold": 0}"#)
                .contains("variants[0].tls")
        );
    }
}

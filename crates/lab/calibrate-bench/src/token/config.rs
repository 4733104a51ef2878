// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is to be timed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use warifu_pkcs11_client::Wanted;
use zeroize::Zeroizing;

use crate::error::BenchError;

/// More than anyone waits for.
const MOST_TRIALS: u32 = 1_000_000;

/// A run, as JSON on standard input.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The shared library of the token. Left out with a virtual card.
    #[serde(default)]
    pub module: Option<PathBuf>,
    /// Our own module over a card in this process, on the virtual clock.
    #[serde(default)]
    pub virtual_card: Option<VirtualCard>,
    /// The token's label.
    #[serde(default)]
    pub token: Option<String>,
    /// The key's label.
    #[serde(default)]
    pub key: Option<String>,
    /// The user's PIN.
    #[serde(default)]
    pub pin: Option<Zeroizing<String>>,
    /// What is timed.
    pub modes: Vec<Mode>,
    /// Trials of each mode.
    pub trials: u32,
    /// Decides the order of the modes.
    #[serde(default)]
    pub seed: u64,
    /// The command of the software baseline, with its arguments.
    #[serde(default)]
    pub software: Vec<String>,
}

/// A card in this process.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualCard {
    /// Its timing profile, a file.
    pub profile: PathBuf,
    /// Decides every draw.
    #[serde(default)]
    pub seed: u64,
}

/// What a trial is: the paper's modes (papers/1, Table 2), and a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A command that signs in software.
    LocalSw,
    /// C_SignInit and C_Sign in a session that is kept.
    SignOnly,
    /// All five calls, in a new session each time.
    Total,
    /// All five calls and those before them, in a new process each time.
    Fresh,
}

impl Mode {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::LocalSw => "local_sw",
            Mode::SignOnly => "sign_only",
            Mode::Total => "total",
            Mode::Fresh => "fresh",
        }
    }
}

impl Config {
    /// Reads and checks it; an error names the key and the fix.
    ///
    /// # Errors
    /// [`BenchError::Config`].
    pub fn parse(text: &str) -> Result<Config, BenchError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let config: Config = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| BenchError::Config(format!("{}: {}", error.path(), error.inner())))?;
        json.end().map_err(|error| BenchError::Config(format!("after the object: {error}")))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: &str| Err(BenchError::Config(text.to_owned()));
        match (&self.module, &self.virtual_card) {
            (None, None) => return refuse("module is missing: name a PKCS#11 module"),
            (Some(_), Some(_)) => return refuse("virtual_card is given beside module: choose one"),
            _ => {}
        }
        if !(1..=MOST_TRIALS).contains(&self.trials) {
            return Err(BenchError::Config(format!(
                "trials is {}: expected 1 to {MOST_TRIALS}",
                self.trials
            )));
        }
        if self.modes.is_empty() {
            return refuse("modes is empty: expected local_sw, sign_only, total or fresh");
        }
        if self.modes.contains(&Mode::LocalSw) && self.software.is_empty() {
            return refuse("software is empty: local_sw needs the command that signs");
        }
        let on_wall_clock = |mode| matches!(mode, Mode::LocalSw | Mode::Fresh);
        if self.virtual_card.is_some() && self.modes.iter().copied().any(on_wall_clock) {
            return refuse("modes: a virtual card has no wall clock; expected sign_only and total");
        }
        Ok(())
    }

    /// Token, key and PIN.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { token: self.token.clone(), key: self.key.clone(), pin: self.pin.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"{"module": "m.so", "modes": ["sign_only", "total"], "trials": 3}"#;

    #[test]
    fn minimal_configuration() {
        let config = Config::parse(LEAST).unwrap();
        assert_eq!(config.modes, [Mode::SignOnly, Mode::Total]);
    }

    #[test]
    fn mistakes_name_the_key() {
        for (from, to, says) in [
            ("\"m.so\"", "null", "module is missing"),
            ("\"trials\": 3", "\"trials\": 0", "trials is 0: expected 1 to"),
            ("\"total\"", "\"totals\"", "modes[1]: unknown variant"),
            ("\"total\"", "\"local_sw\"", "software is empty"),
            ("[\"sign_only\", \"total\"]", "[]", "modes is empty"),
            ("\"m.so\"", "null, \"virtual_card\": {\"profile\": \"x\"}, \"x\": 1", "unknown field"),
        ] {
            let said = Config::parse(&LEAST.replace(from, to)).unwrap_err();
            assert!(said.to_string().contains(says), "{to}: {said}");
            assert_eq!(said.exit_code(), 2);
        }
        let fresh = r#"{"virtual_card": {"profile": "x"}, "modes": ["fresh"], "trials": 3}"#;
        assert!(Config::parse(fresh).unwrap_err().to_string().contains("no wall clock"));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent's configuration, TOML.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use warifu_agent_protocol::Address;
use warifu_iotsafe_client::{CardAddress, Channel, ChannelPolicy, Options};

use crate::card::CardSettings;
use crate::pin::PinSource;
use crate::rights::{Right, Rights};

/// The agent's configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Its socket; the default one for none.
    pub socket: Option<PathBuf>,
    /// The address and port to serve metrics at over HTTP.
    pub metrics: Option<String>,
    /// Its cards.
    pub cards: Vec<CardConfig>,
    /// Who may call; if empty, the agent's own user alone.
    pub callers: Vec<Rights>,
}

/// A card.
#[derive(Clone, Debug)]
pub struct CardConfig {
    /// Where it is.
    pub address: CardAddress,
    /// Which applet on which channel.
    pub options: Options,
    /// Where its PIN comes from, if it has one at the start.
    pub pin: Option<PinSource>,
    /// How long a PIN is held; without limit for none.
    pub pin_lifetime: Option<Duration>,
    /// How the agent holds it.
    pub settings: CardSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    socket: Option<PathBuf>,
    metrics: Option<String>,
    #[serde(default)]
    card: Vec<RawCard>,
    #[serde(default)]
    caller: Vec<RawCaller>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCard {
    name: Option<String>,
    address: String,
    aid: Option<String>,
    channel: Option<u8>,
    pin: Option<String>,
    pin_lifetime_s: Option<u64>,
    idle_close_s: Option<u64>,
    attempt_ms: Option<u64>,
    retries: Option<u32>,
    ahead_after_ms: Option<u64>,
    random_ahead_bytes: Option<usize>,
    pairs_ahead: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCaller {
    uid: u32,
    keys: Option<Vec<String>>,
    may: Option<Vec<String>>,
}

impl Config {
    /// Reads a configuration; `origin` names it in errors.
    ///
    /// # Errors
    /// One line that names file, key and how to fix it.
    pub fn parse(text: &str, origin: &str) -> Result<Config, String> {
        let wrong = |what: String| format!("{origin}: {what}");
        let document =
            toml::Deserializer::parse(text).map_err(|error| wrong(error.message().to_owned()))?;
        let raw: Raw = serde_path_to_error::deserialize(document).map_err(|error| {
            wrong(unknown_key(&error.path().to_string(), error.inner().message()))
        })?;
        let cards = raw.card.into_iter().enumerate();
        let cards = cards.map(|(at, card)| CardConfig::of(card, at));
        let cards = cards.collect::<Result<Vec<_>, String>>().map_err(&wrong)?;
        for (at, card) in cards.iter().enumerate() {
            if cards[..at].iter().any(|other| other.settings.name == card.settings.name) {
                let name = &card.settings.name;
                return Err(wrong(format!(
                    "card[{at}].name is \"{name}\", which another card has already"
                )));
            }
        }
        let callers = raw.caller.into_iter().map(rights);
        let callers = callers.collect::<Result<_, String>>().map_err(&wrong)?;
        Ok(Config { socket: raw.socket, metrics: raw.metrics, cards, callers })
    }
}

impl CardConfig {
    /// A card with default settings.
    #[must_use]
    pub fn at(address: CardAddress, name: &str) -> CardConfig {
        CardConfig {
            address,
            options: Options::default(),
            pin: None,
            pin_lifetime: None,
            settings: CardSettings::new(name),
        }
    }

    fn of(raw: RawCard, at: usize) -> Result<CardConfig, String> {
        let key = |key: &str| format!("card[{at}].{key}");
        let address =
            card_address(&raw.address).map_err(|error| format!("{}: {error}", key("address")))?;
        let name =
            raw.name.unwrap_or_else(|| if at == 0 { "card".into() } else { format!("card{at}") });
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        {
            return Err(format!("{}: expected letters, digits, - and _", key("name")));
        }
        let mut card = CardConfig::at(address, &name);
        if let Some(text) = &raw.aid {
            let aid = bytes_of(text).filter(|aid| (5..=16).contains(&aid.len()));
            card.options.aid =
                Some(aid.ok_or_else(|| {
                    format!("{}: expected 5 to 16 bytes, hexadecimal", key("aid"))
                })?);
        }
        if let Some(number) = raw.channel {
            let channel = Channel::new(number).filter(|_| number > 0);
            let channel = channel.ok_or_else(|| format!("{}: expected 1 to 19", key("channel")))?;
            card.options.channel = ChannelPolicy::Fixed(channel);
        }
        card.pin = raw
            .pin
            .map(|pin| pin.parse())
            .transpose()
            .map_err(|error: String| format!("card[{at}].{error}"))?;
        card.pin_lifetime = raw.pin_lifetime_s.filter(|s| *s > 0).map(Duration::from_secs);
        let settings = &mut card.settings;
        let set = |to: &mut Duration, given: Option<Duration>| *to = given.unwrap_or(*to);
        set(&mut settings.idle_close, raw.idle_close_s.map(Duration::from_secs));
        set(&mut settings.ahead_after, raw.ahead_after_ms.map(Duration::from_millis));
        let attempt = raw.attempt_ms.map(Duration::from_millis);
        if attempt.is_some_and(|attempt| attempt.is_zero()) {
            return Err(format!("{} is 0: expected 1 or more", key("attempt_ms")));
        }
        set(&mut settings.retry.attempt, attempt);
        settings.retry.times = raw.retries.unwrap_or(settings.retry.times);
        let random = raw.random_ahead_bytes.unwrap_or(settings.random_ahead_bytes);
        if random > 1 << 16 {
            return Err(format!(
                "{} is {random}: expected at most 65536",
                key("random_ahead_bytes")
            ));
        }
        settings.random_ahead_bytes = random;
        settings.pairs_ahead = raw.pairs_ahead.unwrap_or(settings.pairs_ahead);
        Ok(card)
    }
}

/// Reads the address of a card that the agent is to hold.
///
/// # Errors
/// One line that says which addresses there are.
pub fn card_address(text: &str) -> Result<CardAddress, String> {
    match text.parse() {
        Ok(Address::Card(card)) => Ok(card),
        Ok(Address::Agent { .. }) => {
            Err("an agent cannot hold another agent's card: give the card's own address".into())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn rights(raw: RawCaller) -> Result<Rights, String> {
    let right = |name: &String| {
        let known = Right::ALL.into_iter().find(|right| right.name() == name);
        known.ok_or_else(|| {
            let names = Right::ALL.map(Right::name);
            let near = warifu_model::nearest(name, names.into_iter());
            let near = near.map_or_else(|| names.join(", "), |near| format!("\"{near}\""));
            format!("caller.may has \"{name}\": expected {near}")
        })
    };
    let may = raw.may.as_ref().map(|names| names.iter().map(right).collect::<Result<_, _>>());
    let may = may.transpose()?.unwrap_or_else(|| Right::DEFAULT.to_vec());
    let keys = raw.keys.filter(|keys| !keys.iter().any(|key| key == "*"));
    Ok(Rights { uid: raw.uid, keys, may })
}

/// Serde's message; for an unknown key, the key that was most likely meant.
fn unknown_key(path: &str, message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let message = message.lines().next().unwrap_or_default();
    match quoted.next() {
        Some(key) if message.starts_with("unknown field") => {
            let known: Vec<&str> = quoted.collect();
            let near = warifu_model::nearest(key, known.iter().copied());
            let right = near.map_or_else(|| known.join(", "), |near| format!("\"{near}\""));
            format!("{path}: unknown key; expected {right}")
        }
        _ => format!("{path}: {message}"),
    }
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_configuration() {
        let text = r#"
            metrics = "127.0.0.1:9464"
            [[card]]
            name = "meter"
            address = "unix:/run/card.sock"
            pin = "file:/etc/pin"
            pin_lifetime_s = 60
            idle_close_s = 5
            retries = 2
            [[caller]]
            uid = 33
            keys = ["client"]
            may = ["sign", "token"]
        "#;
        let config = Config::parse(text, "agent.toml").unwrap();
        let card = &config.cards[0];
        assert_eq!((&card.settings.name[..], card.settings.retry.times), ("meter", 2));
        assert_eq!(card.settings.idle_close, Duration::from_secs(5));
        assert_eq!(card.pin_lifetime, Some(Duration::from_secs(60)));
        let rights = &config.callers[0];
        assert!(rights.covers(&[1], "client") && !rights.covers(&[2], "other"));
        assert_eq!(rights.may, [Right::Sign, Right::Token]);
    }

    #[test]
    fn errors_are_one_line_with_the_nearest_valid_name() {
        for (text, says) in [
            ("sokket = \"x\"", "agent.toml: sokket: unknown key; expected \"socket\""),
            (
                "[[card]]\naddress = \"pcsc\"\npin_lifetime = 1",
                "agent.toml: card[0].pin_lifetime: unknown key; expected \"pin_lifetime_s\"",
            ),
            ("[[card]]\naddress = \"x\"", "agent.toml: card[0].address: card is \"x\": expected"),
            ("[[card]]\naddress = \"agent\"", "agent.toml: card[0].address: an agent cannot hold"),
            (
                "[[card]]\naddress = \"pcsc\"\npin = \"1234\"",
                "agent.toml: card[0].pin: expected ask",
            ),
            (
                "[[caller]]\nuid = 1\nmay = [\"sing\"]",
                "agent.toml: caller.may has \"sing\": expected \"sign\"",
            ),
            ("[[card]", "agent.toml: "),
        ] {
            let error = Config::parse(text, "agent.toml").unwrap_err();
            assert!(error.starts_with(says) && error.lines().count() == 1, "{error}");
            assert!(!error.contains("1234"), "{error}");
        }
    }
}

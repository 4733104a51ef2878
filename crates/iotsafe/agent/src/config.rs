// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent's configuration, TOML.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use warifu_agent_protocol::Address;
use warifu_iotsafe_client::{CardAddress, Channel, ChannelPolicy, Options};

use crate::card::Holding;
use crate::pin::PinSource;
use crate::rights::{Right, Rights};

/// What the agent is told.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where it listens; the usual place for none.
    pub socket: Option<PathBuf>,
    /// Where it gives its metrics over HTTP: an address and a port.
    pub metrics: Option<String>,
    /// Its cards.
    pub cards: Vec<CardConfig>,
    /// Who may call; none for the agent's own user alone.
    pub callers: Vec<Rights>,
}

/// A card.
#[derive(Clone, Debug)]
pub struct CardConfig {
    /// Where it is.
    pub address: CardAddress,
    /// Which applet on which channel.
    pub options: Options,
    /// Where its PIN comes from, if it comes at the start.
    pub pin: Option<PinSource>,
    /// How long a PIN is held; as long as the agent lives for none.
    pub pin_lifetime: Option<Duration>,
    /// How it is held.
    pub holding: Holding,
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
    /// One line that names file, key and mend.
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
            if cards[..at].iter().any(|other| other.holding.name == card.holding.name) {
                let name = &card.holding.name;
                return Err(wrong(format!("card[{at}].name is \"{name}\", as another's is")));
            }
        }
        let callers = raw.caller.into_iter().map(rights);
        let callers = callers.collect::<Result<_, String>>().map_err(&wrong)?;
        Ok(Config { socket: raw.socket, metrics: raw.metrics, cards, callers })
    }
}

impl CardConfig {
    /// A card of which only the address is known.
    #[must_use]
    pub fn at(address: CardAddress, name: &str) -> CardConfig {
        CardConfig {
            address,
            options: Options::default(),
            pin: None,
            pin_lifetime: None,
            holding: Holding::usual(name),
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
        let holding = &mut card.holding;
        let set = |to: &mut Duration, given: Option<Duration>| *to = given.unwrap_or(*to);
        set(&mut holding.idle_close, raw.idle_close_s.map(Duration::from_secs));
        set(&mut holding.ahead_after, raw.ahead_after_ms.map(Duration::from_millis));
        let attempt = raw.attempt_ms.map(Duration::from_millis);
        if attempt.is_some_and(|attempt| attempt.is_zero()) {
            return Err(format!("{} is 0: expected 1 or more", key("attempt_ms")));
        }
        set(&mut holding.retry.attempt, attempt);
        holding.retry.times = raw.retries.unwrap_or(holding.retry.times);
        let random = raw.random_ahead_bytes.unwrap_or(holding.random_ahead_bytes);
        if random > 1 << 16 {
            return Err(format!(
                "{} is {random}: expected at most 65536",
                key("random_ahead_bytes")
            ));
        }
        holding.random_ahead_bytes = random;
        holding.pairs_ahead = raw.pairs_ahead.unwrap_or(holding.pairs_ahead);
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
    let right = |word: &String| {
        let known = Right::ALL.into_iter().find(|right| right.word() == word);
        known.ok_or_else(|| {
            let words = Right::ALL.map(Right::word);
            let near = warifu_model::nearest(word, words.into_iter());
            let near = near.map_or_else(|| words.join(", "), |near| format!("\"{near}\""));
            format!("caller.may has \"{word}\": expected {near}")
        })
    };
    let may = raw.may.as_ref().map(|words| words.iter().map(right).collect::<Result<_, _>>());
    let may = may.transpose()?.unwrap_or_else(|| Right::ALL.to_vec());
    let keys = raw.keys.filter(|keys| !keys.iter().any(|key| key == "*"));
    Ok(Rights { uid: raw.uid, keys, may })
}

/// Serde's words, or, for a key that is not known, the one that was most likely meant.
fn unknown_key(path: &str, message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let message = message.lines().next().unwrap_or_default();
    match quoted.next() {
        Some(key) if message.starts_with("unknown field") => {
            let known: Vec<&str> = quoted.collect();
            let near = warifu_model::nearest(key, known.iter().copied());
            let right = near.map_or_else(|| known.join(", "), |near| format!("\"{near}\""));
            format!("{path}: no such key; expected {right}")
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
    fn a_whole_configuration() {
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
        assert_eq!((&card.holding.name[..], card.holding.retry.times), ("meter", 2));
        assert_eq!(card.holding.idle_close, Duration::from_secs(5));
        assert_eq!(card.pin_lifetime, Some(Duration::from_secs(60)));
        let rights = &config.callers[0];
        assert!(rights.covers(&[1], "client") && !rights.covers(&[2], "other"));
        assert_eq!(rights.may, [Right::Sign, Right::Token]);
    }

    #[test]
    fn a_mistake_is_one_line_with_the_nearest_right_word() {
        for (text, says) in [
            ("sokket = \"x\"", "agent.toml: sokket: no such key; expected \"socket\""),
            (
                "[[card]]\naddress = \"pcsc\"\npin_lifetime = 1",
                "agent.toml: card[0].pin_lifetime: no such key; expected \"pin_lifetime_s\"",
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent's configuration, TOML.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use warifu_agent_protocol::{Address, key_error};
use warifu_iotsafe_client::{CardAddress, Channel, ChannelPolicy, Options};

use crate::card::CardSettings;
use crate::pin::PinSource;
use crate::rights::{Right, Rights};

/// The largest number of TOML.
const NUMBER: &str = "a whole number from 0 to 9223372036854775807";

/// What each key takes.
const EXPECTED: [(&str, &str); 17] = [
    ("socket", "a path in quotes"),
    ("metrics", "an address and a port in quotes, such as \"127.0.0.1:9464\""),
    ("card", "[[card]] before the keys of each card"),
    ("caller", "[[caller]] before the keys of each user"),
    ("name", "letters, digits, - and _ in quotes"),
    ("address", "the address of a card in quotes, such as \"pcsc\""),
    ("aid", "5 to 16 bytes, hexadecimal, in quotes"),
    ("channel", "a number from 1 to 19"),
    ("pin", "\"ask\", \"file:/path\" or \"credential:NAME\""),
    ("pin_lifetime_s", NUMBER),
    ("idle_close_s", NUMBER),
    ("attempt_ms", "a whole number from 1 to 9223372036854775807"),
    ("retries", "a whole number from 0 to 4294967295"),
    ("ahead_after_ms", NUMBER),
    ("random_ahead_bytes", "a whole number from 0 to 65536"),
    ("pairs_ahead", "true or false"),
    ("uid", "a user's number from 0 to 4294967295, which `id -u NAME` prints"),
];
/// The same of lists.
const EXPECTED_LISTS: [(&str, &str); 2] = [
    ("keys", "a list of labels or ids, such as [\"client\"]"),
    ("may", "a list of rights, such as [\"sign\", \"token\"]"),
];

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
        let callers = raw.caller.into_iter().enumerate();
        let callers = callers.map(|(at, caller)| rights(caller, at));
        let callers = callers.collect::<Result<Vec<Rights>, String>>().map_err(&wrong)?;
        for (at, Rights { uid, .. }) in callers.iter().enumerate() {
            if let Some(other) = callers[..at].iter().position(|other| other.uid == *uid) {
                return Err(wrong(format!(
                    "caller[{at}].uid is {uid}, which caller[{other}] has already: write one \
                     [[caller]] for each user"
                )));
            }
        }
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
    text.parse::<CardAddress>().map_err(|error| match text.parse() {
        Ok(Address::Agent { .. }) => {
            "an agent cannot hold another agent's card: give the card's own address".into()
        }
        // The forms of a card alone: those of an agent are refused here.
        _ => error.to_string(),
    })
}

fn rights(raw: RawCaller, at: usize) -> Result<Rights, String> {
    let right = |name: &String| {
        let known = Right::ALL.into_iter().find(|right| right.name() == name);
        known.ok_or_else(|| {
            let names = Right::ALL.map(Right::name);
            let near = warifu_model::nearest(name, names.into_iter());
            let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            let names = names.map(|name| format!("\"{name}\"")).join(", ");
            format!("caller[{at}].may has \"{name}\": expected any of {names}{near}")
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
        _ => key_error(path, message, &[&EXPECTED[..], &EXPECTED_LISTS[..]].concat()),
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
                "agent.toml: caller[0].may has \"sing\": expected any of \"sign\", \"derive\", \
                 \"generate\", \"token\", \"random\", \"verify\", \"login\", \"replace\"; did \
                 you mean \"sign\"?",
            ),
            (
                "[[caller]]\nuid = 33\n[[caller]]\nuid = 1\n[[caller]]\nuid = 33",
                "agent.toml: caller[2].uid is 33, which caller[0] has already",
            ),
            ("[[card]", "agent.toml: "),
        ] {
            let error = Config::parse(text, "agent.toml").unwrap_err();
            assert!(error.starts_with(says) && error.lines().count() == 1, "{error}");
            assert!(!error.contains("1234"), "{error}");
        }
    }

    #[test]
    fn wrong_value_of_any_key_is_told_without_types_of_rust() {
        let values = ["\"x\"", "-1", "true", "1.5", "[1]", "{ a = 1 }", "300", "99999999999"];
        for (key, expected) in EXPECTED.iter().chain(&EXPECTED_LISTS) {
            let head = match *key {
                "socket" | "metrics" | "card" | "caller" => "",
                "uid" => "[[caller]]\n",
                "keys" | "may" => "[[caller]]\nuid = 1\n",
                "address" => "[[card]]\n",
                _ => "[[card]]\naddress = \"pcsc\"\n",
            };
            let mut told = 0;
            for value in values {
                let Err(error) = Config::parse(&format!("{head}{key} = {value}"), "agent.toml")
                else {
                    continue;
                };
                for word in ["u64", "u32", "u8", "usize", "sequence", "a map", "boolean", "invalid"]
                {
                    assert!(!error.contains(word), "{key} = {value}: {error}");
                }
                assert!(error.contains(key) && error.contains("expected "), "{error}");
                told += usize::from(error.ends_with(&format!("expected {expected}")));
            }
            assert!(told > 1, "{key}: {told}");
        }
        let error = |text: &str| Config::parse(text, "agent.toml").unwrap_err();
        assert_eq!(
            error("[[caller]]\nuid = \"root\""),
            "agent.toml: caller[0].uid is \"root\": expected a user's number from 0 to 4294967295, \
             which `id -u NAME` prints"
        );
        assert_eq!(
            error("[[card]]\naddress = \"pcsc\"\nattempt_ms = -1"),
            "agent.toml: card[0].attempt_ms is -1: expected a whole number from 1 to \
             9223372036854775807"
        );
        assert_eq!(
            error("[[caller]]\nmay = []"),
            "agent.toml: caller[0] has no uid: add it, a user's number from 0 to 4294967295, which \
             `id -u NAME` prints"
        );
        let error = error("[[card]]\naddress = \"pcsc\"\npin = 1234");
        assert!(!error.contains("1234") && error.contains("credential:NAME"), "{error}");
    }

    #[test]
    fn addresses_of_an_agent_are_not_offered_for_a_card() {
        let error = card_address("foo").unwrap_err();
        assert!(error.contains("csim:/dev/ttyX,BAUD") && !error.contains("agent"), "{error}");
        assert!(card_address("agent").unwrap_err().contains("another agent's card"));
    }
}

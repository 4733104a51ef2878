// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The configuration: the environment, or else a file, or else the default cards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use warifu_agent_protocol::{Address, key_error};
use warifu_iotsafe_client::{CardAddress, Channel, ChannelPolicy, Options};
use warifu_os::secure_variable;

/// The default timeout of a call. The slowest signature of Sakomoto et al. 2025 took 1.7 s.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest timeout, ms.
const TIMEOUT_MAX_MS: u64 = 600_000;

/// What each key takes.
const EXPECTED: [(&str, &str); 10] = [
    ("timeout_ms", "a whole number from 1 to 600000"),
    ("trace", "a path in quotes"),
    ("quiet", "true or false"),
    ("card", "[[card]] before the keys of each card"),
    ("address", "the address of a card in quotes, such as \"pcsc\""),
    ("label", "at most 32 bytes in quotes"),
    ("aid", "5 to 16 bytes, hexadecimal, in quotes"),
    ("channel", "\"open\", \"basic\" or a number from 0 to 19"),
    ("card_hashes", "true or false"),
    ("replace_keys", "true or false"),
];

/// The configuration of the module.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cards; each has a slot.
    pub cards: Vec<Card>,
    /// Whether the cards are configured, rather than the default ones.
    pub explicit: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// The trace file.
    pub trace: Option<PathBuf>,
    /// Whether errors of cards are not printed on stderr.
    pub quiet: bool,
}

/// A card.
#[derive(Clone, Debug)]
pub struct Card {
    /// Where it is.
    pub address: Address,
    /// The token's label.
    pub label: Option<String>,
    /// Which applet on which channel.
    pub options: Options,
    /// Whether the card hashes messages, rather than this module.
    pub card_hashes: bool,
    /// Whether an existing key pair may be replaced by generating another.
    pub replace_keys: bool,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {error}: correct or unset WARIFU_PKCS11_CONFIG", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A value is invalid.
    #[error("{origin}: {text}")]
    Invalid {
        /// File or variable.
        origin: String,
        /// The key, and what was expected.
        text: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    #[serde(default)]
    card: Vec<RawCard>,
    timeout_ms: Option<u64>,
    trace: Option<PathBuf>,
    #[serde(default)]
    quiet: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCard {
    address: String,
    label: Option<String>,
    aid: Option<String>,
    channel: Option<RawChannel>,
    #[serde(default)]
    card_hashes: bool,
    #[serde(default)]
    replace_keys: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawChannel {
    Number(u8),
    Word(String),
}

impl Config {
    /// Loads the configuration from the environment and the file. In a setuid program the
    /// environment counts for nothing, and `/etc/warifu/pkcs11.toml` is the only file.
    ///
    /// # Errors
    /// [`ConfigError`], in one line.
    pub fn load() -> Result<Config, ConfigError> {
        let mut config = match file(&secure_variable)? {
            Some((path, text)) => Config::parse(&text, &path.display().to_string())?,
            None => Config::parse("", "")?,
        };
        if let Some(address) = secure_variable("WARIFU_CARD") {
            let address = address.parse().map_err(|error| invalid("WARIFU_CARD", error))?;
            // The settings in the file for this card apply; other cards are not used.
            config.cards.retain(|card| card.address == address);
            if config.cards.is_empty() {
                config.cards.push(Card::at(address));
            }
            config.explicit = true;
        }
        if config.cards.is_empty() {
            let reader = Address::Card(CardAddress::Pcsc(None));
            config.cards = vec![Card::at(default_socket(&secure_variable)), Card::at(reader)];
        }
        if let Some(path) = secure_variable("WARIFU_PKCS11_TRACE") {
            config.trace = Some(path.into());
        }
        config.quiet |= secure_variable("WARIFU_PKCS11_QUIET").is_some();
        Ok(config)
    }

    /// Parses a file; `origin` names it in errors.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
        let raw: RawConfig = match toml::Deserializer::parse(text) {
            Ok(document) => serde_path_to_error::deserialize(document).map_err(|error| {
                let at = error.path().to_string();
                let message = error.inner().message().to_owned();
                invalid(origin, wrong_key(&at, &message))
            })?,
            Err(error) => return Err(invalid(origin, error.message())),
        };
        let timeout = match raw.timeout_ms {
            None => TIMEOUT,
            Some(ms @ 1..=TIMEOUT_MAX_MS) => Duration::from_millis(ms),
            Some(ms) => {
                let text = format!(
                    "timeout_ms is {ms}: expected a whole number from 1 to {TIMEOUT_MAX_MS}"
                );
                return Err(invalid(origin, text));
            }
        };
        let cards = raw.card.into_iter().map(|card| Card::of(card, origin));
        let cards = cards.collect::<Result<Vec<Card>, ConfigError>>()?;
        let explicit = !cards.is_empty();
        Ok(Config { cards, explicit, timeout, trace: raw.trace, quiet: raw.quiet })
    }
}

impl Card {
    fn at(address: Address) -> Card {
        let options = Options::default();
        Card { address, label: None, options, card_hashes: false, replace_keys: false }
    }

    fn of(raw: RawCard, origin: &str) -> Result<Card, ConfigError> {
        let address = raw.address.parse().map_err(|error| invalid(origin, error))?;
        let aid = match &raw.aid {
            None => None,
            Some(text) => Some(aid(text).ok_or_else(|| {
                invalid(
                    origin,
                    format!("card.aid is \"{text}\": expected 5 to 16 bytes in hexadecimal"),
                )
            })?),
        };
        let channel = match &raw.channel {
            None => Some(ChannelPolicy::Open),
            Some(RawChannel::Word(word)) => match &word[..] {
                "open" => Some(ChannelPolicy::Open),
                "basic" => Some(ChannelPolicy::Basic),
                _ => None,
            },
            Some(RawChannel::Number(number)) => Channel::new(*number).map(ChannelPolicy::Fixed),
        };
        let channel = channel.ok_or_else(|| {
            invalid(origin, "card.channel: expected \"open\", \"basic\" or a number from 0 to 19")
        })?;
        if raw.label.as_ref().is_some_and(|label| label.len() > 32) {
            return Err(invalid(origin, "card.label: expected at most 32 bytes"));
        }
        let options = Options { aid, channel, no_threads: false };
        let RawCard { label, card_hashes, replace_keys, .. } = raw;
        Ok(Card { address, label, options, card_hashes, replace_keys })
    }
}

/// The parser's message, in plain words.
fn wrong_key(path: &str, message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match quoted.next() {
        Some(_) if message.starts_with("unknown field") => {
            format!("{path}: unknown key; expected {}", quoted.collect::<Vec<_>>().join(", "))
        }
        _ => key_error(path, message, &EXPECTED),
    }
}

/// An application identifier: 5 to 16 bytes (ISO 7816-4 section 12.2.3).
fn aid(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) || !(10..=32).contains(&text.len()) {
        return None;
    }
    let bytes = text.as_bytes().chunks_exact(2);
    bytes.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The file that the environment names, or else the user's, or else the system's.
fn file(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(PathBuf, String)>, ConfigError> {
    if let Some(path) = variable("WARIFU_PKCS11_CONFIG") {
        let path = PathBuf::from(path);
        return match fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) => Err(ConfigError::Unreadable { path, error }),
        };
    }
    let home = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".config")));
    let users = home.map(|home| home.join("warifu/pkcs11.toml"));
    let machines = Some(PathBuf::from("/etc/warifu/pkcs11.toml"));
    for path in [users, machines].into_iter().flatten() {
        if let Ok(text) = fs::read_to_string(&path) {
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

/// The default socket of the virtual card.
fn default_socket(variable: &dyn Fn(&str) -> Option<String>) -> Address {
    let folder = variable("XDG_RUNTIME_DIR").unwrap_or_else(|| "/run".to_owned());
    Address::Card(CardAddress::Unix(Path::new(&folder).join("warifu/card.sock")))
}

fn invalid(origin: &str, text: impl ToString) -> ConfigError {
    ConfigError::Invalid { origin: origin.to_owned(), text: text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_file() {
        let text = r#"
            timeout_ms = 500
            quiet = true
            [[card]]
            address = "csim:/dev/ttyUSB2"
            label = "meter"
            aid = "A0000005590010"
            channel = 1
            [[card]]
            address = "pcsc"
            channel = "basic"
        "#;
        let config = Config::parse(text, "x").unwrap();
        assert_eq!((config.timeout, config.quiet), (Duration::from_millis(500), true));
        assert_eq!(config.cards[0].options.aid.as_ref().unwrap().len(), 7);
        let fixed = ChannelPolicy::Fixed(Channel::new(1).unwrap());
        assert_eq!(config.cards[0].options.channel, fixed);
        assert_eq!(config.cards[1].options.channel, ChannelPolicy::Basic);
    }

    #[test]
    fn errors_name_file_and_key() {
        for (text, says) in [
            ("timeout_ms = 0", "pkcs11.toml: timeout_ms is 0: expected a whole"),
            ("[[card]]\naddress = \"x\"", "pkcs11.toml: card is \"x\": expected unix:/path"),
            ("[[card]]\naddress = \"pcsc\"\naid = \"A0\"", "pkcs11.toml: card.aid is \"A0\""),
            ("[[card]]\naddress = \"pcsc\"\nchannel = 20", "pkcs11.toml: card.channel: expected"),
            (
                "[[card]]\naddress = \"pcsc\"\nhue = 1",
                "pkcs11.toml: card[0].hue: unknown key; expected address, label, aid, channel, ",
            ),
            ("[[card]", "pkcs11.toml: "),
        ] {
            let error = Config::parse(text, "pkcs11.toml").unwrap_err().to_string();
            assert!(error.starts_with(says) && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn wrong_value_of_any_key_is_told_without_types_of_rust() {
        let values = ["\"x\"", "-1", "true", "1.5", "[1]", "{ a = 1 }", "300"];
        for (key, expected) in EXPECTED {
            let head = match key {
                "timeout_ms" | "trace" | "quiet" | "card" => "",
                "address" => "[[card]]\n",
                _ => "[[card]]\naddress = \"pcsc\"\n",
            };
            let mut told = 0;
            for value in values {
                let text = format!("{head}{key} = {value}");
                let Err(error) = Config::parse(&text, "pkcs11.toml") else { continue };
                let error = error.to_string();
                for word in ["u64", "u8", "sequence", "a map", "boolean", "invalid", "variant"] {
                    assert!(!error.contains(word), "{text}: {error}");
                }
                told += usize::from(error.ends_with(&format!("expected {expected}")));
            }
            assert!(told > 1, "{key}: {told}");
        }
        let error = Config::parse("timeout_ms = \"x\"", "pkcs11.toml").unwrap_err().to_string();
        let says = "pkcs11.toml: timeout_ms is \"x\": expected a whole number from 1 to 600000";
        assert_eq!(error, says);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the client is asked to do.

use std::net::SocketAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use warifu_model::{Coap, Keyword, Nanos, Stack};
use warifu_open_loop::Pace;

use crate::error::Error;

/// Uri-Path and Uri-Query hold at most this many bytes each: RFC 7252 section 5.10.
const MOST_OPTION_BYTES: usize = 255;
/// Options of a request are below this, so that it fits the MTU of 1152 B that libcoap assumes.
const MOST_PATH_BYTES: usize = 1_000;
/// That MTU (COAP_DEFAULT_MTU, include/coap3/pdu.h of libcoap 4.3.1).
const MTU: usize = 1_152;
/// A token has at most this many bytes: RFC 7252 section 3.
const MOST_TOKEN_BYTES: u8 = 8;
/// coap_session_set_ack_timeout leaves what it was at less than a second.
const LEAST_ACK_TIMEOUT: Nanos = Nanos::from_millis(1_000);
/// The longest of all timeouts, of `MOST_RETRANSMIT` and `MOST_ACK_RANDOM_FACTOR`, fits the 32 bits
/// in which libcoap counts milliseconds.
const MOST_ACK_TIMEOUT: Nanos = Nanos::from_millis(60_000);
const MOST_ACK_RANDOM_FACTOR_PERCENT: u16 = 400;
/// coap_session_set_max_retransmit leaves what it was at 0.
const LEAST_RETRANSMIT: u8 = 1;
const MOST_RETRANSMIT: u8 = 10;

/// A run of the client, as JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server, `address:port`.
    pub address: SocketAddr,
    /// The stack of a case: the message's type and the transmission parameters of RFC 7252 section
    /// 4.8.
    #[serde(deserialize_with = "coap")]
    pub stack: Coap,
    /// Path and query of the request.
    #[serde(default = "root")]
    pub path: String,
    /// Length of the request's body, B: a PUT in one message, or a GET where it is 0.
    #[serde(default)]
    pub request_body: u16,
    /// How many requests.
    pub trials: u32,
    /// How many of them begin in a second, on average.
    pub rate_per_second: f64,
    /// Pauses between them vary evenly by this share of their mean, 0 to 1.
    #[serde(default)]
    pub spread: f64,
    /// How many begin at the same moment.
    #[serde(default = "one")]
    pub concurrent: u32,
    /// Requests come one after the other: the next begins a pause after the one before has ended.
    #[serde(default)]
    pub alone: bool,
    /// When a request without a response counts as failed, s. A lost NON is never sent again, and
    /// nothing else ends it; a lost CON is given up by libcoap after 62 to 93 s, unless this is
    /// less.
    pub timeout_s: f64,
    /// How long an exchange whose request was sent again keeps its socket after the response, s.
    /// A device keeps its own, and takes in silence what comes again; a closed one would answer a
    /// second response by ICMP.
    #[serde(default)]
    pub linger_s: f64,
    /// Decides pauses, and in each trial message ID, token and first retransmission timeout.
    #[serde(default)]
    pub seed: u64,
    /// Length of the token, B; `coap-client` begins with 1.
    #[serde(default = "token_bytes")]
    pub token_bytes: u8,
    /// The length that the body of each response must have, B; any, if not given.
    #[serde(default)]
    pub body_bytes: Option<u64>,
    /// Outcomes list every datagram.
    #[serde(default)]
    pub datagrams: bool,
}

fn coap<'de, D: Deserializer<'de>>(stack: D) -> Result<Coap, D::Error> {
    match Stack::deserialize(stack)? {
        Stack::Coap(stack) => Ok(stack),
        other => Err(D::Error::custom(format!(
            "protocol is {}: this client speaks coap",
            other.protocol().name()
        ))),
    }
}

fn root() -> String {
    "/".into()
}

const fn one() -> u32 {
    1
}

const fn token_bytes() -> u8 {
    1
}

impl Config {
    /// Reads and checks it; an error names the key and the fix.
    pub fn parse(text: &str) -> Result<Config, Error> {
        let config: Config = warifu_open_loop::parse(text).map_err(Error::Config)?;
        config.check()?;
        Ok(config)
    }

    /// When its requests begin.
    pub(crate) fn pace(&self) -> Pace {
        Pace {
            trials: self.trials,
            concurrent: self.concurrent,
            rate_per_second: self.rate_per_second,
            spread: self.spread,
            timeout_s: self.timeout_s,
            alone: self.alone,
            seed: self.seed,
            // An exchange computes for a tenth of a millisecond, so that few meet.
            clear: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        self.pace().check().map_err(Error::Config)?;
        if !(0.0..=3_600.0).contains(&self.linger_s) {
            return refuse(format!("linger_s is {}: expected 0 to 3600", self.linger_s));
        }
        if self.token_bytes > MOST_TOKEN_BYTES {
            return refuse(format!(
                "token_bytes is {}: expected 0 to {MOST_TOKEN_BYTES}",
                self.token_bytes
            ));
        }
        self.check_path()?;
        // At most 3 B before each option; libcoap itself refuses what does not fit.
        let request = usize::from(self.request_body) + self.path.len();
        if self.request_body > 0 && request > MTU {
            return refuse(format!(
                "request_body is {}: expected what fits one message of {MTU} B with the path",
                self.request_body
            ));
        }
        self.check_retransmission()
    }

    fn check_path(&self) -> Result<(), Error> {
        let refuse = |what: &str| {
            Err(Error::Config(format!("path is {:?}: expected one that {what}", self.path)))
        };
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("begins with / and holds no spaces");
        }
        if self.path.contains(['%', '#']) {
            return refuse("holds neither % nor #: options carry their bytes as they are");
        }
        if self.path.len() > MOST_PATH_BYTES {
            return refuse("is at most 1000 B long");
        }
        let mut options = self.uri_path().chain(self.uri_query());
        if options.any(|option| option.len() > MOST_OPTION_BYTES) {
            return refuse("has no segment and no query parameter over 255 B");
        }
        Ok(())
    }

    fn check_retransmission(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        let Coap { ack_timeout, ack_random_factor_percent: factor, max_retransmit, .. } =
            self.stack;
        if !(LEAST_ACK_TIMEOUT..=MOST_ACK_TIMEOUT).contains(&ack_timeout) {
            return refuse(format!(
                "stack.ack_timeout is {ack_timeout}: expected {LEAST_ACK_TIMEOUT} to \
                 {MOST_ACK_TIMEOUT}"
            ));
        }
        if !(100..=MOST_ACK_RANDOM_FACTOR_PERCENT).contains(&factor) {
            return refuse(format!(
                "stack.ack_random_factor_percent is {factor}: expected 100 to \
                 {MOST_ACK_RANDOM_FACTOR_PERCENT}"
            ));
        }
        if !(LEAST_RETRANSMIT..=MOST_RETRANSMIT).contains(&max_retransmit) {
            return refuse(format!(
                "stack.max_retransmit is {max_retransmit}: expected {LEAST_RETRANSMIT} to \
                 {MOST_RETRANSMIT}"
            ));
        }
        Ok(())
    }

    /// The segments of the path, one Uri-Path option each; none for `/` (RFC 7252 section 6.4).
    pub(crate) fn uri_path(&self) -> impl Iterator<Item = &str> {
        let path = self.path.split('?').next().unwrap_or("");
        let rest = path.strip_prefix('/').filter(|rest| !rest.is_empty());
        rest.into_iter().flat_map(|rest| rest.split('/'))
    }

    /// The parameters of the query, one Uri-Query option each.
    pub(crate) fn uri_query(&self) -> impl Iterator<Item = &str> {
        self.path.split_once('?').into_iter().flat_map(|(_, query)| query.split('&'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: &str = r#"{"address": "127.0.0.1:5683", "stack": {"protocol": "coap",
        "message_type": "CON", "ack_timeout": 2000000000, "ack_random_factor_percent": 150,
        "max_retransmit": 4}, "trials": 4, "rate_per_second": 10, "timeout_s": 5}"#;

    fn said(text: &str) -> String {
        Config::parse(text).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn least_configuration() {
        let config = Config::parse(LEAST).unwrap();
        assert_eq!((config.concurrent, config.token_bytes, &*config.path), (1, 1, "/"));
    }

    #[test]
    fn path_becomes_options() {
        let with = |path: &str| {
            let text = LEAST.replace("\"trials\"", &format!("\"path\": {path:?}, \"trials\""));
            let config = Config::parse(&text).unwrap();
            let path: Vec<String> = config.uri_path().map(String::from).collect();
            let query: Vec<String> = config.uri_query().map(String::from).collect();
            (path, query)
        };
        let none = Vec::<String>::new;
        assert_eq!(with("/"), (none(), none()));
        assert_eq!(with("/example_data"), (vec!["example_data".into()], none()));
        assert_eq!(with("/a/b"), (vec!["a".into(), "b".into()], none()));
        assert_eq!(with("/?x=1&y"), (none(), vec!["x=1".into(), "y".into()]));
        assert_eq!(with("/async?1"), (vec!["async".into()], vec!["1".into()]));
    }

    #[test]
    fn mistakes_name_the_key() {
        for (from, to, word) in [
            ("\"trials\": 4", "\"trials\": 0", "trials is 0"),
            ("\"trials\": 4", "\"trials\": -1", "trials"),
            ("\"trials\": 4", "\"trials\": 4, \"concurrent\": 3", "concurrent is 3"),
            ("\"trials\": 4", "\"trials\": 4, \"concurrent\": 0", "concurrent is 0"),
            ("\"rate_per_second\": 10", "\"rate_per_second\": 0", "rate_per_second is 0"),
            ("\"timeout_s\": 5", "\"timeout_s\": 0", "timeout_s is 0"),
            ("\"trials\"", "\"linger_s\": -1, \"trials\"", "linger_s is -1"),
            ("127.0.0.1:5683", "nowhere", "address"),
            ("\"trials\"", "\"trails\"", "trails"),
            ("CON", "ACK", "stack: unknown variant `ACK`, expected `CON` or `NON`"),
            ("\"trials\"", "\"token_bytes\": 9, \"trials\"", "token_bytes is 9"),
            ("\"trials\"", "\"path\": \"a\", \"trials\"", "path is \"a\""),
            ("\"trials\"", "\"path\": \"/a%20\", \"trials\"", "neither %"),
            ("2000000000", "10000000", "stack.ack_timeout is 10 ms: expected 1 s to 60 s"),
            ("150", "50", "stack.ack_random_factor_percent is 50"),
            ("\"max_retransmit\": 4", "\"max_retransmit\": 17", "stack.max_retransmit is 17"),
            ("\"coap\"", "\"mqtt\"", "stack"),
            ("\"trials\"", "\"spread\": 2, \"trials\"", "spread is 2"),
            ("\"trials\"", "\"request_body\": 1152, \"trials\"", "request_body is 1152"),
        ] {
            let said = said(&LEAST.replacen(from, to, 1));
            assert!(said.contains(word), "{to}: {said}");
        }
        assert!(said(&format!("{LEAST} x")).contains("after the configuration"));
        let long = format!("\"path\": \"/{}\", \"trials\"", "x".repeat(256));
        assert!(said(&LEAST.replacen("\"trials\"", &long, 1)).contains("255 B"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Config::parse(&text);
        }
    }
}

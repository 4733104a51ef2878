// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the client is asked to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use warifu_model::{CertificateType, Keyword, Session, Stack};
use warifu_open_loop::{Clear, Pace};

use crate::context::PskKey;
use crate::error::Error;
use crate::key_store::KeyStoreConfig;
use crate::variant::Variant;

/// A run of the client, as JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The TLS choices, of a case's stack; without them plain HTTP is spoken.
    #[serde(rename = "stack", deserialize_with = "variant")]
    pub variant: Option<Variant>,
    /// A folder that `warifu-tls pki` made; not read for plain HTTP.
    #[serde(default)]
    pub pki: PathBuf,
    /// Where to connect, `address:port`.
    pub address: SocketAddr,
    /// How many connections.
    pub trials: u32,
    /// How many of them begin in a second, on average.
    pub rate_per_second: f64,
    /// Pauses between them vary evenly by this share of their mean, 0 to 1.
    #[serde(default)]
    pub spread: f64,
    /// When a connection without a response counts as failed, s.
    pub timeout_s: f64,
    /// Decides the pauses.
    #[serde(default)]
    pub seed: u64,
    /// The path of the request.
    #[serde(default = "root")]
    pub path: String,
    /// Length of the request's body, B: a POST, or a GET where it is 0.
    #[serde(default)]
    pub request_body: u32,
    /// The key from outside, which authentication `psk` needs.
    #[serde(default)]
    pub psk: Option<PskConfig>,
    /// How many sessions are got beforehand for variants that resume, taken by turns. Tickets are
    /// stateless on the server, so that one can serve many connections.
    #[serde(default = "sessions")]
    pub sessions: u32,
    /// Connections come one after the other: the next one begins a pause after the one before has
    /// ended. So they do with a key store: a token serves one call at a time, and so does a device
    /// that waits for it.
    #[serde(default)]
    pub alone: bool,
    /// The round-trip time, s, if connections are to begin such that none is at work together with
    /// another; 0 if that need not be.
    #[serde(default)]
    pub round_trip_s: f64,
    /// What the two ends of a connection compute together, s, at most; with `round_trip_s`.
    #[serde(default)]
    pub work_s: f64,
    /// Where the client's private key is, if not in the PKI's folder.
    #[serde(default)]
    pub key_store: Option<KeyStoreConfig>,
}

/// A key from outside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PskConfig {
    /// By what name the client names it; as long as the stack says.
    pub identity: String,
    /// Its bytes, hexadecimal.
    pub key: String,
}

impl PskConfig {
    /// The key in bytes; `None` where the text is no hexadecimal or none that libssl takes.
    pub fn parsed(&self) -> Option<PskKey> {
        let digits = self.key.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let whole = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let key: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>().filter(|_| whole)?;
        // PSK_MAX_PSK_LEN (include/openssl/ssl.h, OpenSSL 3.0) is 512.
        (1..=512)
            .contains(&key.len())
            .then(|| PskKey { identity: self.identity.clone().into(), key })
    }
}

fn variant<'de, D: Deserializer<'de>>(stack: D) -> Result<Option<Variant>, D::Error> {
    match Option::<Stack>::deserialize(stack)? {
        None => Ok(None),
        Some(Stack::Https(stack)) => Ok(Some(Variant::from(&stack))),
        Some(other) => Err(D::Error::custom(format!(
            "protocol is {}: this client speaks https",
            other.protocol().name()
        ))),
    }
}

fn root() -> String {
    "/".into()
}

const fn sessions() -> u32 {
    16
}

impl Config {
    /// Reads and checks it; an error names the key and the fix.
    pub fn parse(text: &str) -> Result<Config, Error> {
        let config: Config = warifu_open_loop::parse(text).map_err(Error::Config)?;
        config.check()?;
        Ok(config)
    }

    /// When its connections begin.
    pub(super) fn pace(&self) -> Pace {
        let alone = self.alone || self.key_store.is_some();
        let clear = Clear { round_trip_s: self.round_trip_s, work_s: self.work_s };
        Pace {
            trials: self.trials,
            concurrent: 1,
            rate_per_second: self.rate_per_second,
            spread: self.spread,
            timeout_s: self.timeout_s,
            alone,
            seed: self.seed,
            // One alone meets no other.
            clear: (!alone).then_some(clear),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        if let Some(variant) = &self.variant {
            variant.check()?;
            let bytes = variant.psk.map(|psk| usize::from(psk.identity_bytes));
            let given = self.psk.as_ref().map(|psk| psk.identity.len());
            if bytes != given || self.psk.as_ref().is_some_and(|psk| psk.identity.contains('\0')) {
                return refuse(format!(
                    "psk has an identity of {} B: the stack says {} B",
                    given.unwrap_or(0),
                    bytes.unwrap_or(0)
                ));
            }
            if self.psk.as_ref().is_some_and(|psk| psk.parsed().is_none()) {
                return refuse("psk.key: expected 1 to 512 bytes, hexadecimal".into());
            }
            if variant.session == Session::EarlyData && self.request_body > 0 {
                return refuse(
                    "request_body is given with 0-rtt: a POST may be replayed (RFC 8470)".into(),
                );
            }
            if self.pki.as_os_str().is_empty() {
                return refuse("pki is empty: name a folder that `warifu-tls pki` made".into());
            }
        }
        self.pace().check().map_err(Error::Config)?;
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse(format!(
                "path is {:?}: expected one that begins with / and holds no spaces",
                self.path
            ));
        }
        let ecdsa = |variant: &Variant| variant.certificate == CertificateType::EcdsaSecp256r1;
        if self.key_store.is_some() && !self.variant.as_ref().is_some_and(ecdsa) {
            return refuse(
                "key_store is given: it needs a stack with certificate ecdsa_secp256r1".into(),
            );
        }
        if self.sessions == 0 {
            return refuse("sessions is 0: expected at least 1".into());
        }
        Ok(())
    }

    /// The bytes of the request, with its body. With early data the server is not asked to close:
    /// nginx would close before it has read the client's Finished, and reset the connection when
    /// that comes.
    pub fn request(&self) -> Vec<u8> {
        let variant = self.variant.as_ref();
        let host = variant.and_then(|variant| variant.server_name.as_deref());
        let early = variant.is_some_and(|variant| variant.session == Session::EarlyData);
        let close = if early { "" } else { "Connection: close\r\n" };
        let host = host.unwrap_or(crate::pki::SERVER_NAME);
        let (method, body) = match self.request_body {
            0 => ("GET", String::new()),
            bytes => (
                "POST",
                format!("Content-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n"),
            ),
        };
        let path = &self.path;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{body}{close}\r\n");
        let mut request = head.into_bytes();
        request.resize(request.len() + self.request_body as usize, b'u');
        request
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &str = r#"{"stack": null, "address": "127.0.0.1:80", "trials": 3,
        "rate_per_second": 10, "timeout_s": 5}"#;

    const COAP: &str = r#"{"protocol": "coap", "message_type": "CON", "ack_timeout": 2000000000,
        "ack_random_factor_percent": 150, "max_retransmit": 4}"#;

    fn said(text: &str) -> String {
        Config::parse(text).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn plain_http_defaults() {
        let config = Config::parse(PLAIN).unwrap();
        assert_eq!(config.sessions, 16);
        assert!(config.request().starts_with(b"GET / HTTP/1.1\r\nHost: warifu.test\r\n"));
    }

    #[test]
    fn mistakes_name_the_key() {
        for (from, to, word) in [
            ("\"trials\": 3", "\"trials\": 0", "trials is 0"),
            ("\"trials\": 3", "\"trials\": -1", "trials"),
            ("10", "0", "rate_per_second is 0"),
            ("\"timeout_s\": 5", "\"timeout_s\": 0", "timeout_s is 0"),
            ("127.0.0.1:80", "nowhere", "address"),
            ("\"trials\"", "\"trails\"", "trails"),
            ("null", COAP, "stack: protocol is coap: this client speaks https"),
            (
                "\"trials\": 3",
                "\"trials\": 3, \"key_store\": {\"module\": \"m.so\", \"session_open\": true}",
                "key_store is given",
            ),
        ] {
            let said = said(&PLAIN.replace(from, to));
            assert!(said.contains(word), "{to}: {said}");
        }
        assert!(said(&format!("{PLAIN} x")).contains("after the configuration"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Config::parse(&text);
        }
    }
}

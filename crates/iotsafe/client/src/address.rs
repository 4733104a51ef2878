// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a card is, as `WARIFU_CARD` says it.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::agent::{self, AgentClient, AgentToken};
use crate::applet::Options;
use crate::card::CardToken;
use crate::token::Token;
use crate::transport::{Csim, Pcsc, Transport, Unix, Watch, Watched};

/// The speed of a serial line unless another is given.
const BAUD: u32 = 115_200;

/// From the slowest of Linux's to the fastest of USB converters.
const BAUDS: RangeInclusive<u32> = 50..=12_000_000;

/// The place of one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `unix:/path`: the socket of a virtual card.
    Unix(PathBuf),
    /// `pcsc` or `pcsc:part of the reader's name`.
    Pcsc(Option<String>),
    /// `csim:/dev/ttyUSB2` or `csim:/dev/ttyUSB2,9600`: a modem, with its baud rate.
    Csim(PathBuf, u32),
    /// `agent`, `agent:/path` or `agent:/path,NAME`: the socket of an agent, and the name of one of
    /// its cards; its first for none.
    Agent(Option<PathBuf>, Option<String>),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has none of the forms.
    #[error(
        "card is \"{0}\": expected unix:/path, pcsc, pcsc:READER, csim:/dev/ttyX, \
         csim:/dev/ttyX,BAUD, agent, agent:/path or agent:/path,CARD"
    )]
    Form(String),
    /// No line is so slow or so fast.
    #[error("card is \"{0}\": expected a baud rate of 50 to 12000000, such as 115200")]
    Baud(String),
}

impl Address {
    /// The token there; nothing is opened before it is first used. `options` are for a card of
    /// this process: an agent's are the agent's. `watch` is told of every exchange.
    #[must_use]
    pub fn token(&self, options: Options, watch: Option<Watch>) -> Box<dyn Token> {
        match self.transport(watch.clone()) {
            Ok(transport) => Box::new(CardToken::new(transport, options)),
            Err((path, card)) => {
                let client = AgentClient::new(&path, card).watched(watch);
                Box::new(AgentToken::new(client))
            }
        }
    }

    /// The card there, for who holds it; None for an agent's card, which the agent holds.
    #[must_use]
    pub fn card(&self, options: Options, watch: Option<Watch>) -> Option<CardToken> {
        let transport = self.transport(watch).ok()?;
        Some(CardToken::new(transport, options))
    }

    /// The way to a card; of an agent the socket and the card's name.
    fn transport(
        &self,
        watch: Option<Watch>,
    ) -> Result<Box<dyn Transport>, (PathBuf, Option<&str>)> {
        let transport: Box<dyn Transport> = match self {
            Address::Agent(path, card) => {
                return Err((path.clone().unwrap_or_else(agent::default_socket), card.as_deref()));
            }
            Address::Unix(path) => Box::new(Unix::new(path)),
            Address::Pcsc(reader) => Box::new(Pcsc::new(reader.as_deref())),
            Address::Csim(path, baud) => Box::new(Csim::new(path, *baud)),
        };
        Ok(match watch {
            Some(watch) => Box::new(Watched::new(transport, watch)),
            None => transport,
        })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("unix", path) if path.starts_with('/') => Ok(Address::Unix(path.into())),
            ("pcsc", "") => Ok(Address::Pcsc(None)),
            ("pcsc", reader) => Ok(Address::Pcsc(Some(reader.to_owned()))),
            ("csim", path) if path.starts_with('/') => match path.split_once(',') {
                Some((path, baud)) => {
                    let baud = baud.parse().ok().filter(|baud| BAUDS.contains(baud));
                    let wrong = || AddressError::Baud(text.to_owned());
                    Ok(Address::Csim(path.into(), baud.ok_or_else(wrong)?))
                }
                None => Ok(Address::Csim(path.into(), BAUD)),
            },
            ("agent", "") if !text.contains(':') => Ok(Address::Agent(None, None)),
            ("agent", path) if path.starts_with('/') => match path.split_once(',') {
                Some((_, "")) => Err(wrong()),
                Some((path, card)) => Ok(Address::Agent(Some(path.into()), Some(card.to_owned()))),
                None => Ok(Address::Agent(Some(path.into()), None)),
            },
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Pcsc(None) => write!(f, "pcsc"),
            Address::Pcsc(Some(reader)) => write!(f, "pcsc:{reader}"),
            Address::Csim(path, BAUD) => write!(f, "csim:{}", path.display()),
            Address::Csim(path, baud) => write!(f, "csim:{},{baud}", path.display()),
            Address::Agent(None, _) => write!(f, "agent"),
            Address::Agent(Some(path), None) => write!(f, "agent:{}", path.display()),
            Address::Agent(Some(path), Some(card)) => {
                write!(f, "agent:{},{card}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_the_same() {
        for text in [
            "unix:/run/a b",
            "pcsc",
            "pcsc:ACS 01",
            "csim:/dev/ttyUSB2",
            "csim:/dev/p,9600",
            "agent",
            "agent:/run/a.sock",
            "agent:/run/a.sock,meter",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_mistake_is_said_in_one_line() {
        for text in
            ["", "unix:", "unix:relative", "csim:", "tcp:1", "agent:", "agent:a", "agent:/a,"]
        {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("card is \"{text}\": expected unix:/path")));
        }
        for text in ["csim:/dev/x,", "csim:/dev/x,0", "csim:/dev/x,12a", "csim:/dev/x,4294967295"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            let expected = "expected a baud rate of 50 to 12000000, such as 115200";
            assert_eq!(error, format!("card is \"{text}\": {expected}"));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a card is, as `WARIFU_CARD` says it: at a transport of this process, or held by an agent.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use warifu_iotsafe_client::transport::Watch;
use warifu_iotsafe_client::{CardAddress, CardAddressError, CardToken, Options, Token};

use crate::client::AgentClient;
use crate::default_socket;
use crate::token::AgentToken;

/// The address of one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A card of this process.
    Card(CardAddress),
    /// `agent`, `agent:/path` or `agent:/path,NAME`: a card that an agent holds.
    Agent {
        /// The agent's socket; [`default_socket`] for none.
        socket: Option<PathBuf>,
        /// The card's name in the agent's configuration; its first card for none.
        card: Option<String>,
    },
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
    /// It is the address of a card, but not a valid one.
    #[error(transparent)]
    Card(CardAddressError),
}

impl Address {
    /// The token at this address; nothing is opened before it is first used. `options` are for a
    /// card of this process: for an agent's, the agent decides. `watch` sees every exchange.
    #[must_use]
    pub fn token(&self, options: Options, watch: Option<Watch>) -> Box<dyn Token> {
        match self {
            Address::Card(card) => {
                Box::new(CardToken::new(card.transport_with(&options, watch), options))
            }
            Address::Agent { socket, card } => {
                let socket = socket.clone().unwrap_or_else(default_socket);
                let client = AgentClient::new(&socket, card.as_deref()).watched(watch);
                Box::new(AgentToken::new(client))
            }
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let invalid = || AddressError::Form(text.to_owned());
        let agent = |socket: Option<&str>, card: Option<&str>| Address::Agent {
            socket: socket.map(PathBuf::from),
            card: card.map(str::to_owned),
        };
        match text.split_once(':') {
            None if text == "agent" => Ok(agent(None, None)),
            Some(("agent", path)) if path.starts_with('/') => match path.split_once(',') {
                Some((_, "")) => Err(invalid()),
                Some((path, card)) => Ok(agent(Some(path), Some(card))),
                None => Ok(agent(Some(path), None)),
            },
            _ => text.parse().map(Address::Card).map_err(|error| match error {
                CardAddressError::Form(_) => invalid(),
                error => AddressError::Card(error),
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Card(card) => write!(f, "{card}"),
            Address::Agent { socket: None, .. } => write!(f, "agent"),
            Address::Agent { socket: Some(path), card: None } => {
                write!(f, "agent:{}", path.display())
            }
            Address::Agent { socket: Some(path), card: Some(card) } => {
                write!(f, "agent:{},{card}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_round_trip() {
        for text in ["unix:/run/a b", "pcsc:ACS 01", "agent", "agent:/run/a.sock", "agent:/a,meter"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses() {
        for text in ["", "unix:", "tcp:1", "agent:", "agent:a", "agent:/a,"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("card is \"{text}\": expected unix:/path")));
            assert!(error.ends_with("agent:/path or agent:/path,CARD"));
        }
        let error = "csim:/dev/x,0".parse::<Address>().unwrap_err().to_string();
        assert!(error.contains("expected a baud rate"), "{error}");
    }
}

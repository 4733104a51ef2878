// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a token did not do what it was asked for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use warifu_card::StatusWord;

use crate::transport::TransportError;

/// One line that says what went wrong and where. It can be passed on by another process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TokenError {
    /// The card could not be reached, or not in time.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The card answers, and none of the applet's identifiers selects anything.
    #[error("the card has no IoT SAFE applet: SELECT of {tried} identifiers ended with {last:?}")]
    NoApplet {
        /// How many identifiers were tried.
        tried: usize,
        /// What the last one got.
        #[serde(with = "status_word")]
        last: StatusWord,
    },
    /// The card has no free logical channel.
    #[error(
        "all logical channels of the card are in use; close a program that uses it (behind a modem \
         a killed one's stays open: restart the modem)"
    )]
    NoChannel,
    /// The card refuses a command.
    #[error("the card refuses {command} with {sw}")]
    Status {
        /// The command, as GSMA IoT.05 names it.
        command: Cow<'static, str>,
        /// Its answer.
        #[serde(with = "status_word")]
        sw: StatusWord,
    },
    /// The card's answer is not what the command gives.
    #[error("the card's answer to {command} {what}")]
    Answer {
        /// The command.
        command: Cow<'static, str>,
        /// What is wrong with it.
        what: Cow<'static, str>,
    },
    /// The PIN was wrong; so many tries are left, if the card says so.
    #[error("the PIN is wrong")]
    PinWrong {
        /// How many wrong tries it takes to lock.
        tries_left: Option<u8>,
    },
    /// The PIN is locked.
    #[error(
        "the PIN is locked: `warifu card reset --unblock-pin` for a virtual card, the operator's PUK \
         for a real one"
    )]
    PinLocked,
    /// The operation needs the PIN first.
    #[error("the card wants its PIN first")]
    PinNeeded,
    /// The card has no PIN.
    #[error("the card has no PIN")]
    NoPin,
    /// The card has no public key's place that a peer's key may be put into.
    #[error("the card has no place for a peer's public key of this curve")]
    NoPeerPlace,
    /// Another program has a key in this volatile place.
    #[error("the place of the volatile key is in use by another program")]
    PlaceTaken,
    /// The volatile key is gone: the card was reset since it was made.
    #[error("the volatile key is lost: the card was reset since; generate another")]
    KeyLost,
    /// The owner of the card does not let this caller do that. Says what, and the mend.
    #[error("{0}")]
    Denied(String),
}

impl TokenError {
    pub(crate) fn status(command: &'static str, sw: StatusWord) -> TokenError {
        TokenError::Status { command: command.into(), sw }
    }

    pub(crate) fn answer(command: &'static str, what: &'static str) -> TokenError {
        TokenError::Answer { command: command.into(), what: what.into() }
    }

    /// The status word, if that is what it is.
    #[must_use]
    pub fn sw(&self) -> Option<StatusWord> {
        match self {
            TokenError::Status { sw, .. } => Some(*sw),
            _ => None,
        }
    }

    /// Whether the card has forgotten the channel or what was selected on it, without having
    /// done anything: opening it anew and asking again is safe.
    #[must_use]
    pub fn channel_lost(&self) -> bool {
        match self {
            TokenError::Transport(TransportError::CardReset) => true,
            TokenError::Status { sw, .. } => {
                matches!(*sw, StatusWord::CHANNEL_NOT_SUPPORTED | StatusWord::CLASS)
            }
            _ => false,
        }
    }
}

/// A status word as its number.
mod status_word {
    use serde::{Deserialize, Deserializer, Serializer};
    use warifu_card::StatusWord;

    pub(super) fn serialize<S: Serializer>(sw: &StatusWord, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u16(sw.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<StatusWord, D::Error> {
        u16::deserialize(from).map(StatusWord)
    }
}

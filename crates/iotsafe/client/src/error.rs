// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The errors of a token.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use warifu_card::StatusWord;

use crate::transport::TransportError;

/// One line that says what failed and where. The agent passes it on to its callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TokenError {
    /// The card could not be reached, or not in time.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The card answers, but has no applet with one of the identifiers.
    #[error("the card has no IoT SAFE applet: SELECT of {tried} identifiers returned {last:?}")]
    NoApplet {
        /// How many identifiers were tried.
        tried: usize,
        /// The status word for the last one.
        #[serde(with = "status_word")]
        last: StatusWord,
    },
    /// The card has no free logical channel.
    #[error(
        "all logical channels of the card are in use: end a program that uses it (behind a modem, \
         channels of programs that were killed stay open until another program of the same user \
         starts, or the modem restarts: AT+CFUN=1,1)"
    )]
    NoChannel,
    /// The card refuses a command.
    #[error("the card refused {command} with {sw}{}", meaning(*sw))]
    Status {
        /// The command, as GSMA IoT.05 names it.
        command: Cow<'static, str>,
        /// Its answer.
        #[serde(with = "status_word")]
        sw: StatusWord,
    },
    /// The card's answer is not one to the command.
    #[error("the card's answer to {command} {what}")]
    Answer {
        /// The command.
        command: Cow<'static, str>,
        /// What is wrong with it.
        what: Cow<'static, str>,
    },
    /// The PIN is wrong.
    #[error("the PIN is wrong")]
    PinWrong {
        /// The tries that are left, if the card reports them.
        tries_left: Option<u8>,
    },
    /// The PIN is locked.
    #[error(
        "the PIN is locked: unlock it with `warifu card reset --unblock-pin` on a virtual SIM, \
         with \
         the operator's PUK on a real one"
    )]
    PinLocked,
    /// The operation needs a login.
    #[error("the card needs its PIN: log in first")]
    PinNeeded,
    /// The card has no PIN.
    #[error("the card has no PIN")]
    NoPin,
    /// The card has no public key container for a peer's key.
    #[error("the card has no container for a peer's public key on this curve")]
    NoPeerContainer,
    /// Another program has a key in this volatile container.
    #[error("the container of the volatile key is in use by another program")]
    ContainerInUse,
    /// The volatile key is lost: the card was reset since it was generated.
    #[error("the volatile key was lost when the card was reset: generate another")]
    KeyLost,
    /// The agent denies the request; the text says why and how to fix it.
    #[error("{0}")]
    Denied(String),
    /// A peer's public key is not a point on the curve of the key, which was not used.
    #[error("the peer's public key is not a point on the key's curve")]
    PeerNotOnCurve,
}

impl TokenError {
    pub(crate) fn status(command: &'static str, sw: StatusWord) -> TokenError {
        TokenError::Status { command: command.into(), sw }
    }

    pub(crate) fn answer(command: &'static str, what: &'static str) -> TokenError {
        TokenError::Answer { command: command.into(), what: what.into() }
    }

    /// The status word of [`TokenError::Status`].
    #[must_use]
    pub fn sw(&self) -> Option<StatusWord> {
        match self {
            TokenError::Status { sw, .. } => Some(*sw),
            _ => None,
        }
    }

    /// Whether the card has lost the channel or the selection on it, and has done nothing: opening
    /// a new channel and sending the command again is safe.
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

/// What a status word says that is not about the command itself (ISO 7816-4 section 5.6).
fn meaning(sw: StatusWord) -> &'static str {
    match sw {
        StatusWord::MEMORY_FAILURE => ", memory failure",
        StatusWord::CHANNEL_NOT_SUPPORTED => ", logical channel not open or not supported",
        _ => "",
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

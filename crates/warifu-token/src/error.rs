// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a token did not do what it was asked for.

use warifu_card::StatusWord;

use crate::transport::TransportError;

/// One line that says what went wrong and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
        last: StatusWord,
    },
    /// The card has no free logical channel.
    #[error("all logical channels of the card are in use; close a program that uses it")]
    NoChannel,
    /// The card refuses a command.
    #[error("the card refuses {command} with {sw}")]
    Status {
        /// The command, as GSMA IoT.05 names it.
        command: &'static str,
        /// Its answer.
        sw: StatusWord,
    },
    /// The card's answer is not what the command gives.
    #[error("the card's answer to {command} {what}")]
    Answer {
        /// The command.
        command: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The PIN was wrong; so many tries are left, if the card says so.
    #[error("the PIN is wrong")]
    PinWrong {
        /// How many wrong tries it takes to lock.
        tries_left: Option<u8>,
    },
    /// The PIN is locked.
    #[error("the PIN is locked")]
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
}

impl TokenError {
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

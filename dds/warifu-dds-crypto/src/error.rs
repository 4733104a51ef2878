// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a call is refused, and the number that Cyclone's logs have for it.

use thiserror::Error;

/// One line each; Cyclone logs them with the peer's GUID.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The core asked about an entity that it never registered, or has unregistered.
    #[error("crypto handle {0:#x} is unknown or of another kind: register the entity first")]
    Handle(i64),
    /// The core left out what a call needs.
    #[error("{0} is missing in the call")]
    Argument(&'static str),
    /// A message from the network that cannot be taken apart.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// A tag that does not fit: changed on its way, or made with another key.
    #[error("message cannot be authenticated: its {0} is wrong")]
    Forged(&'static str),
    /// One that has been here before.
    #[error("message is a repetition of an earlier one")]
    Replayed,
    /// A message with a key id, a cipher or a kind of protection that was not agreed on.
    #[error("message is not protected as agreed: {0}")]
    Protection(&'static str),
    /// A message under a key whose token has not come, or never will.
    #[error("message is not protected as agreed: its key id is unknown")]
    UnknownKey,
    /// One that this pair of participants cannot judge; another pair of the process may.
    #[error("message is not for this participant: {0}")]
    NotForUs(&'static str),
    /// Keys of another cipher's class.
    #[error("the peer's crypto tokens are of class {theirs}, ours of {ours}: select the same AEAD")]
    Class {
        /// The class that the peer named.
        theirs: String,
        /// The class of the local entity.
        ours: &'static str,
    },
    /// Keys that cannot be read.
    #[error("invalid crypto token: {0}")]
    Token(&'static str),
    /// A child process with its parent's keys.
    #[error(
        "keys are those of before fork(2), whose nonces the parent process uses: create the \
         participant in the child"
    )]
    Forked,
    /// No random bytes.
    #[error("the system gave no random bytes")]
    Random,
    /// A setting that means nothing.
    #[error("{0}")]
    Setting(String),
    /// The message does not fit into a submessage or a buffer.
    #[error("message of {0} bytes is too long to be protected")]
    TooLong(usize),
}

/// What every function here gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Cyclone's number for it (dds_security_api_err.h).
    pub const fn code(&self) -> i32 {
        match self {
            Self::Random | Self::Forked => 100,
            Self::Handle(_) => 113,
            Self::Argument(_) | Self::Malformed(_) | Self::Setting(_) | Self::TooLong(_) => 114,
            Self::Token(_) | Self::Class { .. } => 115,
            Self::Protection(_) | Self::UnknownKey => 118,
            Self::Forged(_) | Self::Replayed => 119,
            // Cyclone then asks for the next of its participants that know the sender, where any
            // other error ends its search (ddsi_security_omg.c,
            // q_omg_security_decode_rtps_message).
            Self::NotForUs(_) => 124,
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a token.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use warifu_card::crypto::{Hash, SecretBytes};

use crate::error::TokenError;
use crate::object::{File, Inventory, TokenInfo};

/// The input of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInput<'a> {
    /// A digest.
    Digest(Hash, &'a [u8]),
    /// A message, for the card to hash.
    Message(Hash, &'a [u8]),
}

impl SignInput<'_> {
    /// The hash.
    #[must_use]
    pub fn hash(&self) -> Hash {
        match self {
            SignInput::Digest(hash, _) | SignInput::Message(hash, _) => *hash,
        }
    }
}

/// The state of a card's PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinState {
    /// The card has no PIN.
    Absent,
    /// The PIN is not verified; the tries left, if the card reports them.
    Wanted(Option<u8>),
    /// The PIN is verified.
    Verified,
    /// The PIN is locked.
    Locked,
}

/// A new key pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedPair {
    /// The card's id of the public key, if the card returns it.
    pub public_id: Option<Vec<u8>>,
    /// The public key: 04, X, Y.
    pub point: [u8; 65],
}

/// A token: a card of this process ([`CardToken`](crate::CardToken)), or one that another process
/// holds.
///
/// Every function returns by its deadline. After an error the next call recovers by itself. The
/// answer to one command is never taken for the answer to another.
pub trait Token: Send {
    /// Information on the card; also shows whether it is present.
    ///
    /// # Errors
    /// [`TokenError`], as for all functions here.
    fn info(&mut self, deadline: Instant) -> Result<TokenInfo, TokenError>;

    /// The state of the PIN. Uses no try.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn pin_state(&mut self, deadline: Instant) -> Result<PinState, TokenError>;

    /// Sends the card its PIN, once.
    ///
    /// # Errors
    /// [`TokenError::PinWrong`], [`TokenError::PinLocked`], [`TokenError::NoPin`]. A PIN
    /// other than 4 to 8 digits is wrong and not sent.
    fn verify_pin(&mut self, pin: &[u8], deadline: Instant) -> Result<(), TokenError>;

    /// The card's keys and files.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn objects(&mut self, deadline: Instant) -> Result<Inventory, TokenError>;

    /// The content of a file.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn read_file(&mut self, file: &File, deadline: Instant) -> Result<Vec<u8>, TokenError>;

    /// A public key: 04, X, Y.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn read_public_key(&mut self, id: &[u8], deadline: Instant) -> Result<[u8; 65], TokenError>;

    /// Signs with ECDSA: r and s, 32 bytes each.
    ///
    /// # Errors
    /// See [`Token::info`]; [`TokenError::PinNeeded`].
    fn sign(
        &mut self,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError>;

    /// Has the card verify a signature; returns whether it is valid.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn verify(
        &mut self,
        public_key: &[u8],
        input: SignInput<'_>,
        signature: &[u8; 64],
        deadline: Instant,
    ) -> Result<bool, TokenError>;

    /// The ECDH shared secret of a key and a peer's point: the x coordinate. A point that is not on
    /// the key's curve is not sent to the card: cards that do not check it leak the key (Biehl,
    /// Meyer, Mueller 2000).
    ///
    /// # Errors
    /// See [`Token::info`]; [`TokenError::NoPeerContainer`], [`TokenError::PeerNotOnCurve`].
    fn derive(
        &mut self,
        key: &[u8],
        peer: &[u8; 65],
        deadline: Instant,
    ) -> Result<SecretBytes, TokenError>;

    /// Generates a key pair in a private key's container.
    ///
    /// # Errors
    /// See [`Token::info`]; [`TokenError::PinNeeded`].
    fn generate(&mut self, key: &[u8], deadline: Instant) -> Result<GeneratedPair, TokenError>;

    /// Gives back a container for volatile keys, whose key is not used any more, to other callers
    /// of an agent. A card of this process has no others.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn give_back(&mut self, _key: &[u8], _deadline: Instant) -> Result<(), TokenError> {
        Ok(())
    }

    /// Fills `room` with random bytes from the card.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn random(&mut self, room: &mut [u8], deadline: Instant) -> Result<(), TokenError>;

    /// Resets the card's session, which ends the login if the card's policy says so.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn reset(&mut self, deadline: Instant) -> Result<(), TokenError>;

    /// Closes the logical channel. The next call opens one again.
    fn release(&mut self, deadline: Instant);
}

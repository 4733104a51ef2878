// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a token does, whoever stands behind it.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use warifu_card::crypto::{Hash, SecretBytes};

use crate::error::TokenError;
use crate::object::{File, Inventory, TokenInfo};

/// What a signature is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInput<'a> {
    /// A hash value of that hash's length.
    Digest(Hash, &'a [u8]),
    /// The text, for the card to hash.
    Text(Hash, &'a [u8]),
}

impl SignInput<'_> {
    /// The hash.
    #[must_use]
    pub fn hash(&self) -> Hash {
        match self {
            SignInput::Digest(hash, _) | SignInput::Text(hash, _) => *hash,
        }
    }
}

/// How a card stands to its PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinState {
    /// It has none.
    Absent,
    /// It wants it; so many wrong tries lock it, if the card says so.
    Wanted(Option<u8>),
    /// It has been given.
    Verified,
    /// It is locked.
    Locked,
}

/// A new key pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedPair {
    /// The card's id of its public half, if the card says so.
    pub public_id: Option<Vec<u8>>,
    /// The public key: 04, X, Y.
    pub point: [u8; 65],
}

/// One token. Whoever owns the card stands behind it: [`CardToken`](crate::CardToken) in this process, or another
/// process that is asked.
///
/// Every function comes back by its deadline. After an error the next call starts anew by
/// itself; no answer is ever given to another call than the one it belongs to.
pub trait Token: Send {
    /// What the card says of itself; also finds out whether it is there.
    ///
    /// # Errors
    /// [`TokenError`], as for all functions here.
    fn info(&mut self, deadline: Instant) -> Result<TokenInfo, TokenError>;

    /// How the card stands to its PIN. Costs no try.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn pin_state(&mut self, deadline: Instant) -> Result<PinState, TokenError>;

    /// Gives the card its PIN, once.
    ///
    /// # Errors
    /// [`TokenError::PinWrong`], [`TokenError::PinLocked`], [`TokenError::NoPin`]. A PIN that
    /// cannot be one (4 to 8 digits) is wrong without being sent.
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

    /// Lets the card verify a signature: whether it matches.
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

    /// The secret that a key and another's point share: the x coordinate.
    ///
    /// # Errors
    /// See [`Token::info`]; [`TokenError::NoPeerPlace`].
    fn derive(
        &mut self,
        key: &[u8],
        peer: &[u8; 65],
        deadline: Instant,
    ) -> Result<SecretBytes, TokenError>;

    /// Makes a new key pair in a private key's place.
    ///
    /// # Errors
    /// See [`Token::info`]; [`TokenError::PinNeeded`].
    fn generate(&mut self, key: &[u8], deadline: Instant) -> Result<GeneratedPair, TokenError>;

    /// Fills `room` with random bytes of the card's.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn random(&mut self, room: &mut [u8], deadline: Instant) -> Result<(), TokenError>;

    /// Starts anew: resets the card's session, and with it its PIN where the card counts it so.
    ///
    /// # Errors
    /// See [`Token::info`].
    fn reset(&mut self, deadline: Instant) -> Result<(), TokenError>;

    /// Gives back what the card lends: its logical channel. The next call opens one again.
    fn release(&mut self, deadline: Instant);
}

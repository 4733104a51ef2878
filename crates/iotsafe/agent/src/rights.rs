// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rights: which user may do what with which key.

use warifu_iotsafe_client::{Inventory, TokenError};

/// An operation that a caller may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Signatures.
    Sign,
    /// ECDH.
    Derive,
    /// New key pairs.
    Generate,
    /// JSON Web Tokens.
    Token,
    /// Random bytes of the card.
    Random,
    /// Signatures verified by the card.
    Verify,
    /// Tries of a PIN that the agent does not hold.
    Login,
    /// New key pairs in place of existing ones.
    Replace,
}

impl Right {
    /// All.
    pub const ALL: [Right; 8] = [
        Right::Sign,
        Right::Derive,
        Right::Generate,
        Right::Token,
        Right::Random,
        Right::Verify,
        Right::Login,
        Right::Replace,
    ];
    /// Those of a caller in the configuration that names none: all that destroys nothing.
    pub const DEFAULT: [Right; 7] = [
        Right::Sign,
        Right::Derive,
        Right::Generate,
        Right::Token,
        Right::Random,
        Right::Verify,
        Right::Login,
    ];

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Right::Sign => "sign",
            Right::Derive => "derive",
            Right::Generate => "generate",
            Right::Token => "token",
            Right::Random => "random",
            Right::Verify => "verify",
            Right::Login => "login",
            Right::Replace => "replace",
        }
    }
}

/// The rights of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The user.
    pub uid: u32,
    /// The labels of its keys, or their ids in hexadecimal; None for all keys.
    pub keys: Option<Vec<String>>,
    /// What it may do with them.
    pub may: Vec<Right>,
}

impl Rights {
    /// All rights.
    #[must_use]
    pub fn all(uid: u32) -> Rights {
        Rights { uid, keys: None, may: Right::ALL.to_vec() }
    }

    /// Whether they include a key.
    #[must_use]
    pub fn covers(&self, id: &[u8], label: &str) -> bool {
        let named = |key: &String| key == label || *key == hex::encode(id);
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(named))
    }

    /// Checks the right to an operation with the key of an id.
    ///
    /// # Errors
    /// See [`Rights::allow`].
    pub fn check(&self, right: Right, inventory: &Inventory, key: &[u8]) -> Result<(), TokenError> {
        let label = inventory.private_keys.iter().find(|private| private.id == key);
        self.allow(right, key, label.map(|private| &private.label[..]).unwrap_or_default())
    }

    /// Checks the right to an operation with a key.
    ///
    /// # Errors
    /// [`TokenError::Denied`], which names the user, the right and how to grant it.
    pub fn allow(&self, right: Right, id: &[u8], label: &str) -> Result<(), TokenError> {
        let uid = self.uid;
        self.allow_without_key(right)?;
        if !self.covers(id, label) {
            let key = hex::encode(id);
            let text = format!("user {uid} may not use the key {key}: add it to its caller.keys");
            return Err(TokenError::Denied(text));
        }
        Ok(())
    }

    /// Checks the right to an operation without a key.
    ///
    /// # Errors
    /// As [`Rights::allow`].
    pub fn allow_without_key(&self, right: Right) -> Result<(), TokenError> {
        if self.may.contains(&right) {
            return Ok(());
        }
        let (uid, word) = (self.uid, right.name());
        let text = format!("user {uid} may not {word}: add \"{word}\" to its caller.may");
        Err(TokenError::Denied(text))
    }

    /// Checks the right to give a PIN, which is compared with the held one: a caller that may use
    /// no key has no use for it.
    ///
    /// # Errors
    /// See [`Rights::allow`].
    pub fn allow_pin(&self) -> Result<(), TokenError> {
        let uses = [Right::Sign, Right::Derive, Right::Generate, Right::Login];
        match uses.iter().any(|right| self.may.contains(right)) {
            true => Ok(()),
            false => self.allow_without_key(Right::Login),
        }
    }

    /// Removes the private keys of a list that they do not include.
    pub fn filter(&self, inventory: &mut Inventory) {
        if self.keys.is_some() {
            inventory.private_keys.retain(|key| self.covers(&key.id, &key.label));
        }
    }
}

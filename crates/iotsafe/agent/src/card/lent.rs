// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card's volatile key pairs: made ahead, lent to one caller each, gone with the caller or with
//! the card's session.

use std::collections::BTreeMap;

use warifu_iotsafe_client::{GeneratedPair, Inventory, TokenError};

/// A caller's number; each connection has its own.
pub type CallerId = u64;

/// Who has which volatile key.
#[derive(Default)]
pub struct Lent {
    /// Made ahead: nobody's yet.
    ready: BTreeMap<Vec<u8>, GeneratedPair>,
    to: BTreeMap<Vec<u8>, CallerId>,
}

impl Lent {
    /// The card's session has ended, and the keys with it.
    pub fn session_lost(&mut self) {
        self.ready.clear();
        self.to.clear();
    }

    /// A caller has ended.
    pub fn end_of_caller(&mut self, caller: CallerId) {
        self.to.retain(|_, of| *of != caller);
    }

    /// Whether anybody has one.
    #[must_use]
    pub fn is_any(&self) -> bool {
        !self.to.is_empty()
    }

    /// Whether a pair can be made ahead here.
    #[must_use]
    pub fn wants(&self, place: &[u8]) -> bool {
        !self.to.contains_key(place) && !self.ready.contains_key(place)
    }

    /// A pair was made ahead.
    pub fn make_ready(&mut self, place: &[u8], pair: GeneratedPair) {
        self.ready.insert(place.to_vec(), pair);
    }

    /// Lends the pair that was made ahead, if there is one.
    ///
    /// # Errors
    /// [`TokenError::PlaceTaken`] where another has the place.
    pub fn take_ready(
        &mut self,
        place: &[u8],
        caller: CallerId,
    ) -> Result<Option<GeneratedPair>, TokenError> {
        if self.to.get(place).is_some_and(|of| *of != caller) {
            return Err(TokenError::PlaceTaken);
        }
        let pair = self.ready.remove(place);
        if pair.is_some() {
            self.lend(place, caller);
        }
        Ok(pair)
    }

    /// A caller has made a pair in this place.
    pub fn lend(&mut self, place: &[u8], caller: CallerId) {
        self.ready.remove(place);
        self.to.insert(place.to_vec(), caller);
    }

    /// Whether a caller may use the key in a volatile place.
    ///
    /// # Errors
    /// [`TokenError::PlaceTaken`] for another's, [`TokenError::KeyLost`] for nobody's.
    pub fn check(&self, place: &[u8], caller: CallerId) -> Result<(), TokenError> {
        match self.to.get(place) {
            Some(of) if *of == caller => Ok(()),
            Some(_) => Err(TokenError::PlaceTaken),
            None => Err(TokenError::KeyLost),
        }
    }

    /// The list as a caller may see it: places of others are not there, those of nobody are empty.
    pub fn show(&self, inventory: &mut Inventory, caller: CallerId) {
        let others = |place: &[u8]| self.to.get(place).is_some_and(|of| *of != caller);
        let halves: BTreeMap<Vec<u8>, Vec<u8>> = inventory
            .private_keys
            .iter()
            .filter(|key| key.attributes.is_volatile())
            .filter_map(|key| Some((key.public_id.clone()?, key.id.clone())))
            .collect();
        inventory.private_keys.retain(|key| !others(&key.id));
        inventory.public_keys.retain(|key| !halves.get(&key.id).is_some_and(|id| others(id)));
        for key in &mut inventory.private_keys {
            if key.attributes.is_volatile() {
                key.attributes.filled = Some(self.to.contains_key(&key.id));
            }
        }
        for key in &mut inventory.public_keys {
            if let Some(id) = halves.get(&key.id) {
                key.attributes.filled = Some(self.to.contains_key(id));
            }
        }
    }
}

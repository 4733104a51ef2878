// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card's volatile key pairs: generated ahead, lent to one caller each, lost with the card's
//! session.

use std::collections::BTreeMap;

use warifu_iotsafe_client::{GeneratedPair, Inventory, TokenError};

/// The number of a caller; each connection has its own.
pub type CallerId = u64;

/// The volatile key pairs, by the id of their container.
#[derive(Default)]
pub struct VolatileKeys {
    /// Generated ahead and not lent yet.
    ready: BTreeMap<Vec<u8>, GeneratedPair>,
    lent: BTreeMap<Vec<u8>, CallerId>,
}

impl VolatileKeys {
    /// The card's session has ended, and the keys with it.
    pub fn session_lost(&mut self) {
        self.ready.clear();
        self.lent.clear();
    }

    /// A caller has ended.
    pub fn end_of_caller(&mut self, caller: CallerId) {
        self.lent.retain(|_, owner| *owner != caller);
    }

    /// Whether any is lent.
    #[must_use]
    pub fn is_any_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Whether a pair can be generated ahead in this container.
    #[must_use]
    pub fn is_free(&self, container: &[u8]) -> bool {
        !self.lent.contains_key(container) && !self.ready.contains_key(container)
    }

    /// Keeps a pair that was generated ahead.
    pub fn keep_ready(&mut self, container: &[u8], pair: GeneratedPair) {
        self.ready.insert(container.to_vec(), pair);
    }

    /// Lends the pair that was generated ahead, if there is one.
    ///
    /// # Errors
    /// [`TokenError::ContainerInUse`] if another caller uses the container.
    pub fn take_ready(
        &mut self,
        container: &[u8],
        caller: CallerId,
    ) -> Result<Option<GeneratedPair>, TokenError> {
        if self.lent.get(container).is_some_and(|owner| *owner != caller) {
            return Err(TokenError::ContainerInUse);
        }
        let pair = self.ready.remove(container);
        if pair.is_some() {
            self.lend(container, caller);
        }
        Ok(pair)
    }

    /// Lends a pair that was generated for a caller.
    pub fn lend(&mut self, container: &[u8], caller: CallerId) {
        self.ready.remove(container);
        self.lent.insert(container.to_vec(), caller);
    }

    /// A caller has no more use for the key in a container.
    pub fn give_back(&mut self, container: &[u8], caller: CallerId) {
        if self.lent.get(container) == Some(&caller) {
            self.lent.remove(container);
        }
    }

    /// Checks that a caller may use the key in a volatile container.
    ///
    /// # Errors
    /// [`TokenError::ContainerInUse`] for another caller's key, [`TokenError::KeyLost`] for none.
    pub fn check(&self, container: &[u8], caller: CallerId) -> Result<(), TokenError> {
        match self.lent.get(container) {
            Some(owner) if *owner == caller => Ok(()),
            Some(_) => Err(TokenError::ContainerInUse),
            None => Err(TokenError::KeyLost),
        }
    }

    /// Removes other callers' containers from a list, which tells only that they are in use; those
    /// that nobody uses appear empty.
    pub fn hide_others(&self, inventory: &mut Inventory, caller: CallerId) {
        let others =
            |container: &[u8]| self.lent.get(container).is_some_and(|owner| *owner != caller);
        let pairs: BTreeMap<Vec<u8>, Vec<u8>> = inventory
            .private_keys
            .iter()
            .filter(|key| key.attributes.is_volatile())
            .filter_map(|key| Some((key.public_id.clone()?, key.id.clone())))
            .collect();
        let in_use = inventory.private_keys.iter().filter(|key| others(&key.id));
        inventory.volatile_in_use = in_use.map(|key| key.attributes).collect();
        inventory.private_keys.retain(|key| !others(&key.id));
        inventory.public_keys.retain(|key| !pairs.get(&key.id).is_some_and(|id| others(id)));
        for key in &mut inventory.private_keys {
            if key.attributes.is_volatile() {
                key.attributes.filled = Some(self.lent.contains_key(&key.id));
            }
        }
        for key in &mut inventory.public_keys {
            if let Some(id) = pairs.get(&key.id) {
                key.attributes.filled = Some(self.lent.contains_key(id));
            }
        }
    }
}

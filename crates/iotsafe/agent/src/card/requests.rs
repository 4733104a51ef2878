// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The requests of callers, each answered from the cache or in a turn at the card.

use std::sync::Arc;
use std::time::Instant;

use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{
    File, GeneratedPair, Inventory, PinState, SignInput, Token, TokenError, TokenInfo,
};
use zeroize::Zeroizing;

use super::turn::read_twice;
use super::{Caller, Holder, lock};

impl Holder {
    /// Information on the card.
    ///
    /// # Errors
    /// [`TokenError`], as for all functions here.
    pub fn info(&self, caller: &Caller<'_>, deadline: Instant) -> Result<TokenInfo, TokenError> {
        let cached = lock(&self.cache).info.clone();
        if let Some(info) = cached {
            return Ok(info);
        }
        let mut turn = self.turn(caller, deadline)?;
        let info = read_twice(|| turn.work(None, deadline, |token, end| token.info(end)))?;
        lock(&self.cache).info = Some(info.clone());
        Ok(info)
    }

    /// The state of the PIN: absent, to callers, while the agent is logged in.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn pin_state(
        &self,
        caller: &Caller<'_>,
        deadline: Instant,
    ) -> Result<PinState, TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        if turn.state.login.covers_callers() {
            return Ok(PinState::Absent);
        }
        let state = turn.work(None, deadline, |token, end| token.pin_state(end))?;
        Ok(match state {
            _ if turn.state.login.covers_callers() => PinState::Absent,
            PinState::Verified if turn.state.login.check_not_expired().is_err() => {
                PinState::Wanted(None)
            }
            state => state,
        })
    }

    /// Verifies a caller's PIN. It is sent to the card at most once; `may_lock` is whether the last
    /// try may be used. The card gets the full time of an attempt however short the caller's
    /// deadline is, so that no caller can hide that the card has counted a wrong PIN.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn verify_pin(
        &self,
        caller: &Caller<'_>,
        pin: &[u8],
        may_lock: bool,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        let now = self.clock.now();
        // A reset after the login would end it.
        turn.reset_after_failure(turn.end_of_attempt(deadline))?;
        let end = self.clock.now() + self.settings.retry.attempt;
        let state = &mut *turn.state;
        let result = state.login.verify_for_caller(pin, may_lock, &mut state.token, now, end);
        if turn.note_session() && result.is_ok() {
            turn.state.login.session_lost_before();
        }
        result.inspect_err(|error| turn.count(error, true))
    }

    /// The card's objects, as this caller may see them.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn objects(&self, caller: &Caller<'_>, deadline: Instant) -> Result<Inventory, TokenError> {
        let mut inventory = Inventory::clone(&*self.inventory(caller, deadline)?);
        if inventory.private_keys.iter().any(|key| key.attributes.is_volatile()) {
            self.turn(caller, deadline)?.state.volatile_keys.hide_others(&mut inventory, caller.id);
        }
        Ok(inventory)
    }

    /// The card's objects as they are.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn inventory(
        &self,
        caller: &Caller<'_>,
        deadline: Instant,
    ) -> Result<Arc<Inventory>, TokenError> {
        let cached = lock(&self.cache).inventory.clone();
        if let Some(inventory) = cached {
            return Ok(inventory);
        }
        let mut turn = self.turn(caller, deadline)?;
        turn.read_inventory(deadline)
    }

    /// A file's content.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn read_file(
        &self,
        caller: &Caller<'_>,
        file: &File,
        deadline: Instant,
    ) -> Result<Vec<u8>, TokenError> {
        if let Some(content) = lock(&self.cache).file(file) {
            return Ok(content.to_vec());
        }
        let mut turn = self.turn(caller, deadline)?;
        let content =
            read_twice(|| turn.work(None, deadline, |token, end| token.read_file(file, end)))?;
        lock(&self.cache).keep_file(file, &content);
        Ok(content)
    }

    /// A public key.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn read_public_key(
        &self,
        caller: &Caller<'_>,
        id: &[u8],
        deadline: Instant,
    ) -> Result<[u8; 65], TokenError> {
        let cached = lock(&self.cache).point(id);
        match cached {
            Some(point) => Ok(point),
            None => self.turn(caller, deadline)?.read_point(id, None, deadline),
        }
    }

    /// A signature, which has been verified with the key's public half where the card gives that.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn sign(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        let mut start = self.clock.now();
        let result = self.inventory(caller, deadline).and_then(|inventory| {
            let private = inventory.private_keys.iter().find(|private| private.id == key);
            let mut turn = self.turn(caller, deadline)?;
            start = self.clock.now();
            turn.sign(caller, private, key, input, deadline)
        });
        // A caller without a turn in time, or gone when the signature is ready, counts as failed.
        let took = self.clock.now().saturating_duration_since(start);
        let served = result.is_ok() && !(caller.has_gone)();
        self.metrics.signature(&self.settings.name, served, took);
        result
    }

    /// Lets the card verify a signature.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn verify(
        &self,
        caller: &Caller<'_>,
        public_key: &[u8],
        input: SignInput<'_>,
        signature: &[u8; 64],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        turn.work(None, deadline, |token, end| token.verify(public_key, input, signature, end))
    }

    /// The ECDH shared secret of a key and a peer's public key.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn derive(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        peer: &[u8; 65],
        deadline: Instant,
    ) -> Result<SecretBytes, TokenError> {
        let volatile = self.is_volatile(caller, key, deadline)?;
        let mut turn = self.turn(caller, deadline)?;
        turn.state.login.check_not_expired()?;
        let lent = volatile.then_some((key, caller.id));
        turn.work(lent, deadline, |token, end| token.derive(key, peer, end))
    }

    /// Generates a key pair; in a volatile container it is the caller's until it disconnects.
    ///
    /// # Errors
    /// See [`Holder::info`]; [`TokenError::ContainerInUse`].
    pub fn generate(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        deadline: Instant,
    ) -> Result<GeneratedPair, TokenError> {
        let volatile = self.is_volatile(caller, key, deadline)?;
        let mut turn = self.turn(caller, deadline)?;
        turn.state.login.check_not_expired()?;
        if volatile && let Some(pair) = turn.state.volatile_keys.take_ready(key, caller.id)? {
            self.metrics.ahead(&self.settings.name, "used_pair");
            return Ok(pair);
        }
        if volatile {
            let pair = turn.generate(key, deadline)?;
            turn.state.volatile_keys.lend(key, caller.id);
            return Ok(pair);
        }
        // Even a failed attempt may have generated one.
        let public_id = self.public_id(key);
        lock(&self.cache).forget_pair(public_id.as_deref());
        self.new_keys();
        let pair = turn.generate(key, deadline)?;
        lock(&self.cache).forget_pair(pair.public_id.as_deref());
        Ok(pair)
    }

    /// Random bytes from the card, each handed out once.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn random(
        &self,
        caller: &Caller<'_>,
        length: usize,
        deadline: Instant,
    ) -> Result<Zeroizing<Vec<u8>>, TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        let pool = &mut turn.state.random;
        if pool.len() >= length {
            let from = pool.len() - length;
            let bytes = Zeroizing::new(pool[from..].to_vec());
            pool[from..].fill(0);
            pool.truncate(from);
            self.metrics.ahead(&self.settings.name, "used_random");
            return Ok(bytes);
        }
        let mut bytes = Zeroizing::new(vec![0; length]);
        turn.work(None, deadline, |token, end| token.random(&mut bytes, end))?;
        Ok(bytes)
    }

    fn public_id(&self, key: &[u8]) -> Option<Vec<u8>> {
        let cached = lock(&self.cache);
        let mut keys = cached.inventory.iter().flat_map(|inventory| &inventory.private_keys);
        keys.find(|private| private.id == key)?.public_id.clone()
    }

    fn is_volatile(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let inventory = self.inventory(caller, deadline)?;
        let mut keys = inventory.private_keys.iter();
        Ok(keys.any(|private| private.id == key && private.attributes.is_volatile()))
    }
}

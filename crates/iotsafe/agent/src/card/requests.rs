// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The requests of callers, each answered from the cache or in a turn at the card.

use std::sync::Arc;
use std::time::Instant;

use warifu_card::StatusWord;
use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{
    GeneratedPair, Inventory, PinState, SignInput, Token, TokenError, TokenInfo,
};
use zeroize::Zeroizing;

use super::file_reading::FileReading;
use super::turn::read_twice;
use super::{Caller, Holder, KnownPin, Tries, lock};

/// How many random bytes one turn fetches: one GET RANDOM.
const RANDOM_PART_BYTES: usize = 256;

impl Holder {
    /// Information on the card.
    ///
    /// # Errors
    /// [`TokenError`], as for all functions here.
    pub fn info(&self, caller: &Caller<'_>, deadline: Instant) -> Result<TokenInfo, TokenError> {
        let cached = || lock(&self.cache).info.clone();
        if let Some(info) = cached() {
            return Ok(info);
        }
        let mut turn = self.turn(caller, deadline)?;
        // The caller before may have read it.
        if let Some(info) = cached() {
            return Ok(info);
        }
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
        let known = *lock(&self.known_pin);
        match known {
            KnownPin::Absent => return Ok(PinState::Absent),
            KnownPin::Held(until) if until.is_none_or(|until| self.clock.now() < until) => {
                return Ok(PinState::Absent);
            }
            _ => {}
        }
        let mut turn = self.turn(caller, deadline)?;
        if turn.state.login.covers_callers() {
            return Ok(PinState::Absent);
        }
        let state = turn.work(None, deadline, |token, end| token.pin_state(end))?;
        turn.state.no_pin = state == PinState::Absent;
        Ok(match state {
            _ if turn.state.login.covers_callers() => PinState::Absent,
            PinState::Verified if turn.state.login.check_not_expired().is_err() => {
                PinState::Wanted(None)
            }
            state => state,
        })
    }

    /// Verifies a caller's PIN. It is sent to the card at most once; `tries` are those that it may
    /// use. The card gets the full time of an attempt however short the caller's
    /// deadline is, so that no caller can hide that the card has counted a wrong PIN.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn verify_pin(
        &self,
        caller: &Caller<'_>,
        pin: &[u8],
        tries: Tries,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        let now = self.clock.now();
        // A reset after the login would end it.
        turn.reset_after_failure(turn.end_of_attempt(deadline))?;
        if tries != Tries::All {
            // The held PIN comes first: another user's is only compared with it.
            turn.log_in(turn.end_of_attempt(deadline))?;
            if turn.state.login.covers_callers() {
                return turn.state.login.compare_for_caller(pin, caller.uid, now);
            }
        }
        let end = self.clock.now() + self.settings.retry.attempt;
        let state = &mut *turn.state;
        let result = state.login.verify_for_caller(pin, tries, &mut state.token, now, end);
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
        lock(&self.volatile_keys).hide_others(&mut inventory, caller.id);
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
        let cached = || lock(&self.cache).inventory.clone();
        if let Some(inventory) = cached() {
            return Ok(inventory);
        }
        let mut turn = self.turn(caller, deadline)?;
        match cached() {
            Some(inventory) => Ok(inventory),
            None => turn.read_inventory(deadline),
        }
    }

    /// The content of the file with this id. How long it is, the card has told: what a caller says
    /// of it does not decide what the others get.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn read_file(
        &self,
        caller: &Caller<'_>,
        id: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, TokenError> {
        let inventory = self.inventory(caller, deadline)?;
        let file = inventory.files.iter().find(|file| file.id == id).ok_or_else(|| {
            TokenError::Status { command: "READ FILE".into(), sw: StatusWord::NOT_FOUND }
        })?;
        let cached = || lock(&self.cache).file(file).map(<[u8]>::to_vec);
        if let Some(content) = cached() {
            return Ok(content);
        }
        let mut reading = FileReading::new(file);
        loop {
            let mut turn = self.turn(caller, deadline)?;
            if let Some(content) = cached() {
                return Ok(content);
            }
            let pause = self.clock.now() + self.settings.retry.attempt / 2;
            if let Some(content) = reading.go_on(&mut turn, pause, deadline)? {
                lock(&self.cache).keep_file(file, &content);
                return Ok(content);
            }
        }
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
        let cached = || lock(&self.cache).point(id);
        if let Some(point) = cached() {
            return Ok(point);
        }
        let mut turn = self.turn(caller, deadline)?;
        match cached() {
            Some(point) => Ok(point),
            None => turn.read_point(id, None, deadline),
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
        turn.work_in_one_attempt(deadline, |token, end| {
            token.verify(public_key, input, signature, end)
        })
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

    /// Generates a key pair; in a volatile container it is the caller's until it disconnects or
    /// gives it back.
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
        let ready = match volatile {
            true => lock(&self.volatile_keys).take_ready(key, caller.id)?,
            false => None,
        };
        if let Some(pair) = ready {
            self.metrics.ahead(&self.settings.name, "used_pair");
            return Ok(pair);
        }
        if volatile {
            let pair = turn.generate(key, deadline)?;
            lock(&self.volatile_keys).lend(key, caller.id);
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

    /// Whether a container has, or may have, a key that a new pair would replace for good.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn has_kept_pair(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let inventory = self.inventory(caller, deadline)?;
        let mut keys = inventory.private_keys.iter().filter(|private| private.id == key);
        Ok(keys.any(|private| {
            let attributes = &private.attributes;
            !attributes.is_volatile() && attributes.filled != Some(false)
        }))
    }

    /// Frees a volatile key's container, if it is lent to this caller.
    pub fn give_back(&self, caller: &Caller<'_>, key: &[u8]) {
        lock(&self.volatile_keys).give_back(key, caller.id);
    }

    /// Random bytes from the card, each handed out once. Others have their turns between each
    /// [`RANDOM_PART_BYTES`].
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn random(
        &self,
        caller: &Caller<'_>,
        length: usize,
        deadline: Instant,
    ) -> Result<Zeroizing<Vec<u8>>, TokenError> {
        let mut bytes = Zeroizing::new(vec![0; length]);
        for part in bytes.chunks_mut(RANDOM_PART_BYTES) {
            let mut turn = self.turn(caller, deadline)?;
            let pool = &mut turn.state.random;
            let Some(from) = pool.len().checked_sub(part.len()) else {
                turn.work_in_one_attempt(deadline, |token, end| token.random(part, end))?;
                continue;
            };
            part.copy_from_slice(&pool[from..]);
            pool[from..].fill(0);
            pool.truncate(from);
            self.metrics.ahead(&self.settings.name, "used_random");
        }
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

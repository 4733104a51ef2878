// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One card that the agent holds, for all callers: each has its turn, its deadline, its errors.

mod ahead;
mod holding;
mod known;
mod lent;
mod login;
mod using;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use warifu_card::crypto::SecretBytes;
use warifu_token::{
    CardToken, File, GeneratedPair, Inventory, PinState, SignInput, Token, TokenError, TokenInfo,
    TransportError,
};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::turns::Turns;
pub use holding::Holding;
use known::Known;
pub use lent::CallerId;
use lent::Lent;
pub use login::{HeldPin, Login};
use using::{Using, twice};

/// Who asks, and whether it still waits.
pub struct Caller<'a> {
    /// Its number.
    pub id: CallerId,
    /// Whether it has hung up.
    pub has_gone: &'a dyn Fn() -> bool,
}

impl Caller<'_> {
    /// The agent itself.
    pub const AGENT: Caller<'static> = Caller { id: 0, has_gone: &|| false };
}

/// A card, and what is known of it.
pub struct Holder {
    /// How it is held.
    pub holding: Holding,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
    turns: Turns,
    held: Mutex<Held>,
    known: Mutex<Known>,
    /// Grows when keys are made anew or the card is exchanged: what was signed before is old.
    keys: AtomicU64,
    /// Callers that have ended since the card was last used.
    ended: Mutex<BTreeSet<CallerId>>,
}

/// What only the one whose turn it is may touch.
struct Held {
    token: CardToken,
    losses: u64,
    open: bool,
    /// The last thing failed: nobody knows what the card has open.
    failed: bool,
    /// The session was lost since the card was known to be the same.
    doubtful: bool,
    login: Login,
    lent: Lent,
    random: Zeroizing<Vec<u8>>,
    rng: Xoshiro256PlusPlus,
    /// None before the first caller.
    last_used: Option<Instant>,
    /// Whether there may be work ahead of need.
    ahead: bool,
}

impl Holder {
    /// Holds a card; nothing is sent to it before [`Holder::tick`] or a caller. `seed` scatters the
    /// waits between retries.
    #[must_use]
    pub fn new(
        token: CardToken,
        login: Login,
        holding: Holding,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        seed: u64,
    ) -> Holder {
        let held = Held {
            losses: token.losses(),
            token,
            open: false,
            failed: false,
            doubtful: false,
            login,
            lent: Lent::default(),
            random: Zeroizing::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            last_used: None,
            ahead: true,
        };
        Holder {
            holding,
            clock,
            metrics,
            turns: Turns::default(),
            held: Mutex::new(held),
            known: Mutex::default(),
            keys: AtomicU64::new(0),
            ended: Mutex::default(),
        }
    }

    /// What the card says of itself.
    ///
    /// # Errors
    /// [`TokenError`], as for all functions here.
    pub fn info(&self, caller: &Caller<'_>, deadline: Instant) -> Result<TokenInfo, TokenError> {
        let known = lock(&self.known).info.clone();
        if let Some(info) = known {
            return Ok(info);
        }
        let mut turn = self.turn(caller, deadline)?;
        let info = twice(|| turn.work(None, deadline, |token, end| token.info(end)))?;
        lock(&self.known).info = Some(info.clone());
        Ok(info)
    }

    /// How the card stands to its PIN: it wants none while the agent is logged in.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn pin_state(
        &self,
        caller: &Caller<'_>,
        deadline: Instant,
    ) -> Result<PinState, TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        if turn.held.login.serves_all() {
            return Ok(PinState::Absent);
        }
        let state = turn.work(None, deadline, |token, end| token.pin_state(end))?;
        Ok(match state {
            _ if turn.held.login.serves_all() => PinState::Absent,
            PinState::Verified if turn.held.login.admits().is_err() => PinState::Wanted(None),
            state => state,
        })
    }

    /// A caller gives a PIN. The card is asked once at most, whatever happens; `may_lock` is whether
    /// the last try may be spent.
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
        let (now, end) = (self.clock.now(), turn.end_of_attempt(deadline));
        // After it, the reset would take the login with it.
        turn.start_anew(end)?;
        let held = &mut *turn.held;
        let result = held.login.of_caller(pin, may_lock, &mut held.token, now, end);
        if turn.note_session() && result.is_ok() {
            turn.held.login.session_lost_before();
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
            self.turn(caller, deadline)?.held.lent.show(&mut inventory, caller.id);
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
        let known = lock(&self.known).inventory.clone();
        if let Some(inventory) = known {
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
        if let Some(content) = lock(&self.known).file(file) {
            return Ok(content.to_vec());
        }
        let mut turn = self.turn(caller, deadline)?;
        let content = twice(|| turn.work(None, deadline, |token, end| token.read_file(file, end)))?;
        lock(&self.known).keep_file(file, &content);
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
        let known = lock(&self.known).point(id);
        match known {
            Some(point) => Ok(point),
            None => self.turn(caller, deadline)?.read_point(id, None, deadline),
        }
    }

    /// A signature, which has been verified with the key's public half.
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
        // Who has waited in vain for a turn has no signature either.
        let took = self.clock.now().saturating_duration_since(start);
        self.metrics.signature(&self.holding.name, result.is_ok(), took);
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

    /// The secret that a key and another's point share.
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
        turn.held.login.admits()?;
        let lent = volatile.then_some((key, caller.id));
        turn.work(lent, deadline, |token, end| token.derive(key, peer, end))
    }

    /// A new key pair; in a volatile place it is the caller's until it hangs up.
    ///
    /// # Errors
    /// See [`Holder::info`]; [`TokenError::PlaceTaken`].
    pub fn generate(
        &self,
        caller: &Caller<'_>,
        key: &[u8],
        deadline: Instant,
    ) -> Result<GeneratedPair, TokenError> {
        let volatile = self.is_volatile(caller, key, deadline)?;
        let mut turn = self.turn(caller, deadline)?;
        turn.held.login.admits()?;
        if volatile && let Some(pair) = turn.held.lent.take_ready(key, caller.id)? {
            self.metrics.ahead(&self.holding.name, "used_pair");
            return Ok(pair);
        }
        if volatile {
            let pair = turn.generate(key, deadline)?;
            turn.held.lent.lend(key, caller.id);
            return Ok(pair);
        }
        // Even a try that fails may have made one.
        let public_id = self.public_id(key);
        lock(&self.known).forget_pair(public_id.as_deref());
        self.new_keys();
        let pair = turn.generate(key, deadline)?;
        lock(&self.known).forget_pair(pair.public_id.as_deref());
        Ok(pair)
    }

    /// Random bytes of the card's, each given out once.
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
        let pool = &mut turn.held.random;
        if pool.len() >= length {
            let from = pool.len() - length;
            let bytes = Zeroizing::new(pool[from..].to_vec());
            pool[from..].fill(0);
            pool.truncate(from);
            self.metrics.ahead(&self.holding.name, "used_random");
            return Ok(bytes);
        }
        let mut bytes = Zeroizing::new(vec![0; length]);
        turn.work(None, deadline, |token, end| token.random(&mut bytes, end))?;
        Ok(bytes)
    }

    /// A caller has hung up: what it was lent is free.
    pub fn end_of_caller(&self, caller: CallerId) {
        lock(&self.ended).insert(caller);
    }

    /// Gives the card its channel back; the agent ends, or the card has been idle.
    pub fn close(&self, deadline: Instant) {
        let within = deadline.saturating_duration_since(self.clock.now());
        if let Some(turn) = self.turns.take(within) {
            Using::new(self, turn).close(deadline);
        }
    }

    /// How many callers have or await a turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.turns.length()
    }

    /// Whether the session is open and whether a PIN is held; None while the card is at work.
    #[must_use]
    pub fn state(&self) -> Option<(bool, bool)> {
        let held = self.held.try_lock().ok()?;
        Some((held.open, held.login.is_held()))
    }

    /// The number of the card's keys as they are: another one when any was made anew.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::SeqCst)
    }

    fn new_keys(&self) {
        self.keys.fetch_add(1, Ordering::SeqCst);
    }

    fn public_id(&self, key: &[u8]) -> Option<Vec<u8>> {
        let known = lock(&self.known);
        let mut keys = known.inventory.iter().flat_map(|inventory| &inventory.private_keys);
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

    /// Waits for the card. A caller that has hung up meanwhile is passed over.
    fn turn(&self, caller: &Caller<'_>, deadline: Instant) -> Result<Using<'_>, TokenError> {
        let within = deadline.saturating_duration_since(self.clock.now());
        let timeout = || TransportError::Timeout(format!("the card {}", self.holding.name));
        let turn = self.turns.take(within).ok_or_else(timeout)?;
        if (caller.has_gone)() {
            return Err(TransportError::Gone("the caller has hung up".to_owned()).into());
        }
        let mut using = Using::new(self, turn);
        using.held.last_used = Some(self.clock.now());
        using.held.ahead = true;
        Ok(using)
    }
}

/// A panic while a lock was held is that caller's error, not all later ones'.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

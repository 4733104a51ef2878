// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One card that the agent holds, for all callers: each has its turn, its deadline, its errors.

mod ahead;
mod known;
mod lent;
mod login;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use warifu_card::crypto::SecretBytes;
use warifu_token::{
    CardToken, Curve, File, GeneratedPair, Inventory, PinState, PrivateKey, SignInput, Token,
    TokenError, TokenInfo, TransportError,
};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::retry::{self, Retry};
use crate::turns::{Turn, Turns};
use known::{Known, Verifier, on_curve};
pub use lent::CallerId;
use lent::Lent;
pub use login::{HeldPin, Login};

/// How often something that is kept for long is read until it is twice the same: a bit that fell
/// over on the line must not stay.
const READINGS_MAX: usize = 4;

/// How a card is held.
#[derive(Clone, Debug)]
pub struct Holding {
    /// Its name, for callers and metrics.
    pub name: String,
    /// How errors that pass are retried.
    pub retry: Retry,
    /// The session is closed after so long without a caller.
    pub idle_close: Duration,
    /// Work ahead begins after so long without a caller.
    pub ahead_after: Duration,
    /// How many random bytes are kept ready.
    pub random_ahead_bytes: usize,
    /// Whether key pairs are made ahead in volatile places.
    pub pairs_ahead: bool,
}

impl Holding {
    /// As the configuration has it if it says nothing.
    #[must_use]
    pub fn usual(name: &str) -> Holding {
        Holding {
            name: name.to_owned(),
            retry: Retry::default(),
            idle_close: Duration::from_secs(300),
            ahead_after: Duration::from_millis(200),
            random_ahead_bytes: 1024,
            pairs_ahead: true,
        }
    }
}

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
        Ok(if turn.held.login.serves_all() { PinState::Absent } else { state })
    }

    /// A caller gives a PIN. The card is asked once at most, whatever happens.
    ///
    /// # Errors
    /// See [`Holder::info`].
    pub fn verify_pin(
        &self,
        caller: &Caller<'_>,
        pin: &[u8],
        deadline: Instant,
    ) -> Result<(), TokenError> {
        let mut turn = self.turn(caller, deadline)?;
        let (now, end) = (self.clock.now(), turn.end_of_attempt(deadline));
        let held = &mut *turn.held;
        let result = held.login.of_caller(pin, &mut held.token, now, end);
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
        let inventory = self.inventory(caller, deadline)?;
        let private = inventory.private_keys.iter().find(|private| private.id == key);
        let mut turn = self.turn(caller, deadline)?;
        let start = self.clock.now();
        let result = turn.sign(caller, private, key, input, deadline);
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
        if volatile && let Some(pair) = turn.held.lent.take_ready(key, caller.id)? {
            self.metrics.ahead(&self.holding.name, "used_pair");
            return Ok(pair);
        }
        let pair = turn.generate(key, deadline)?;
        if volatile {
            turn.held.lent.lend(key, caller.id);
        } else {
            lock(&self.known).forget_pair(pair.public_id.as_deref());
        }
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

/// The card, while it is one caller's turn.
struct Using<'a> {
    holder: &'a Holder,
    held: MutexGuard<'a, Held>,
    _turn: Turn<'a>,
}

impl<'a> Using<'a> {
    fn new(holder: &'a Holder, turn: Turn<'a>) -> Using<'a> {
        let mut held = lock(&holder.held);
        for caller in std::mem::take(&mut *lock(&holder.ended)) {
            held.lent.end_of_caller(caller);
        }
        Using { holder, held, _turn: turn }
    }

    /// Does something with the card; transient errors are retried after the card's session was
    /// reset, as long as the deadline lets. `lent` names a volatile key and who it was lent to.
    fn work<T>(
        &mut self,
        lent: Option<(&[u8], CallerId)>,
        deadline: Instant,
        mut operation: impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let Holder { holding, clock, metrics, .. } = self.holder;
        let mut failures = 0;
        loop {
            let end = self.end_of_attempt(deadline);
            let error = match self.attempt(lent, end, &mut operation) {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let delay = holding.retry.delay(failures, &mut self.held.rng);
            failures += 1;
            let in_vain = failures > holding.retry.times || clock.now() + delay >= deadline;
            if !retry::is_transient(&error) || in_vain {
                if matches!(error, TokenError::Transport(_)) {
                    // Another card may be there when there is one again.
                    *lock(&self.holder.known) = Known::default();
                }
                return Err(error);
            }
            clock.sleep(delay);
            metrics.retry(&holding.name);
        }
    }

    fn attempt<T>(
        &mut self,
        lent: Option<(&[u8], CallerId)>,
        end: Instant,
        operation: &mut impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        if self.held.failed {
            // What the last try, whoever's it was, has left on the card is not known.
            let reset = self.held.token.reset(end);
            self.note_session();
            reset.inspect_err(|error| self.count(error, false))?;
        }
        if let Err(error) = self.log_in(end) {
            self.held.failed = true;
            return Err(error);
        }
        if let Some((place, caller)) = lent {
            self.held.lent.check(place, caller)?;
        }
        self.holder.metrics.session(&self.holder.holding.name, self.held.open);
        let result = operation(&mut self.held.token, end);
        let lost = self.note_session();
        self.held.open = result.is_ok();
        self.held.failed = result.as_ref().err().is_some_and(retry::is_transient);
        let result = match result {
            // What the card says of a key that it has forgotten is its own affair.
            Err(TokenError::Status { .. }) if lost && lent.is_some() => Err(TokenError::KeyLost),
            // It has forgotten the PIN as well; the login is done again, once.
            Err(TokenError::PinNeeded) if self.held.login.serves_all() => {
                self.held.login.session_lost();
                self.log_in(end)?;
                operation(&mut self.held.token, end)
            }
            result => result,
        };
        self.note_session();
        result.inspect_err(|error| self.count(error, false))
    }

    fn log_in(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.held.login.is_due() {
            return Ok(());
        }
        let now = self.holder.clock.now();
        let held = &mut *self.held;
        let result = held.login.ensure(&mut held.token, now, end);
        if self.note_session() && result.is_ok() {
            self.held.login.session_lost_before();
        }
        let Err(error) = result else { return Ok(()) };
        self.count(&error, true);
        if retry::is_transient(&error) {
            return Err(error);
        }
        // What needs no PIN works without; what needs it says so.
        let name = &self.holder.holding.name;
        eprintln!("warifu-agent: {name}: not logged in: {error}; a program's C_Login gives a PIN");
        Ok(())
    }

    fn sign(
        &mut self,
        caller: &Caller<'_>,
        private: Option<&PrivateKey>,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        let volatile = private.is_some_and(|private| private.attributes.is_volatile());
        let lent = volatile.then_some((key, caller.id));
        let verifier = match private {
            Some(private) => self.verifier(private, deadline)?,
            None => None,
        };
        self.work(lent, deadline, |token, end| {
            let signature = token.sign(key, input, end)?;
            match &verifier {
                Some(verifier) => verifier.checked(input, signature),
                None => Ok(signature),
            }
        })
    }

    /// What to verify a key's signatures with; None where the card gives no public key.
    fn verifier(
        &mut self,
        private: &PrivateKey,
        deadline: Instant,
    ) -> Result<Option<Verifier>, TokenError> {
        let (Some(id), Some(curve)) = (&private.public_id, private.attributes.curve()) else {
            return Ok(None);
        };
        let (verifier, point) = {
            let known = lock(&self.holder.known);
            (known.verifier(id), known.point(id))
        };
        if verifier.is_some() {
            return Ok(verifier);
        }
        let point = match point.map_or_else(|| self.read_point(id, Some(curve), deadline), Ok) {
            Ok(point) => point,
            Err(error @ TokenError::Status { .. }) if !retry::is_transient(&error) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let verifier = Verifier::new(curve, &point)?;
        lock(&self.holder.known).keep_verifier(id, verifier.clone());
        Ok(Some(verifier))
    }

    fn read_point(
        &mut self,
        id: &[u8],
        curve: Option<Curve>,
        deadline: Instant,
    ) -> Result<[u8; 65], TokenError> {
        let point = self
            .work(None, deadline, |token, end| on_curve(curve, token.read_public_key(id, end)?))?;
        lock(&self.holder.known).keep_point(id, point);
        Ok(point)
    }

    fn read_inventory(&mut self, deadline: Instant) -> Result<Arc<Inventory>, TokenError> {
        let inventory = twice(|| self.work(None, deadline, |token, end| token.objects(end)))?;
        let inventory = Arc::new(inventory);
        lock(&self.holder.known).inventory = Some(Arc::clone(&inventory));
        Ok(inventory)
    }

    fn generate(&mut self, key: &[u8], deadline: Instant) -> Result<GeneratedPair, TokenError> {
        self.work(None, deadline, |token, end| {
            let pair = token.generate(key, end)?;
            on_curve(None, pair.point)?;
            Ok(pair)
        })
    }

    fn close(&mut self, deadline: Instant) {
        if self.held.failed {
            self.reset(deadline);
        } else {
            self.held.token.release(deadline);
            self.note_session();
        }
    }

    fn reset(&mut self, deadline: Instant) {
        // A card that is gone has nothing open; one that could not be reset is so before it is
        // used again.
        self.held.failed = self.held.token.reset(deadline).is_err();
        self.note_session();
    }

    /// Takes note of a session that has ended: whether one has.
    fn note_session(&mut self) -> bool {
        let losses = self.held.token.losses();
        let lost = losses != self.held.losses;
        if lost {
            self.held.losses = losses;
            self.held.open = false;
            self.held.login.session_lost();
            self.held.lent.session_lost();
        }
        lost
    }

    fn count(&self, error: &TokenError, authentication: bool) {
        let Holder { metrics, holding, .. } = self.holder;
        metrics.card_error(&holding.name, &retry::kind(error));
        let late = matches!(error, TokenError::Transport(TransportError::Timeout(_)));
        if authentication && late {
            metrics.authentication_timeout(&holding.name);
        }
    }

    fn end_of_attempt(&self, deadline: Instant) -> Instant {
        deadline.min(self.holder.clock.now() + self.holder.holding.retry.attempt)
    }
}

/// Reads until two readings in a row are the same.
fn twice<T: PartialEq>(mut read: impl FnMut() -> Result<T, TokenError>) -> Result<T, TokenError> {
    let mut last = read()?;
    for _ in 1..READINGS_MAX {
        let again = read()?;
        if again == last {
            return Ok(again);
        }
        last = again;
    }
    Err(TokenError::Answer {
        command: "a command".into(),
        what: "is another one each time: see to the line to the card".into(),
    })
}

/// A panic while a lock was held is that caller's error, not all later ones'.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One card that the agent holds, for all callers: each has its turn, its deadline, its errors.

mod ahead;
mod holding;
mod known;
mod lent;
mod login;
mod serving;
mod using;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use warifu_iotsafe_client::{CardToken, TokenError, TransportError};
use warifu_os::{Clock, TurnQueue};
use zeroize::Zeroizing;

use crate::metrics::Metrics;
pub use holding::Holding;
use known::Known;
pub use lent::CallerId;
use lent::Lent;
pub use login::{HeldPin, Login, PinStanding, not_logged_in};
use using::Using;

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
    turns: TurnQueue,
    held: Mutex<Held>,
    known: Mutex<Known>,
    /// Grows when keys are made anew, the card is exchanged, or the PIN's lifetime ends: what was
    /// signed before is old.
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
    /// Whether it was said that the card does not answer.
    told: bool,
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
            told: false,
        };
        Holder {
            holding,
            clock,
            metrics,
            turns: TurnQueue::default(),
            held: Mutex::new(held),
            known: Mutex::default(),
            keys: AtomicU64::new(0),
            ended: Mutex::default(),
        }
    }

    /// A caller has hung up: what it was lent is free.
    pub fn end_of_caller(&self, caller: CallerId) {
        lock(&self.ended).insert(caller);
    }

    /// Gives the card its channel back; the agent ends, or the card has been idle.
    pub fn close(&self, deadline: Instant) {
        let within = deadline.saturating_duration_since(self.clock.now());
        if let Some(turn) = self.turns.acquire_within(within) {
            Using::new(self, turn).close(deadline);
        }
    }

    /// How many callers have or await a turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.turns.length()
    }

    /// Whether the session is open, and what there is to say of the PIN; None while the card is at
    /// work.
    #[must_use]
    pub fn state(&self) -> Option<(bool, PinStanding)> {
        let held = match self.held.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some((held.open, held.login.standing()))
    }

    /// The number of the card's keys as they are: another one when any was made anew, or may not be
    /// used any more.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::SeqCst)
    }

    fn new_keys(&self) {
        self.keys.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits for the card. A caller that has hung up meanwhile is passed over.
    fn turn(&self, caller: &Caller<'_>, deadline: Instant) -> Result<Using<'_>, TokenError> {
        let within = deadline.saturating_duration_since(self.clock.now());
        let timeout = || TransportError::Timeout(format!("the card {}", self.holding.name));
        let turn = self.turns.acquire_within(within).ok_or_else(timeout)?;
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One card that the agent holds for all callers. Each request has its own turn, deadline and
//! errors.

mod ahead;
mod cache;
mod file_reading;
mod login;
mod requests;
mod settings;
mod turn;
mod volatile_keys;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use warifu_iotsafe_client::{CardToken, TokenError, TransportError};
use warifu_os::{Clock, TurnQueue};
use zeroize::Zeroizing;

use crate::metrics::Metrics;
use cache::CardCache;
pub use login::{HeldPin, Login, PinStatus, Tries, not_logged_in};
pub use settings::CardSettings;
use turn::CardTurn;
pub use volatile_keys::CallerId;
use volatile_keys::VolatileKeys;

/// The caller of a request.
pub struct Caller<'a> {
    /// Its number.
    pub id: CallerId,
    /// Its user: users get turns in rotation.
    pub uid: u32,
    /// Whether it has closed its connection.
    pub has_gone: &'a dyn Fn() -> bool,
}

impl Caller<'_> {
    /// The agent itself.
    pub const AGENT: Caller<'static> = Caller { id: 0, uid: u32::MAX, has_gone: &|| false };
}

/// Holds one card.
pub struct Holder {
    /// Its settings.
    pub settings: CardSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
    turns: TurnQueue,
    state: Mutex<State>,
    cache: Mutex<CardCache>,
    /// Incremented when keys are generated, the card is exchanged, or the PIN's lifetime ends:
    /// tokens signed before are no longer handed out.
    keys: AtomicU64,
    /// The card's volatile keys, which need no turn to look at.
    volatile_keys: Mutex<VolatileKeys>,
    /// What the PIN was at the end of the last turn.
    known_pin: Mutex<KnownPin>,
}

/// What of a PIN's state holds until the next turn ends, so that nobody waits to be told.
#[derive(Clone, Copy, Default)]
enum KnownPin {
    /// The card must be asked.
    #[default]
    Unknown,
    /// The card has none.
    Absent,
    /// The agent is logged in for its callers, until the PIN's lifetime ends.
    Held(Option<Instant>),
}

/// The state that belongs to whoever has the turn.
struct State {
    token: CardToken,
    losses: u64,
    open: bool,
    /// The last operation failed: what the card has open is unknown.
    failed: bool,
    /// The session was lost since the card was last seen to be the same one.
    unconfirmed: bool,
    login: Login,
    /// The card has reported, in this session, that it has no PIN.
    no_pin: bool,
    random: Zeroizing<Vec<u8>>,
    rng: Xoshiro256PlusPlus,
    /// None before the first caller.
    last_used: Option<Instant>,
    /// Whether there may be work to do ahead.
    ahead: bool,
    /// Whether an error of the work ahead has been reported.
    error_reported: bool,
}

impl Holder {
    /// Holds a card; nothing is sent to it before [`Holder::tick`] or a request. `seed` is for the
    /// jitter of the waits between retries.
    #[must_use]
    pub fn new(
        token: CardToken,
        login: Login,
        settings: CardSettings,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        seed: u64,
    ) -> Holder {
        let state = State {
            losses: token.losses(),
            token,
            open: false,
            failed: false,
            unconfirmed: false,
            login,
            no_pin: false,
            random: Zeroizing::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            last_used: None,
            ahead: true,
            error_reported: false,
        };
        Holder {
            settings,
            clock,
            metrics,
            turns: TurnQueue::default(),
            state: Mutex::new(state),
            cache: Mutex::default(),
            keys: AtomicU64::new(0),
            volatile_keys: Mutex::default(),
            known_pin: Mutex::default(),
        }
    }

    /// A caller has closed its connection: its volatile keys are free.
    pub fn end_of_caller(&self, caller: CallerId) {
        lock(&self.volatile_keys).end_of_caller(caller);
    }

    /// Closes the card's channel, when the agent ends or the card has been idle.
    pub fn close(&self, deadline: Instant) {
        let within = deadline.saturating_duration_since(self.clock.now());
        if let Some(turn) = self.turns.acquire_within(within) {
            CardTurn::new(self, turn).close(deadline);
        }
    }

    /// How many callers have a turn or wait for one.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.turns.length()
    }

    /// Whether the session is open, and the status of the PIN; None while the card is busy.
    #[must_use]
    pub fn state(&self) -> Option<(bool, PinStatus)> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some((state.open, state.login.status()))
    }

    /// A number that changes when a key is replaced or may no longer be used.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::SeqCst)
    }

    fn new_keys(&self) {
        self.keys.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits for a turn. A caller that has closed its connection meanwhile gets none.
    fn turn(&self, caller: &Caller<'_>, deadline: Instant) -> Result<CardTurn<'_>, TokenError> {
        let within = deadline.saturating_duration_since(self.clock.now());
        let timeout = || TransportError::Timeout(format!("the card {}", self.settings.name));
        let turn = self.turns.acquire_for(caller.uid, within).ok_or_else(timeout)?;
        if (caller.has_gone)() {
            return Err(
                TransportError::Gone("the caller has closed the connection".to_owned()).into()
            );
        }
        let mut turn = CardTurn::new(self, turn);
        turn.state.last_used = Some(self.clock.now());
        turn.state.ahead = true;
        Ok(turn)
    }
}

/// Ignores poisoning: a panic fails one caller's request, not all later ones.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

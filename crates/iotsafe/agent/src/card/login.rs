// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The PIN that the agent holds. The agent never sends a PIN that the card has refused, never uses
//! the last try, and does not let callers guess without limit.
//!
//! While the agent is logged in, callers with rights need no PIN: the token reports that it has
//! none. If a caller sends one anyway (programs have it in their URI), it is compared with the held
//! PIN in constant time, without the card. A different PIN of another user is wrong, and never sent
//! to the card: it would end the login of all. One of the agent's own user is sent to the card
//! once, which counts it. The agent's own login would reset the card's counter, so after more than
//! [`WRONG_MAX`] wrong PINs since the last correct one the held PIN is forgotten, and a person has
//! to enter it again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use warifu_card::PIN_MAX_BYTES;
use warifu_iotsafe_client::{CardToken, PinState, Token, TokenError};
use zeroize::Zeroizing;

/// After how many wrong PINs of callers the held PIN is still kept.
pub const WRONG_MAX: u8 = 1;
/// With fewer tries left the agent sends no PIN: the last try is left to a person.
const TRIES_MIN: u8 = 2;
/// With fewer tries left no PIN of another user is sent: one is left to the agent's login, and the
/// last to a person.
const TRIES_MIN_OF_OTHERS: u8 = 3;
/// How many wrong PINs in a row of another user are compared with the held one at once.
const COMPARED_MAX: u32 = 3;
/// After those, how long until the next: a PIN of four digits takes a year of guesses.
const COMPARE_PAUSE: Duration = Duration::from_secs(3600);

/// Which tries of the card's PIN a caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// All: the user who runs the agent.
    All,
    /// Never the last two: another user with the right to log in, while no PIN is held.
    ButTwo,
    /// None: other users.
    None,
}

/// A PIN, padded to the longest so that comparing takes the same time for all. On the heap: a value
/// that is moved would leave copies on the stack, which nothing overwrites.
#[derive(Clone)]
pub struct HeldPin {
    padded: Box<Zeroizing<[u8; PIN_MAX_BYTES]>>,
    length: usize,
}

impl HeldPin {
    /// None if it is too long for a PIN.
    #[must_use]
    pub fn new(pin: &[u8]) -> Option<HeldPin> {
        let mut padded = Box::new(Zeroizing::new([0xff; PIN_MAX_BYTES]));
        padded.get_mut(..pin.len())?.copy_from_slice(pin);
        Some(HeldPin { padded, length: pin.len() })
    }

    fn bytes(&self) -> &[u8] {
        &self.padded[..self.length]
    }

    fn is(&self, pin: &[u8]) -> bool {
        HeldPin::new(pin).is_some_and(|other| bool::from(self.padded.ct_eq(&**other.padded)))
    }
}

/// The status of a card's PIN, as `status` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinStatus {
    /// No PIN is held; the card may have none.
    None,
    /// A PIN is held.
    Held,
    /// A PIN is held, but not sent to the card, which has one try left.
    LastTry,
    /// The card refused the PIN, which was forgotten; the tries that are left.
    Refused(Option<u8>),
    /// The PIN is locked.
    Locked,
    /// The lifetime of the held PIN has ended.
    Expired,
}

/// Why the agent is not logged in, and how to log in; one line.
#[must_use]
pub fn not_logged_in(error: &TokenError) -> String {
    match error {
        TokenError::PinLocked => {
            "the PIN is locked: unlock it with `warifu card reset --unblock-pin` on a virtual \
             SIM, with \
             the operator's PUK on a real one"
                .to_owned()
        }
        TokenError::PinWrong { tries_left } => {
            let left = match tries_left {
                Some(1) => " (1 try left)".to_owned(),
                Some(tries) => format!(" ({tries} tries left)"),
                None => String::new(),
            };
            format!("the PIN is wrong{left} and was forgotten: log in from a program with C_Login")
        }
        TokenError::PinNeeded => {
            "the PIN was not sent, since only one try is left: log in from a program with C_Login"
                .to_owned()
        }
        error => format!("not logged in: {error}; log in from a program with C_Login"),
    }
}

/// The agent's login to one card.
#[derive(Default)]
pub struct Login {
    held: Option<HeldPin>,
    /// Why the last PIN was not accepted, until another one is.
    failure: Option<PinStatus>,
    /// The card has accepted the held PIN.
    confirmed: bool,
    /// The card's session is logged in.
    logged_in: bool,
    /// The PIN was sent and the result is unknown; the tries that were left before.
    unanswered: Option<Option<u8>>,
    /// Wrong PINs since the last correct one, with those that the card may have counted.
    wrong_by_callers: u8,
    /// Other users' wrong PINs since their last correct one, and when the last one was compared.
    compared: BTreeMap<u32, (u32, Instant)>,
    /// Another user has tried a PIN on a card that does not report the tries left, and none has
    /// been accepted since.
    blind_try: bool,
    lifetime: Option<Duration>,
    expires: Option<Instant>,
    /// The lifetime has ended, and no PIN was entered since. The card may still be logged in.
    expired: bool,
}

impl Login {
    /// With a PIN that has not been tried yet, or without one; `lifetime` is how long one is held.
    #[must_use]
    pub fn new(pin: Option<HeldPin>, lifetime: Option<Duration>) -> Login {
        Login { held: pin, lifetime, ..Login::default() }
    }

    /// The status of the PIN.
    #[must_use]
    pub fn status(&self) -> PinStatus {
        match (&self.held, self.failure) {
            (Some(_), Some(PinStatus::LastTry)) => PinStatus::LastTry,
            (Some(_), _) => PinStatus::Held,
            (None, Some(why)) => why,
            (None, None) if self.expired => PinStatus::Expired,
            (None, None) => PinStatus::None,
        }
    }

    /// Whether callers need no PIN.
    #[must_use]
    pub fn covers_callers(&self) -> bool {
        self.held.is_some() && self.confirmed && !self.needs_a_person()
    }

    /// Forgets the held PIN at the end of its lifetime; returns whether it has ended.
    pub fn expire(&mut self, now: Instant) -> bool {
        let over = self.held.is_some() && self.expires.is_some_and(|expires| now >= expires);
        if over {
            self.forget();
            self.expired = true;
        }
        over
    }

    /// Refuses every key after the PIN's lifetime, even if the card is still logged in: behind a
    /// modem it cannot be reset.
    ///
    /// # Errors
    /// [`TokenError::PinNeeded`] until a caller logs in.
    pub fn check_not_expired(&self) -> Result<(), TokenError> {
        if self.expired { Err(TokenError::PinNeeded) } else { Ok(()) }
    }

    /// The end of the held PIN's lifetime.
    #[must_use]
    pub fn expires(&self) -> Option<Instant> {
        self.expires
    }

    /// Whether the held PIN is still to be sent to the card. Never if only one try is left.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.held.is_some() && !self.logged_in && !self.needs_a_person()
    }

    fn needs_a_person(&self) -> bool {
        self.failure == Some(PinStatus::LastTry)
    }

    /// The card's session has ended.
    pub fn session_lost(&mut self) {
        self.logged_in = false;
    }

    /// A session has ended, but before the PIN was sent.
    pub fn session_lost_before(&mut self) {
        self.logged_in = self.confirmed;
    }

    /// Forgets the held PIN.
    pub fn forget(&mut self) {
        self.held = None;
        self.confirmed = false;
        self.logged_in = false;
        self.unanswered = None;
        self.expires = None;
    }

    /// Sends the card the held PIN if its session is not logged in. Called again after each reset.
    ///
    /// # Errors
    /// The card's errors; a refused PIN is forgotten.
    pub fn ensure_logged_in(
        &mut self,
        token: &mut CardToken,
        now: Instant,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        let Some(pin) = self.held.clone().filter(|_| !self.logged_in) else { return Ok(()) };
        let tries = match token.pin_state(deadline)? {
            PinState::Verified => {
                self.accepted(now);
                return Ok(());
            }
            PinState::Absent => {
                self.forget();
                return Ok(());
            }
            PinState::Locked => return Err(self.refused(TokenError::PinLocked)),
            PinState::Wanted(tries) => tries,
        };
        if self.was_refused(tries) {
            return Err(self.refused(TokenError::PinWrong { tries_left: tries }));
        }
        if tries.is_some_and(|tries| tries < TRIES_MIN) {
            self.failure = Some(PinStatus::LastTry);
            return Err(TokenError::PinNeeded);
        }
        self.unanswered = Some(tries);
        match token.verify_pin(pin.bytes(), deadline) {
            Ok(()) => {
                self.blind_try = false;
                self.accepted(now);
            }
            Err(error @ (TokenError::PinWrong { .. } | TokenError::PinLocked)) => {
                return Err(self.refused(error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The card has refused the held PIN, which is forgotten.
    fn refused(&mut self, why: TokenError) -> TokenError {
        self.forget();
        self.note_refusal(&why);
        why
    }

    fn note_refusal(&mut self, why: &TokenError) {
        self.failure = match why {
            TokenError::PinWrong { tries_left } => Some(PinStatus::Refused(*tries_left)),
            TokenError::PinLocked => Some(PinStatus::Locked),
            _ => return,
        };
    }

    /// Compares another user's PIN with the held one, in constant time and without the card.
    ///
    /// # Errors
    /// [`TokenError::PinWrong`]; [`TokenError::Denied`] for one that comes too soon after others.
    pub fn compare_for_caller(
        &mut self,
        pin: &[u8],
        uid: u32,
        now: Instant,
    ) -> Result<(), TokenError> {
        let (wrong, last) = self.compared.get(&uid).copied().unwrap_or((0, now));
        if wrong >= COMPARED_MAX && now.saturating_duration_since(last) < COMPARE_PAUSE {
            let text = format!(
                "{wrong} wrong PINs of user {uid} in a row: the next is compared after an hour; \
                 callers of an agent that is logged in need no PIN"
            );
            return Err(TokenError::Denied(text));
        }
        if self.held.as_ref().is_some_and(|held| held.is(pin)) {
            self.compared.remove(&uid);
            return Ok(());
        }
        self.compared.insert(uid, (wrong.saturating_add(1), now));
        Err(TokenError::PinWrong { tries_left: None })
    }

    /// Verifies a caller's PIN. It is sent to the card at most once, and not again after an error;
    /// `tries` are those that it may use.
    ///
    /// # Errors
    /// The card's errors; [`TokenError::Denied`] at a try that is not the caller's to use, which is
    /// the second one of other users if the card does not report how many are left.
    pub fn verify_for_caller(
        &mut self,
        pin: &[u8],
        tries: Tries,
        token: &mut CardToken,
        now: Instant,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        if self.covers_callers() && self.held.as_ref().is_some_and(|held| held.is(pin)) {
            self.wrong_by_callers = 0;
            return Ok(());
        }
        match tries {
            Tries::All => {}
            Tries::ButTwo => self.protect_last_tries(token.pin_state(deadline)?)?,
            Tries::None => {
                let text = "the agent holds no PIN, and you may not log in: add \"login\" to your \
                            caller.may, or start the agent with --pin";
                return Err(TokenError::Denied(text.to_owned()));
            }
        }
        self.logged_in = false;
        match token.verify_pin(pin, deadline) {
            Ok(()) => {
                self.blind_try = false;
                self.held = HeldPin::new(pin);
                self.accepted(now);
                self.wrong_by_callers = 0;
                self.expires = self.lifetime.map(|lifetime| now + lifetime);
                Ok(())
            }
            Err(error) => {
                let counted = u8::from(may_be_counted(&error));
                self.wrong_by_callers = self.wrong_by_callers.saturating_add(counted);
                if self.wrong_by_callers > WRONG_MAX {
                    self.forget();
                }
                self.note_refusal(&error);
                Err(error)
            }
        }
    }

    /// Keeps other users from using the last tries. If the card does not report the tries left,
    /// they have one between them.
    fn protect_last_tries(&mut self, state: PinState) -> Result<(), TokenError> {
        let text = match state {
            PinState::Wanted(Some(tries)) if tries < TRIES_MIN_OF_OTHERS => {
                "few tries of the PIN are left: only the user who runs the agent may use them"
            }
            PinState::Wanted(None) | PinState::Verified => {
                if !std::mem::replace(&mut self.blind_try, true) {
                    return Ok(());
                }
                "the card does not report how many tries its PIN has left: only the user who runs \
                 the \
                 agent may use them"
            }
            PinState::Wanted(Some(_)) | PinState::Locked | PinState::Absent => return Ok(()),
        };
        Err(TokenError::Denied(text.to_owned()))
    }

    fn accepted(&mut self, now: Instant) {
        if !self.confirmed {
            self.expires = self.lifetime.map(|lifetime| now + lifetime);
        }
        (self.confirmed, self.logged_in, self.unanswered) = (true, true, None);
        (self.expired, self.failure) = (false, None);
    }

    /// Whether an unanswered PIN was counted as wrong. A card that does not report the tries left
    /// is sent an unconfirmed PIN only once.
    fn was_refused(&self, tries: Option<u8>) -> bool {
        match (self.unanswered, tries) {
            (None, _) => false,
            (Some(Some(before)), Some(now)) => now < before,
            (Some(_), _) => !self.confirmed,
        }
    }
}

/// Whether the card may have counted a PIN as wrong: after every error but those of a PIN that was
/// not sent or not checked. A caller that can delay answers could otherwise guess without limit.
fn may_be_counted(error: &TokenError) -> bool {
    !matches!(error, TokenError::NoChannel | TokenError::NoApplet { .. } | TokenError::NoPin)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The PIN that the agent holds. What is never done: give the card one that it has refused, spend
//! its last try, or let callers guess without end.
//!
//! While the agent holds a login, callers with rights need none: the token says that it wants no
//! PIN. A caller that gives one all the same (programs have it in their URI) is right if it is the
//! held one, compared in constant time, and the card is not asked. A wrong one goes to the card
//! once, which counts it; the agent's own login would restore the card's count, so after
//! [`WRONG_MAX`] wrong ones since the last right one the held PIN is forgotten as well, and a
//! person has to give it.

use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use warifu_card::PIN_MAX_BYTES;
use warifu_token::{CardToken, PinState, Token, TokenError};
use zeroize::Zeroizing;

/// How many wrong PINs of callers the held one outlives.
pub const WRONG_MAX: u8 = 1;
/// A card with fewer tries left is not given a PIN by the agent: the last try is a person's.
const TRIES_MIN: u8 = 2;

/// A PIN, filled up to its longest so that all compare alike.
#[derive(Clone)]
pub struct HeldPin {
    padded: Zeroizing<[u8; PIN_MAX_BYTES]>,
    length: usize,
}

impl HeldPin {
    /// None for what is too long to be a PIN.
    #[must_use]
    pub fn new(pin: &[u8]) -> Option<HeldPin> {
        let mut padded = Zeroizing::new([0xff; PIN_MAX_BYTES]);
        padded.get_mut(..pin.len())?.copy_from_slice(pin);
        Some(HeldPin { padded, length: pin.len() })
    }

    fn bytes(&self) -> &[u8] {
        &self.padded[..self.length]
    }

    fn is(&self, pin: &[u8]) -> bool {
        HeldPin::new(pin).is_some_and(|other| bool::from(self.padded.ct_eq(&*other.padded)))
    }
}

/// How the agent stands to one card's PIN.
#[derive(Default)]
pub struct Login {
    held: Option<HeldPin>,
    /// The card has taken the held PIN.
    confirmed: bool,
    /// The card's session knows it.
    logged_in: bool,
    /// The PIN was sent and nobody knows what became of it; the tries that were left before.
    unsure: Option<Option<u8>>,
    wrong_by_callers: u8,
    lifetime: Option<Duration>,
    expires: Option<Instant>,
    /// The lifetime is over, and nobody has given a PIN since. The card may still know it.
    expired: bool,
}

impl Login {
    /// With a PIN that nobody has tried yet, or none; how long one is held.
    #[must_use]
    pub fn new(pin: Option<HeldPin>, lifetime: Option<Duration>) -> Login {
        Login { held: pin, lifetime, ..Login::default() }
    }

    /// Whether a PIN is held, for the status.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether callers need none.
    #[must_use]
    pub fn serves_all(&self) -> bool {
        self.held.is_some() && self.confirmed
    }

    /// Gives up the held PIN if it has been held for its time: whether it has.
    pub fn expire(&mut self, now: Instant) -> bool {
        let over = self.held.is_some() && self.expires.is_some_and(|expires| now >= expires);
        if over {
            self.forget();
            self.expired = true;
        }
        over
    }

    /// Lets no key be used after the PIN's lifetime, whatever the card has verified: behind a modem
    /// it is not reset.
    ///
    /// # Errors
    /// [`TokenError::PinNeeded`] until a caller gives the PIN.
    pub fn admits(&self) -> Result<(), TokenError> {
        if self.expired { Err(TokenError::PinNeeded) } else { Ok(()) }
    }

    /// When it will have.
    #[must_use]
    pub fn expires(&self) -> Option<Instant> {
        self.expires
    }

    /// Whether giving the card the held PIN is still to be done.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.held.is_some() && !self.logged_in
    }

    /// The card's session has ended.
    pub fn session_lost(&mut self) {
        self.logged_in = false;
    }

    /// A session has ended, but before the PIN was given.
    pub fn session_lost_before(&mut self) {
        self.logged_in = self.confirmed;
    }

    /// Gives up the held PIN.
    pub fn forget(&mut self) {
        self.held = None;
        self.confirmed = false;
        self.logged_in = false;
        self.unsure = None;
        self.expires = None;
    }

    /// Gives the card the held PIN if its session does not know it. Called anew after each reset.
    ///
    /// # Errors
    /// The card's; a refused PIN is forgotten.
    pub fn ensure(
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
            PinState::Locked => {
                self.forget();
                return Err(TokenError::PinLocked);
            }
            PinState::Wanted(tries) => tries,
        };
        if self.was_refused(tries) {
            self.forget();
            return Err(TokenError::PinWrong { tries_left: tries });
        }
        if tries.is_some_and(|tries| tries < TRIES_MIN) {
            return Err(TokenError::PinNeeded);
        }
        self.unsure = Some(tries);
        match token.verify_pin(pin.bytes(), deadline) {
            Ok(()) => self.accepted(now),
            Err(error @ (TokenError::PinWrong { .. } | TokenError::PinLocked)) => {
                self.forget();
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A caller gives a PIN. The card is asked at most once, and not again after an error;
    /// `may_lock` is whether the last try may be spent.
    ///
    /// # Errors
    /// The card's: [`TokenError::PinWrong`] and others; [`TokenError::Denied`] at the last try.
    pub fn of_caller(
        &mut self,
        pin: &[u8],
        may_lock: bool,
        token: &mut CardToken,
        now: Instant,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        if self.confirmed && self.held.as_ref().is_some_and(|held| held.is(pin)) {
            self.wrong_by_callers = 0;
            return Ok(());
        }
        self.logged_in = false;
        if !may_lock
            && let PinState::Wanted(Some(tries)) = token.pin_state(deadline)?
            && tries < TRIES_MIN
        {
            let text = "the PIN's last try is left to the user who runs the agent";
            return Err(TokenError::Denied(text.to_owned()));
        }
        match token.verify_pin(pin, deadline) {
            Ok(()) => {
                self.held = HeldPin::new(pin);
                self.accepted(now);
                self.wrong_by_callers = 0;
                self.expires = self.lifetime.map(|lifetime| now + lifetime);
                Ok(())
            }
            Err(error) => {
                let wrong = matches!(error, TokenError::PinWrong { .. } | TokenError::PinLocked);
                self.wrong_by_callers = self.wrong_by_callers.saturating_add(u8::from(wrong));
                if self.wrong_by_callers > WRONG_MAX {
                    self.forget();
                }
                Err(error)
            }
        }
    }

    fn accepted(&mut self, now: Instant) {
        if !self.confirmed {
            self.expires = self.lifetime.map(|lifetime| now + lifetime);
        }
        (self.confirmed, self.logged_in, self.unsure) = (true, true, None);
        self.expired = false;
    }

    /// Whether the PIN whose fate nobody knows was counted as wrong. A card that does not say how
    /// many tries are left is given an unconfirmed one only once.
    fn was_refused(&self, tries: Option<u8>) -> bool {
        match (self.unsure, tries) {
            (None, _) => false,
            (Some(Some(before)), Some(now)) => now < before,
            (Some(_), _) => !self.confirmed,
        }
    }
}

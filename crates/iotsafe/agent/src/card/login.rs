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
use warifu_iotsafe_client::{CardToken, PinState, Token, TokenError};
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

/// What there is to say of one card's PIN to whoever asks for the agent's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinStanding {
    /// None is held, and the card may want none.
    None,
    /// One is held.
    Held,
    /// One is held and is not given to the card: only its last try is left.
    LastTry,
    /// The card refused it, and so it was forgotten; the tries that are left.
    Refused(Option<u8>),
    /// The card takes none any more.
    Locked,
    /// It was held for its time.
    Expired,
}

/// Why a PIN was not given or not taken, and who can mend that how; one line.
#[must_use]
pub fn not_logged_in(error: &TokenError) -> String {
    match error {
        TokenError::PinLocked => {
            "the PIN is locked: unlock a virtual SIM's with `warifu card reset --unblock-pin`, a real \
             one's with its operator's PUK"
                .to_owned()
        }
        TokenError::PinWrong { tries_left } => {
            let left = match tries_left {
                Some(1) => " (1 try left)".to_owned(),
                Some(tries) => format!(" ({tries} tries left)"),
                None => String::new(),
            };
            format!("the PIN is wrong{left} and was forgotten: a program's C_Login gives another")
        }
        TokenError::PinNeeded => {
            "the PIN was not given, only its last try is left: a program's C_Login may spend it"
                .to_owned()
        }
        error => format!("not logged in: {error}; a program's C_Login gives a PIN"),
    }
}

/// How the agent stands to one card's PIN.
#[derive(Default)]
pub struct Login {
    held: Option<HeldPin>,
    /// The last PIN was not taken: why, until another is.
    not_taken: Option<PinStanding>,
    /// The card has taken the held PIN.
    confirmed: bool,
    /// The card's session knows it.
    logged_in: bool,
    /// The PIN was sent and nobody knows what became of it; the tries that were left before.
    unsure: Option<Option<u8>>,
    /// Since the last right one; what the card may have counted is among them.
    wrong_by_callers: u8,
    /// Another user was let try a PIN on a card that does not say how many tries are left, and it
    /// has taken none since.
    blind_try: bool,
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

    /// For the status.
    #[must_use]
    pub fn standing(&self) -> PinStanding {
        match (&self.held, self.not_taken) {
            (Some(_), Some(PinStanding::LastTry)) => PinStanding::LastTry,
            (Some(_), _) => PinStanding::Held,
            (None, Some(why)) => why,
            (None, None) if self.expired => PinStanding::Expired,
            (None, None) => PinStanding::None,
        }
    }

    /// Whether callers need none.
    #[must_use]
    pub fn serves_all(&self) -> bool {
        self.held.is_some() && self.confirmed && !self.waits_for_a_person()
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

    /// Whether giving the card the held PIN is still to be done. Not at its last try, which stays
    /// the last one however often it is looked at.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.held.is_some() && !self.logged_in && !self.waits_for_a_person()
    }

    fn waits_for_a_person(&self) -> bool {
        self.not_taken == Some(PinStanding::LastTry)
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
            PinState::Locked => return Err(self.refused(TokenError::PinLocked)),
            PinState::Wanted(tries) => tries,
        };
        if self.was_refused(tries) {
            return Err(self.refused(TokenError::PinWrong { tries_left: tries }));
        }
        if tries.is_some_and(|tries| tries < TRIES_MIN) {
            self.not_taken = Some(PinStanding::LastTry);
            return Err(TokenError::PinNeeded);
        }
        self.unsure = Some(tries);
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

    /// The card does not take the held PIN, which is forgotten.
    fn refused(&mut self, why: TokenError) -> TokenError {
        self.forget();
        self.note_refusal(&why);
        why
    }

    fn note_refusal(&mut self, why: &TokenError) {
        self.not_taken = match why {
            TokenError::PinWrong { tries_left } => Some(PinStanding::Refused(*tries_left)),
            TokenError::PinLocked => Some(PinStanding::Locked),
            _ => return,
        };
    }

    /// A caller gives a PIN. The card is asked at most once, and not again after an error;
    /// `may_lock` is whether the last try may be spent.
    ///
    /// # Errors
    /// The card's: [`TokenError::PinWrong`] and others; [`TokenError::Denied`] at the last try, or
    /// at the second one where the card does not say how many are left.
    pub fn of_caller(
        &mut self,
        pin: &[u8],
        may_lock: bool,
        token: &mut CardToken,
        now: Instant,
        deadline: Instant,
    ) -> Result<(), TokenError> {
        if self.serves_all() && self.held.as_ref().is_some_and(|held| held.is(pin)) {
            self.wrong_by_callers = 0;
            return Ok(());
        }
        self.logged_in = false;
        if !may_lock {
            self.leave_last_try(token.pin_state(deadline)?)?;
        }
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

    /// Keeps other users from the last try: where the card does not tell how many there are, they
    /// have one in all.
    fn leave_last_try(&mut self, state: PinState) -> Result<(), TokenError> {
        let text = match state {
            PinState::Wanted(Some(tries)) if tries < TRIES_MIN => {
                "the PIN's last try is left to the user who runs the agent"
            }
            PinState::Wanted(None) | PinState::Verified => {
                if !std::mem::replace(&mut self.blind_try, true) {
                    return Ok(());
                }
                "the card does not say how many tries its PIN has left: they are left to the user \
                 who runs the agent"
            }
            PinState::Wanted(Some(_)) | PinState::Locked | PinState::Absent => return Ok(()),
        };
        Err(TokenError::Denied(text.to_owned()))
    }

    fn accepted(&mut self, now: Instant) {
        if !self.confirmed {
            self.expires = self.lifetime.map(|lifetime| now + lifetime);
        }
        (self.confirmed, self.logged_in, self.unsure) = (true, true, None);
        (self.expired, self.not_taken) = (false, None);
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

/// Whether the card may have counted a PIN as wrong: any but what says that it was not sent or not
/// looked at. Who could make the answer late would else guess without end.
fn may_be_counted(error: &TokenError) -> bool {
    !matches!(error, TokenError::NoChannel | TokenError::NoApplet { .. } | TokenError::NoPin)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is done with the card in one caller's turn: the login before, the retries, the checks of
//! what it answers, and what is noted when its session ends.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use warifu_iotsafe_client::{
    CardToken, Curve, GeneratedPair, Inventory, PrivateKey, SignInput, Token, TokenError,
    TransportError,
};
use warifu_os::Turn;
use zeroize::Zeroize;

use super::known::{Known, Verifier, on_curve};
use super::login::not_logged_in;
use super::{Caller, CallerId, Held, Holder, lock};
use crate::LOG;
use crate::retry;

/// How often something that is kept for long is read until it is twice the same: a bit that fell
/// over on the line must not stay.
const READINGS_MAX: usize = 4;
/// How often a login is done again in one try, where the card is reset after it.
const LOGINS_MAX: usize = 3;

/// The card, while it is one caller's turn.
pub(super) struct Using<'a> {
    pub(super) holder: &'a Holder,
    pub(super) held: MutexGuard<'a, Held>,
    _turn: Turn<'a>,
}

impl<'a> Using<'a> {
    pub(super) fn new(holder: &'a Holder, turn: Turn<'a>) -> Using<'a> {
        let mut held = lock(&holder.held);
        for caller in std::mem::take(&mut *lock(&holder.ended)) {
            held.lent.end_of_caller(caller);
        }
        if held.login.expire(holder.clock.now()) {
            // The card itself knows the PIN until it is reset, which comes before all else.
            held.failed = true;
            // Tokens that were signed with its help end with it.
            holder.new_keys();
            LOG.line(format_args!("{}: the PIN's lifetime is over", holder.holding.name));
        }
        Using { holder, held, _turn: turn }
    }

    /// Does something with the card; transient errors are retried after the card's session was
    /// reset, as long as the deadline lets. `lent` names a volatile key and who it was lent to.
    pub(super) fn work<T>(
        &mut self,
        lent: Option<(&[u8], CallerId)>,
        deadline: Instant,
        mut operation: impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let Holder { holding, clock, metrics, .. } = self.holder;
        let keys = self.holder.keys();
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
            // What was asked for was asked of the card of before.
            let exchanged = self.holder.keys() != keys;
            if !retry::is_transient(&error) || in_vain || exchanged {
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
        self.start_anew(end)?;
        let ready = self.recognise(end).and_then(|()| self.log_in(end));
        ready.inspect_err(|_| self.held.failed = true)?;
        if let Some((place, caller)) = lent {
            self.held.lent.check(place, caller)?;
        }
        self.holder.metrics.session(&self.holder.holding.name, self.held.open);
        let (mut result, mut lost) = self.once(end, operation);
        for _ in 0..LOGINS_MAX {
            if !matches!(result, Err(TokenError::PinNeeded)) || !self.held.login.serves_all() {
                break;
            }
            // The card has forgotten the PIN as well; the login is done again.
            self.held.login.session_lost();
            let ready = self.recognise(end).and_then(|()| self.log_in(end));
            ready.inspect_err(|_| self.held.failed = true)?;
            let again = self.once(end, operation);
            (result, lost) = (again.0, lost || again.1);
            if !again.1 {
                break;
            }
        }
        if lost && result.is_ok() {
            // It may have been done by another card than it was meant for.
            self.recognise(end).inspect_err(|_| self.held.failed = true)?;
        }
        let result = match result {
            // What the card says of a key that it has forgotten is its own affair.
            Err(TokenError::Status { .. }) if lost && lent.is_some() => Err(TokenError::KeyLost),
            result => result,
        };
        result.inspect_err(|error| self.count(error, false))
    }

    /// Does it, and takes note of what that has left: whether the session was lost on the way.
    fn once<T>(
        &mut self,
        end: Instant,
        operation: &mut impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> (Result<T, TokenError>, bool) {
        let result = operation(&mut self.held.token, end);
        let lost = self.note_loss(result.as_ref().err());
        self.held.open = result.is_ok();
        self.held.failed = result.as_ref().err().is_some_and(retry::is_transient);
        (result, lost)
    }

    /// Makes sure after a lost session that it is still the same card, before it is given a PIN.
    /// The objects of two cards may well be the same by name: a public key is what tells them apart.
    fn recognise(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.held.doubtful {
            return Ok(());
        }
        let (point, info) = {
            let known = lock(&self.holder.known);
            (known.any_point(), known.info.clone())
        };
        for _ in 0..READINGS_MAX {
            let token = &mut self.held.token;
            let same = match (&point, &info) {
                (Some((id, point)), _) => token.read_public_key(id, end).map(|now| now == *point),
                (None, Some(info)) => token.info(end).map(|now| now == *info),
                (None, None) => Ok(true),
            };
            self.note_session();
            match same {
                Ok(true) => {
                    self.held.doubtful = false;
                    return Ok(());
                }
                // A bit may have fallen over on the way.
                Ok(false) => {}
                Err(error) if retry::is_transient(&error) => {
                    self.count(&error, false);
                    return Err(error);
                }
                // It has no such key.
                Err(_) => {}
            }
        }
        let name = &self.holder.holding.name;
        LOG.line(format_args!("{name}: another card, or another key on it: give its PIN"));
        *lock(&self.holder.known) = Known::default();
        self.holder.new_keys();
        self.held.login.forget();
        self.held.random.zeroize();
        self.held.doubtful = false;
        Err(TransportError::Gone("the card was exchanged for another".to_owned()).into())
    }

    /// What the last try, whoever's it was, has left on the card is not known: it is reset.
    pub(super) fn start_anew(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.held.failed {
            return Ok(());
        }
        let reset = self.held.token.reset(end);
        self.note_session();
        self.held.failed = reset.is_err();
        reset.inspect_err(|error| self.count(error, false))
    }

    pub(super) fn log_in(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.held.login.is_due() {
            return Ok(());
        }
        let now = self.holder.clock.now();
        let held = &mut *self.held;
        let result = held.login.ensure(&mut held.token, now, end);
        if self.note_loss(result.as_ref().err()) && result.is_ok() {
            self.held.login.session_lost_before();
        }
        let Err(error) = result else { return Ok(()) };
        self.count(&error, true);
        if retry::is_transient(&error) {
            return Err(error);
        }
        // What needs no PIN works without; what needs it says so.
        let name = &self.holder.holding.name;
        LOG.line(format_args!("{name}: {}", not_logged_in(&error)));
        Ok(())
    }

    pub(super) fn sign(
        &mut self,
        caller: &Caller<'_>,
        private: Option<&PrivateKey>,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        self.held.login.admits()?;
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

    /// What to verify a key's signatures with; None where the card gives no public key, whose
    /// signatures go out unverified.
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

    pub(super) fn read_point(
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

    pub(super) fn read_inventory(
        &mut self,
        deadline: Instant,
    ) -> Result<Arc<Inventory>, TokenError> {
        let inventory = twice(|| self.work(None, deadline, |token, end| token.objects(end)))?;
        let inventory = Arc::new(inventory);
        lock(&self.holder.known).inventory = Some(Arc::clone(&inventory));
        Ok(inventory)
    }

    pub(super) fn generate(
        &mut self,
        key: &[u8],
        deadline: Instant,
    ) -> Result<GeneratedPair, TokenError> {
        self.held.login.admits()?;
        self.work(None, deadline, |token, end| {
            let pair = token.generate(key, end)?;
            on_curve(None, pair.point)?;
            Ok(pair)
        })
    }

    pub(super) fn close(&mut self, deadline: Instant) {
        if self.held.failed {
            // A card that is gone has nothing open; one that could not be reset is so before it is
            // used again.
            let _ = self.start_anew(deadline);
        } else {
            self.held.token.release(deadline);
            self.note_session();
        }
    }

    /// Takes note of a session that has ended: whether one has.
    pub(super) fn note_session(&mut self) -> bool {
        let losses = self.held.token.losses();
        let lost = losses != self.held.losses;
        if lost {
            self.held.losses = losses;
            self.held.open = false;
            self.held.doubtful = true;
            self.held.login.session_lost();
            self.held.lent.session_lost();
        }
        lost
    }

    /// The same after something else than a reset of ours: the card has lost the session, which the
    /// metrics tell also where no caller gets an error for it.
    fn note_loss(&mut self, error: Option<&TokenError>) -> bool {
        let lost = self.note_session();
        let reset = TokenError::from(TransportError::CardReset);
        if lost && error != Some(&reset) {
            self.count(&reset, false);
        }
        lost
    }

    pub(super) fn count(&self, error: &TokenError, authentication: bool) {
        let Holder { metrics, holding, .. } = self.holder;
        metrics.card_error(&holding.name, &retry::kind(error));
        let late = matches!(error, TokenError::Transport(TransportError::Timeout(_)));
        if authentication && late {
            metrics.authentication_timeout(&holding.name);
        }
    }

    pub(super) fn end_of_attempt(&self, deadline: Instant) -> Instant {
        deadline.min(self.holder.clock.now() + self.holder.holding.retry.attempt)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // In the middle of something: nobody knows what the card has open.
            self.held.failed = true;
        }
    }
}

/// Reads until two readings in a row are the same.
pub(super) fn twice<T: PartialEq>(
    mut read: impl FnMut() -> Result<T, TokenError>,
) -> Result<T, TokenError> {
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

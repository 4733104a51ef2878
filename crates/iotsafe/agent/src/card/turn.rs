// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card during one caller's turn: logging in, retries, checks of its answers, and the
//! consequences of a lost session.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use warifu_iotsafe_client::{
    CardToken, Curve, GeneratedPair, Inventory, PrivateKey, SignInput, Token, TokenError,
    TransportError,
};
use warifu_os::Turn;
use zeroize::Zeroize;

use super::cache::{CardCache, Verifier, on_curve};
use super::login::not_logged_in;
use super::{Caller, CallerId, Holder, KnownPin, State, lock};
use crate::LOG;
use crate::retry;

/// How often cached data is read until two readings agree, so that a bit error on the line is not
/// cached.
pub(super) const READINGS_MAX: usize = 4;
/// The most bytes of a message that the card gets in one command.
const ONE_COMMAND_BYTES: usize = 240;
/// How often a login is repeated in one attempt if the card was reset after it.
const LOGINS_MAX: usize = 3;

/// The card during one caller's turn.
pub(super) struct CardTurn<'a> {
    pub(super) holder: &'a Holder,
    pub(super) state: MutexGuard<'a, State>,
    _turn: Turn<'a>,
}

impl<'a> CardTurn<'a> {
    pub(super) fn new(holder: &'a Holder, turn: Turn<'a>) -> CardTurn<'a> {
        let mut state = lock(&holder.state);
        if state.login.expire(holder.clock.now()) {
            // The card stays logged in until it is reset, which happens before the next operation.
            state.failed = true;
            // Tokens signed with that login are no longer handed out.
            holder.new_keys();
            LOG.line(format_args!("{}: the PIN's lifetime has ended", holder.settings.name));
        }
        CardTurn { holder, state, _turn: turn }
    }

    /// Runs an operation on the card. After a transient error it resets the card's session and
    /// retries until the deadline. `lent` is a volatile key and the caller that it was lent to.
    pub(super) fn work<T>(
        &mut self,
        lent: Option<(&[u8], CallerId)>,
        deadline: Instant,
        operation: impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        self.work_while(retry::is_transient, lent, deadline, operation)
    }

    /// The same for an operation whose length a caller chooses: one that did not end within one
    /// attempt would not within the next, and would keep the card from the others.
    pub(super) fn work_in_one_attempt<T>(
        &mut self,
        deadline: Instant,
        operation: impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let repeats = |error: &TokenError| retry::is_transient(error) && !is_late(error);
        self.work_while(repeats, None, deadline, operation)
    }

    fn work_while<T>(
        &mut self,
        repeats: impl Fn(&TokenError) -> bool,
        lent: Option<(&[u8], CallerId)>,
        deadline: Instant,
        mut operation: impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let Holder { settings, clock, metrics, .. } = self.holder;
        let keys = self.holder.keys();
        let mut failures = 0;
        let mut cause = None;
        loop {
            let end = self.end_of_attempt(deadline);
            let error = match self.attempt(lent, end, &mut operation) {
                Ok(result) => return Ok(result),
                // The last attempt may have had no time: what the card has said tells more.
                Err(error) if is_late(&error) => cause.clone().unwrap_or(error),
                Err(error) => cause.insert(error).clone(),
            };
            let delay = settings.retry.delay(failures, &mut self.state.rng);
            failures += 1;
            let exhausted = failures > settings.retry.times || clock.now() + delay >= deadline;
            // The request was for the card that was there before.
            let exchanged = self.holder.keys() != keys;
            if !repeats(&error) || exhausted || exchanged {
                return Err(error);
            }
            clock.sleep(delay);
            metrics.retry(&settings.name);
        }
    }

    fn attempt<T>(
        &mut self,
        lent: Option<(&[u8], CallerId)>,
        end: Instant,
        operation: &mut impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        self.reset_after_failure(end)?;
        let ready = self.check_same_card(end).and_then(|()| self.log_in(end));
        ready.inspect_err(|_| self.state.failed = true)?;
        if let Some((place, caller)) = lent {
            lock(&self.holder.volatile_keys).check(place, caller)?;
        }
        self.holder.metrics.session(&self.holder.settings.name, self.state.open);
        let (mut result, mut lost) = self.once(end, operation);
        for _ in 0..LOGINS_MAX {
            if !matches!(result, Err(TokenError::PinNeeded)) || !self.state.login.covers_callers() {
                break;
            }
            // The card has lost the login too: log in again.
            self.state.login.session_lost();
            let ready = self.check_same_card(end).and_then(|()| self.log_in(end));
            ready.inspect_err(|_| self.state.failed = true)?;
            let again = self.once(end, operation);
            (result, lost) = (again.0, lost || again.1);
            if !again.1 {
                break;
            }
        }
        if lost && result.is_ok() {
            // Another card than the intended one may have answered.
            self.check_same_card(end).inspect_err(|_| self.state.failed = true)?;
        }
        let result = match result {
            // The key was lost with the session, whatever status word the card returns for it.
            Err(TokenError::Status { .. }) if lost && lent.is_some() => Err(TokenError::KeyLost),
            result => result,
        };
        result.inspect_err(|error| self.count(error, false))
    }

    /// Runs the operation once; also returns whether the session was lost during it.
    fn once<T>(
        &mut self,
        end: Instant,
        operation: &mut impl FnMut(&mut CardToken, Instant) -> Result<T, TokenError>,
    ) -> (Result<T, TokenError>, bool) {
        let result = operation(&mut self.state.token, end);
        let lost = self.note_loss(result.as_ref().err());
        self.state.open = result.is_ok();
        self.state.failed = result.as_ref().err().is_some_and(retry::is_transient);
        (result, lost)
    }

    /// After a lost session, checks that it is still the same card, before a PIN is sent to it. The
    /// objects of two cards may have the same names: a public key tells the cards apart.
    fn check_same_card(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.state.unconfirmed {
            return Ok(());
        }
        let (point, info) = {
            let cached = lock(&self.holder.cache);
            (cached.any_point(), cached.info.clone())
        };
        for _ in 0..READINGS_MAX {
            let token = &mut self.state.token;
            let same = match (&point, &info) {
                (Some((id, point)), _) => token.read_public_key(id, end).map(|now| now == *point),
                (None, Some(info)) => token.info(end).map(|now| now == *info),
                (None, None) => Ok(true),
            };
            self.note_session();
            match same {
                Ok(true) => {
                    self.state.unconfirmed = false;
                    return Ok(());
                }
                // Perhaps a bit error on the line.
                Ok(false) => {}
                Err(error) if retry::is_transient(&error) => {
                    self.count(&error, false);
                    return Err(error);
                }
                // The card has no such key.
                Err(_) => {}
            }
        }
        let name = &self.holder.settings.name;
        LOG.line(format_args!("{name}: another card or another key: log in with its PIN"));
        *lock(&self.holder.cache) = CardCache::default();
        self.holder.new_keys();
        self.state.login.forget();
        self.state.random.zeroize();
        self.state.unconfirmed = false;
        Err(TransportError::Gone("the card was exchanged for another".to_owned()).into())
    }

    /// Resets the card if the last operation, of whichever caller, failed.
    pub(super) fn reset_after_failure(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.state.failed {
            return Ok(());
        }
        let reset = self.state.token.reset(end);
        self.note_session();
        self.state.failed = reset.is_err();
        reset.inspect_err(|error| self.count(error, false))
    }

    pub(super) fn log_in(&mut self, end: Instant) -> Result<(), TokenError> {
        if !self.state.login.is_due() {
            return Ok(());
        }
        let now = self.holder.clock.now();
        let state = &mut *self.state;
        let result = state.login.ensure_logged_in(&mut state.token, now, end);
        if self.note_loss(result.as_ref().err()) && result.is_ok() {
            self.state.login.session_lost_before();
        }
        let Err(error) = result else { return Ok(()) };
        self.count(&error, true);
        if retry::is_transient(&error) {
            return Err(error);
        }
        // Operations without a PIN still work; others return that they need one.
        let name = &self.holder.settings.name;
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
        self.state.login.check_not_expired()?;
        let volatile = private.is_some_and(|private| private.attributes.is_volatile());
        let lent = volatile.then_some((key, caller.id));
        let verifier = match private {
            Some(private) => self.verifier(private, deadline)?,
            None => None,
        };
        let sign = |token: &mut CardToken, end| {
            let signature = token.sign(key, input, end)?;
            match &verifier {
                Some(verifier) => verifier.checked(input, signature),
                None => Ok(signature),
            }
        };
        match input {
            SignInput::Message(_, text) if text.len() > ONE_COMMAND_BYTES && lent.is_none() => {
                self.work_in_one_attempt(deadline, sign)
            }
            _ => self.work(lent, deadline, sign),
        }
    }

    /// The verifier of a key's signatures; None if the card does not export the public key, whose
    /// signatures are then not checked.
    fn verifier(
        &mut self,
        private: &PrivateKey,
        deadline: Instant,
    ) -> Result<Option<Verifier>, TokenError> {
        let (Some(id), Some(curve)) = (&private.public_id, private.attributes.curve()) else {
            return Ok(None);
        };
        let (verifier, point) = {
            let cached = lock(&self.holder.cache);
            (cached.verifier(id), cached.point(id))
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
        lock(&self.holder.cache).keep_verifier(id, verifier.clone());
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
        lock(&self.holder.cache).keep_point(id, point);
        Ok(point)
    }

    pub(super) fn read_inventory(
        &mut self,
        deadline: Instant,
    ) -> Result<Arc<Inventory>, TokenError> {
        let inventory = read_twice(|| self.work(None, deadline, |token, end| token.objects(end)))?;
        let inventory = Arc::new(inventory);
        lock(&self.holder.cache).inventory = Some(Arc::clone(&inventory));
        Ok(inventory)
    }

    pub(super) fn generate(
        &mut self,
        key: &[u8],
        deadline: Instant,
    ) -> Result<GeneratedPair, TokenError> {
        self.state.login.check_not_expired()?;
        self.work(None, deadline, |token, end| {
            let pair = token.generate(key, end)?;
            on_curve(None, pair.point)?;
            Ok(pair)
        })
    }

    pub(super) fn close(&mut self, deadline: Instant) {
        if self.state.failed {
            // A card that was removed has nothing open; one that could not be reset is reset before
            // its next use.
            let _ = self.reset_after_failure(deadline);
        } else {
            self.state.token.release(deadline);
            self.note_session();
        }
    }

    /// Updates the state if the session has been lost; returns whether it has.
    pub(super) fn note_session(&mut self) -> bool {
        let losses = self.state.token.losses();
        let lost = losses != self.state.losses;
        if lost {
            self.state.losses = losses;
            self.state.open = false;
            self.state.unconfirmed = true;
            self.state.login.session_lost();
            self.state.no_pin = false;
            lock(&self.holder.volatile_keys).session_lost();
        }
        lost
    }

    /// The same after an operation that was no reset: the metrics count the loss even if no caller
    /// gets an error for it.
    fn note_loss(&mut self, error: Option<&TokenError>) -> bool {
        let lost = self.note_session();
        let reset = TokenError::from(TransportError::CardReset);
        if lost && error != Some(&reset) {
            self.count(&reset, false);
        }
        lost
    }

    pub(super) fn count(&self, error: &TokenError, authentication: bool) {
        let Holder { metrics, settings, .. } = self.holder;
        metrics.card_error(&settings.name, &retry::kind(error));
        if authentication && is_late(error) {
            metrics.authentication_timeout(&settings.name);
        }
    }

    pub(super) fn end_of_attempt(&self, deadline: Instant) -> Instant {
        deadline.min(self.holder.clock.now() + self.holder.settings.retry.attempt)
    }
}

impl Drop for CardTurn<'_> {
    fn drop(&mut self) {
        let login = &self.state.login;
        *lock(&self.holder.known_pin) = match self.state.no_pin {
            _ if login.covers_callers() => KnownPin::Held(login.expires()),
            true => KnownPin::Absent,
            false => KnownPin::Unknown,
        };
        if std::thread::panicking() {
            // In the middle of an operation: what the card has open is unknown.
            self.state.failed = true;
        }
    }
}

fn is_late(error: &TokenError) -> bool {
    matches!(error, TokenError::Transport(TransportError::Timeout(_)))
}

/// Reads until two consecutive readings agree.
pub(super) fn read_twice<T: PartialEq>(
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
    Err(reads_differ())
}

pub(super) fn reads_differ() -> TokenError {
    TokenError::Answer {
        command: "repeated reads".into(),
        what: "differs from read to read: check the line to the card".into(),
    }
}

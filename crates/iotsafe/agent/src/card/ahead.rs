// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work ahead, while no caller needs the card: logging in, reading what callers will ask for,
//! fetching random bytes and generating key pairs; and closing an idle session. Signatures are
//! never made ahead.

use std::time::{Duration, Instant};

use warifu_iotsafe_client::{Inventory, Token, TokenError};

use super::turn::{CardTurn, read_twice};
use super::{Holder, lock};
use crate::LOG;

/// The wait when there is nothing to do.
const LONG: Duration = Duration::from_secs(3600);
/// How many random bytes are fetched in one turn: one GET RANDOM.
const RANDOM_BYTES: usize = 256;

impl Holder {
    /// Does one piece of work if the card is idle; returns when to call again.
    pub fn tick(&self) -> Duration {
        let Some(turn) = self.turns.try_acquire() else { return self.settings.ahead_after };
        let mut turn = CardTurn::new(self, turn);
        let rest = turn.tick();
        // No longer than the PIN's lifetime.
        let expires = turn.state.login.expires();
        let left = expires.map(|expires| expires.saturating_duration_since(self.clock.now()));
        left.map_or(rest, |left| rest.min(left))
    }
}

impl CardTurn<'_> {
    fn tick(&mut self) -> Duration {
        let settings = &self.holder.settings;
        let now = self.holder.clock.now();
        if self.state.login.check_not_expired().is_err() {
            // At once, since the next caller may come late.
            let _ = self.reset_after_failure(self.end_of_attempt(now + LONG));
        }
        let idle = self.state.last_used.map_or(LONG, |used| now.saturating_duration_since(used));
        if self.state.ahead {
            if idle < settings.ahead_after {
                return settings.ahead_after - idle;
            }
            match self.step(now + 2 * settings.retry.attempt) {
                Ok(true) => {
                    self.state.error_reported = false;
                    return Duration::ZERO;
                }
                Ok(false) => (self.state.ahead, self.state.error_reported) = (false, false),
                // It is tried again after the next request.
                Err(error) => {
                    self.state.ahead = false;
                    if !std::mem::replace(&mut self.state.error_reported, true) {
                        let name = &settings.name;
                        LOG.line(format_args!(
                            "{name}: {error}; trying again after the next request"
                        ));
                    }
                }
            }
        }
        if self.state.open && !lock(&self.holder.volatile_keys).is_any_lent() {
            let close = settings.idle_close;
            if self.state.last_used.is_none() || idle < close {
                return close.saturating_sub(idle).max(settings.ahead_after);
            }
            self.close(self.end_of_attempt(now + LONG));
        }
        LONG
    }

    /// Does one piece of work ahead; returns whether there was any.
    fn step(&mut self, deadline: Instant) -> Result<bool, TokenError> {
        let holder = self.holder;
        if self.state.login.is_due() {
            self.work(None, deadline, |_, _| Ok(()))?;
            // Once: a refused PIN is not tried again.
            return Ok(!self.state.login.is_due());
        }
        if lock(&holder.cache).info.is_none() {
            let info = read_twice(|| self.work(None, deadline, |token, end| token.info(end)))?;
            lock(&holder.cache).info = Some(info);
            return Ok(true);
        }
        let inventory = lock(&holder.cache).inventory.clone();
        let Some(inventory) = inventory else {
            self.read_inventory(deadline)?;
            return Ok(true);
        };
        if self.read_ahead(&inventory, deadline)? {
            return Ok(true);
        }
        let missing = holder.settings.random_ahead_bytes.saturating_sub(self.state.random.len());
        if missing > 0 {
            let mut bytes = zeroize::Zeroizing::new(vec![0; missing.min(RANDOM_BYTES)]);
            self.work(None, deadline, |token, end| token.random(&mut bytes, end))?;
            self.state.random.reserve_exact(missing);
            self.state.random.extend_from_slice(&bytes);
            holder.metrics.ahead(&holder.settings.name, "made_random");
            return Ok(true);
        }
        self.make_pair(&inventory, deadline)
    }

    /// Reads a public key or a file that is not known yet.
    fn read_ahead(&mut self, inventory: &Inventory, deadline: Instant) -> Result<bool, TokenError> {
        let holder = self.holder;
        for key in &inventory.public_keys {
            let unread = lock(&holder.cache).point(&key.id).is_none();
            let kept = key.attributes.filled != Some(false) && !key.attributes.is_volatile();
            if unread && kept && allow_refusal(self.read_point(&key.id, None, deadline))?.is_some()
            {
                return Ok(true);
            }
        }
        for file in &inventory.files {
            if file.filled == Some(false) || lock(&holder.cache).file(file).is_some() {
                continue;
            }
            let read =
                read_twice(|| self.work(None, deadline, |token, end| token.read_file(file, end)));
            if let Some(content) = allow_refusal(read)? {
                lock(&holder.cache).keep_file(file, &content);
                return Ok(lock(&holder.cache).file(file).is_some());
            }
        }
        Ok(false)
    }

    /// Generates a key pair in a free volatile container.
    fn make_pair(&mut self, inventory: &Inventory, deadline: Instant) -> Result<bool, TokenError> {
        let Holder { settings, metrics, .. } = self.holder;
        let place = inventory.private_keys.iter().find(|key| {
            let usable = key.attributes.is_volatile() && key.attributes.may_generate();
            let free = || lock(&self.holder.volatile_keys).is_free(&key.id);
            settings.pairs_ahead && usable && free()
        });
        let Some(place) = place else { return Ok(false) };
        let Some(pair) = allow_refusal(self.generate(&place.id, deadline))? else {
            return Ok(false);
        };
        lock(&self.holder.volatile_keys).keep_ready(&place.id, pair);
        metrics.ahead(&settings.name, "made_pair");
        Ok(true)
    }
}

/// Skips what the card refuses; other errors end the work ahead for now.
fn allow_refusal<T>(result: Result<T, TokenError>) -> Result<Option<T>, TokenError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(TokenError::Status { .. } | TokenError::PinNeeded) => Ok(None),
        Err(error) => Err(error),
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is done while no caller wants the card: logging in, reading what callers will ask for,
//! random bytes and key pairs ahead of need; and closing what nobody has used for long. Signatures
//! are never made ahead.

use std::time::{Duration, Instant};

use warifu_iotsafe_client::{Inventory, Token, TokenError};

use super::using::{Using, twice};
use super::{Holder, lock};
use crate::LOG;

/// When there is nothing to wait for.
const LONG: Duration = Duration::from_secs(3600);
/// How many random bytes are fetched in one turn: one GET RANDOM.
const RANDOM_BYTES: usize = 256;

impl Holder {
    /// Does one piece of work if the card is idle; says when to call again.
    pub fn tick(&self) -> Duration {
        let Some(turn) = self.turns.try_acquire() else { return self.holding.ahead_after };
        let mut using = Using::new(self, turn);
        let rest = using.tick();
        // Whatever it rests for, not beyond the PIN's lifetime.
        let expires = using.held.login.expires();
        let left = expires.map(|expires| expires.saturating_duration_since(self.clock.now()));
        left.map_or(rest, |left| rest.min(left))
    }
}

impl Using<'_> {
    fn tick(&mut self) -> Duration {
        let holding = &self.holder.holding;
        let now = self.holder.clock.now();
        if self.held.login.admits().is_err() {
            // Not later than now: the next caller may be long in coming.
            let _ = self.start_anew(self.end_of_attempt(now + LONG));
        }
        let idle = self.held.last_used.map_or(LONG, |used| now.saturating_duration_since(used));
        if self.held.ahead {
            if idle < holding.ahead_after {
                return holding.ahead_after - idle;
            }
            match self.step(now + 2 * holding.retry.attempt) {
                Ok(true) => {
                    self.held.told = false;
                    return Duration::ZERO;
                }
                Ok(false) => (self.held.ahead, self.held.told) = (false, false),
                // The next caller brings the next attempt.
                Err(error) => {
                    self.held.ahead = false;
                    if !std::mem::replace(&mut self.held.told, true) {
                        let name = &holding.name;
                        LOG.line(format_args!(
                            "{name}: {error}; the next caller has it asked again"
                        ));
                    }
                }
            }
        }
        if self.held.open && !self.held.lent.is_any() {
            let close = holding.idle_close;
            if self.held.last_used.is_none() || idle < close {
                return close.saturating_sub(idle).max(holding.ahead_after);
            }
            self.close(self.end_of_attempt(now + LONG));
        }
        LONG
    }

    /// One piece of work ahead: whether there was any.
    fn step(&mut self, deadline: Instant) -> Result<bool, TokenError> {
        let holder = self.holder;
        if self.held.login.is_due() {
            self.work(None, deadline, |_, _| Ok(()))?;
            // Once: what was refused is not tried again.
            return Ok(!self.held.login.is_due());
        }
        if lock(&holder.known).info.is_none() {
            let info = twice(|| self.work(None, deadline, |token, end| token.info(end)))?;
            lock(&holder.known).info = Some(info);
            return Ok(true);
        }
        let inventory = lock(&holder.known).inventory.clone();
        let Some(inventory) = inventory else {
            self.read_inventory(deadline)?;
            return Ok(true);
        };
        if self.read_ahead(&inventory, deadline)? {
            return Ok(true);
        }
        let missing = holder.holding.random_ahead_bytes.saturating_sub(self.held.random.len());
        if missing > 0 {
            let mut bytes = zeroize::Zeroizing::new(vec![0; missing.min(RANDOM_BYTES)]);
            self.work(None, deadline, |token, end| token.random(&mut bytes, end))?;
            self.held.random.reserve_exact(missing);
            self.held.random.extend_from_slice(&bytes);
            holder.metrics.ahead(&holder.holding.name, "made_random");
            return Ok(true);
        }
        self.make_pair(&inventory, deadline)
    }

    /// Reads a public key or a file that is not known yet.
    fn read_ahead(&mut self, inventory: &Inventory, deadline: Instant) -> Result<bool, TokenError> {
        let holder = self.holder;
        for key in &inventory.public_keys {
            let unread = lock(&holder.known).point(&key.id).is_none();
            let kept = key.attributes.filled != Some(false) && !key.attributes.is_volatile();
            if unread && kept && passed(self.read_point(&key.id, None, deadline))?.is_some() {
                return Ok(true);
            }
        }
        for file in &inventory.files {
            if file.filled == Some(false) || lock(&holder.known).file(file).is_some() {
                continue;
            }
            let read = twice(|| self.work(None, deadline, |token, end| token.read_file(file, end)));
            if let Some(content) = passed(read)? {
                lock(&holder.known).keep_file(file, &content);
                return Ok(lock(&holder.known).file(file).is_some());
            }
        }
        Ok(false)
    }

    /// Makes a key pair in a volatile place that is free.
    fn make_pair(&mut self, inventory: &Inventory, deadline: Instant) -> Result<bool, TokenError> {
        let Holder { holding, metrics, .. } = self.holder;
        let place = inventory.private_keys.iter().find(|key| {
            let usable = key.attributes.is_volatile() && key.attributes.may_generate();
            holding.pairs_ahead && usable && self.held.lent.wants(&key.id)
        });
        let Some(place) = place else { return Ok(false) };
        let Some(pair) = passed(self.generate(&place.id, deadline))? else { return Ok(false) };
        self.held.lent.make_ready(&place.id, pair);
        metrics.ahead(&holding.name, "made_pair");
        Ok(true)
    }
}

/// What the card refuses is passed over; other errors end the work ahead for now.
fn passed<T>(result: Result<T, TokenError>) -> Result<Option<T>, TokenError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(TokenError::Status { .. } | TokenError::PinNeeded) => Ok(None),
        Err(error) => Err(error),
    }
}

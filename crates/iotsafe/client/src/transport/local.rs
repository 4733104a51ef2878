// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card in this process, for tests and benchmarks.

use std::time::Instant;

use super::{Transport, TransportError, checked};

/// A card as two functions.
pub struct Local<E, R> {
    exchange: E,
    reset: R,
}

impl<E, R> Local<E, R>
where
    E: FnMut(&[u8]) -> Vec<u8> + Send,
    R: FnMut() -> Vec<u8> + Send,
{
    /// `exchange` returns the answer to a command, `reset` the answer to reset.
    pub fn new(exchange: E, reset: R) -> Local<E, R> {
        Local { exchange, reset }
    }
}

impl<E, R> Transport for Local<E, R>
where
    E: FnMut(&[u8]) -> Vec<u8> + Send,
    R: FnMut() -> Vec<u8> + Send,
{
    fn exchange(&mut self, apdu: &[u8], _deadline: Instant) -> Result<Vec<u8>, TransportError> {
        checked((self.exchange)(apdu), "the card")
    }

    fn reset(&mut self, _deadline: Instant) -> Result<Vec<u8>, TransportError> {
        Ok((self.reset)())
    }

    fn shares_channels(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "local".to_owned()
    }
}

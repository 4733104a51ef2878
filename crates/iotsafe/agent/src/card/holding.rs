// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a card is held.

use std::time::Duration;

use crate::retry::Retry;

/// How a card is held.
#[derive(Clone, Debug)]
pub struct Holding {
    /// Its name, for callers and metrics.
    pub name: String,
    /// How errors that pass are retried.
    pub retry: Retry,
    /// The session is closed after so long without a caller.
    pub idle_close: Duration,
    /// Work ahead begins after so long without a caller.
    pub ahead_after: Duration,
    /// How many random bytes are kept ready.
    pub random_ahead_bytes: usize,
    /// Whether key pairs are made ahead in volatile places.
    pub pairs_ahead: bool,
}

impl Holding {
    /// As the configuration has it if it says nothing.
    #[must_use]
    pub fn usual(name: &str) -> Holding {
        Holding {
            name: name.to_owned(),
            retry: Retry::default(),
            idle_close: Duration::from_secs(300),
            ahead_after: Duration::from_millis(200),
            random_ahead_bytes: 1024,
            pairs_ahead: true,
        }
    }
}

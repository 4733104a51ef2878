// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the agent holds a card.

use std::time::Duration;

use crate::retry::Retry;

/// How the agent holds a card.
#[derive(Clone, Debug)]
pub struct CardSettings {
    /// Its name, for callers and metrics.
    pub name: String,
    /// How transient errors are retried.
    pub retry: Retry,
    /// The session is closed after this long without a request.
    pub idle_close: Duration,
    /// Work ahead begins after this long without a request.
    pub ahead_after: Duration,
    /// How many random bytes are kept ready.
    pub random_ahead_bytes: usize,
    /// Whether key pairs are generated ahead in volatile containers.
    pub pairs_ahead: bool,
}

impl CardSettings {
    /// The defaults of the configuration.
    #[must_use]
    pub fn new(name: &str) -> CardSettings {
        CardSettings {
            name: name.to_owned(),
            retry: Retry::default(),
            idle_close: Duration::from_secs(300),
            ahead_after: Duration::from_millis(200),
            random_ahead_bytes: 1024,
            pairs_ahead: true,
        }
    }
}

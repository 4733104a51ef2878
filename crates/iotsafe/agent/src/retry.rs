// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which errors of a card are transient, and how long to wait before a retry.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use warifu_card::StatusWord;
use warifu_iotsafe_client::{TokenError, TransportError};

/// How transient errors are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The most retries of an operation.
    pub times: u32,
    /// The longest wait before the first retry.
    pub first: Duration,
    /// The longest wait of any retry; each is up to twice the one before.
    pub longest: Duration,
    /// How long one attempt may take. Sakomoto et al. 2025 measured no signature over 1.74 s.
    pub attempt: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            times: 5,
            first: Duration::from_millis(20),
            longest: Duration::from_secs(1),
            attempt: Duration::from_secs(3),
        }
    }
}

impl Retry {
    /// The wait before the next retry after `failures` retries: a random time between half of the
    /// doubled wait and all of it, so that agents that failed together do not retry together.
    pub fn delay(&self, failures: u32, rng: &mut Xoshiro256PlusPlus) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.min(20));
        let full = doubled.min(self.longest).as_nanos() as u64;
        let half = full / 2;
        Duration::from_nanos(half + rng.next_u64() % (full - half + 1))
    }
}

/// Whether the same request may succeed after a reset of the card's session. The result of a PIN is
/// never transient.
#[must_use]
pub fn is_transient(error: &TokenError) -> bool {
    match error {
        TokenError::Transport(error) => !matches!(error, TransportError::Refused(_)),
        TokenError::NoChannel | TokenError::Answer { .. } => true,
        TokenError::Status { sw, .. } => is_transient_status(*sw),
        // CLASS: the channel on which the applet was selected is not open.
        TokenError::NoApplet { last, .. } => {
            *last == StatusWord::CLASS || is_transient_status(*last)
        }
        _ => false,
    }
}

/// 6400 and 6F00 are unspecific; after 6581 the memory may work again, and a channel that is not
/// open can be opened (ISO 7816-4 section 5.6).
fn is_transient_status(sw: StatusWord) -> bool {
    matches!(
        sw,
        StatusWord::UNKNOWN
            | StatusWord::INTEGRITY
            | StatusWord::MEMORY_FAILURE
            | StatusWord::CHANNEL_NOT_SUPPORTED
    )
}

/// An error's kind, as the metrics name it.
#[must_use]
pub fn kind(error: &TokenError) -> String {
    let kind = match error {
        TokenError::Transport(TransportError::Gone(_)) => "gone",
        TokenError::Transport(TransportError::Timeout(_)) => "timeout",
        TokenError::Transport(TransportError::CardReset) => "reset",
        TokenError::Transport(TransportError::Garbled(_)) => "garbled",
        TokenError::Transport(TransportError::Refused(_)) => "refused_by_modem",
        TokenError::NoApplet { .. } => "no_applet",
        TokenError::NoChannel => "no_channel",
        TokenError::Status { sw, .. } => return format!("status_{sw}"),
        TokenError::Answer { .. } => "wrong_answer",
        TokenError::PinWrong { .. } => "pin_wrong",
        TokenError::PinLocked => "pin_locked",
        TokenError::PinNeeded => "pin_needed",
        TokenError::NoPin => "no_pin",
        TokenError::NoPeerContainer | TokenError::ContainerInUse => "no_place",
        TokenError::KeyLost => "key_lost",
        TokenError::PeerNotOnCurve => "peer_not_on_curve",
        TokenError::Denied(_) => "denied",
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn delays_double_up_to_the_limit_with_jitter() {
        let retry = Retry::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for (failures, longest_ms) in [(0, 20), (1, 40), (3, 160), (10, 1000), (40, 1000)] {
            let waits: Vec<_> = (0..200).map(|_| retry.delay(failures, &mut rng)).collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            let longest = Duration::from_millis(longest_ms);
            assert!(*least >= longest / 2 && *most <= longest, "{failures}: {least:?} {most:?}");
            assert!(*most - *least > longest / 3, "{failures}: {least:?} {most:?}");
        }
    }

    #[test]
    fn pin_errors_are_not_transient() {
        for error in [
            TokenError::PinWrong { tries_left: Some(2) },
            TokenError::PinLocked,
            TokenError::PinNeeded,
            TokenError::KeyLost,
        ] {
            assert!(!is_transient(&error), "{error}");
        }
        assert!(is_transient(&TransportError::CardReset.into()));
        let conditions = |sw| TokenError::Status { command: "GET DATA".into(), sw };
        assert!(is_transient(&conditions(StatusWord::UNKNOWN)));
        assert!(!is_transient(&conditions(StatusWord::CONDITIONS)));
    }
}

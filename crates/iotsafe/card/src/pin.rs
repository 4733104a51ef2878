// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card's PIN: what it protects, how often it may be wrong.
//!
//! The public IoT SAFE clients know no PIN command, so this is the card's own policy: ISO 7816-4's
//! VERIFY. Changing and unblocking have no command, since IoT SAFE gives the instructions 24 and
//! 2C to others; they are for personalisation.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The least bytes of a PIN (ETSI TS 102 221 section 9.5.1).
pub const PIN_MIN_BYTES: usize = 4;
/// The most bytes of a PIN, and the length of VERIFY's data (ETSI TS 102 221 section 9.5.1).
pub const PIN_MAX_BYTES: usize = 8;

/// What needs the PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinScope {
    /// Nothing; VERIFY works nevertheless.
    Nothing,
    /// Making signatures.
    Signing,
    /// Every use of a private key or a stored secret, and generating keys.
    EveryKey,
}

/// A PIN and its policy.
#[derive(Clone, PartialEq, Eq)]
pub struct Pin {
    /// What needs it.
    pub scope: PinScope,
    /// How many wrong tries in a row lock it, 1 to 15.
    pub tries_max: u8,
    pub(crate) tries_left: u8,
    pub(crate) value: Zeroizing<[u8; PIN_MAX_BYTES]>,
}

impl Pin {
    /// A PIN of 4 to 8 digits; None for another text or for tries that are not 1 to 15.
    ///
    /// ```
    /// use warifu_card::{Pin, PinScope};
    /// assert!(Pin::new("1234", PinScope::Signing, 3).is_some());
    /// assert!(Pin::new("abc", PinScope::Signing, 3).is_none());
    /// ```
    #[must_use]
    pub fn new(digits: &str, scope: PinScope, tries_max: u8) -> Option<Pin> {
        let plain = (PIN_MIN_BYTES..=PIN_MAX_BYTES).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = padded(digits).filter(|_| plain && (1..=15).contains(&tries_max))?;
        Some(Pin { scope, tries_max, tries_left: tries_max, value })
    }

    /// How many wrong tries are left; 0 when it is locked.
    #[must_use]
    pub fn tries_left(&self) -> u8 {
        self.tries_left
    }

    /// Compares, and counts: a wrong try costs one, a right one restores all. A locked PIN is
    /// never right.
    pub(crate) fn check(&mut self, presented: &[u8; PIN_MAX_BYTES]) -> bool {
        let right = self.tries_left > 0 && bool::from(self.value.ct_eq(presented));
        self.tries_left = if right { self.tries_max } else { self.tries_left.saturating_sub(1) };
        right
    }
}

/// Digits as VERIFY carries them: filled up with FF.
#[must_use]
pub fn padded(digits: &str) -> Option<Zeroizing<[u8; PIN_MAX_BYTES]>> {
    let mut value = Zeroizing::new([0xff; PIN_MAX_BYTES]);
    value.get_mut(..digits.len())?.copy_from_slice(digits.as_bytes());
    Some(value)
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pin({:?}, {} of {} tries left)", self.scope, self.tries_left, self.tries_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tries_lock_and_correct_pin_restores() {
        let mut pin = Pin::new("1234", PinScope::Signing, 3).unwrap();
        let (right, wrong) = (*padded("1234").unwrap(), *padded("12345678").unwrap());
        assert!(!pin.check(&wrong) && pin.tries_left() == 2);
        assert!(pin.check(&right) && pin.tries_left() == 3);
        for left in [2, 1, 0, 0] {
            assert!(!pin.check(&wrong));
            assert_eq!(pin.tries_left(), left);
        }
        assert!(!pin.check(&right), "a locked PIN is never right");
        assert_eq!(format!("{pin:?}"), "Pin(Signing, 0 of 3 tries left)");
    }

    #[test]
    fn pin_of_four_to_eight_digits() {
        for text in ["123", "123456789", "12 4", "1234\u{661}"] {
            assert_eq!(Pin::new(text, PinScope::Nothing, 3), None, "{text}");
        }
        assert_eq!(Pin::new("1234", PinScope::Nothing, 0), None);
        assert_eq!(Pin::new("1234", PinScope::Nothing, 16), None);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! VERIFY, and what needs it.

use super::{Answer, Card, Handled, Request};
use crate::apdu::StatusWord;
use crate::pin::{PIN_MAX_BYTES, PinScope};

/// P2 of VERIFY: no particular PIN, or PIN 1.
const PIN_REFERENCES: [u8; 2] = [0x00, 0x01];

impl Card {
    /// VERIFY: without data it asks for the state (ISO 7816-4 section 11.5.6).
    pub(super) fn verify(&mut self, request: &Request<'_>) -> Handled {
        if request.p1 != 0 || !PIN_REFERENCES.contains(&request.p2) {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        let Some(pin) = &mut self.settings.pin else { return Err(StatusWord::DATA_INVALIDATED) };
        if pin.tries_left == 0 {
            return Err(StatusWord::PIN_LOCKED);
        }
        if request.data.is_empty() {
            let state = StatusWord::tries_left(pin.tries_left);
            return if self.pin_verified { Ok(Answer::none()) } else { Err(state) };
        }
        let presented: &[u8; PIN_MAX_BYTES] =
            request.data.try_into().map_err(|_| StatusWord::WRONG_LENGTH)?;
        let before = pin.tries_left;
        self.pin_verified = pin.check(presented);
        self.dirty |= pin.tries_left != before;
        if self.pin_verified {
            Ok(Answer::none())
        } else {
            Err(StatusWord::tries_left(pin.tries_left))
        }
    }

    /// Refuses what needs a PIN that was not presented.
    pub(super) fn need_pin(&self, what: PinScope) -> Result<(), StatusWord> {
        let Some(pin) = &self.settings.pin else { return Ok(()) };
        let needed = pin.scope == PinScope::EveryKey
            || (pin.scope == PinScope::Signing && what == PinScope::Signing);
        if needed && !self.pin_verified { Err(StatusWord::SECURITY_STATUS) } else { Ok(()) }
    }
}

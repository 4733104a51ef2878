// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A virtual IoT SAFE card (GSMA IoT.05): commands in, answers out.
//!
//! It is for development: its keys lie in a file, not in a chip. Nothing here opens a file,
//! reads a clock or draws from the system's randomness; all three are the caller's.
//!
//! ```
//! use chacha20::ChaCha20Rng;
//! use rand_core::SeedableRng;
//! use warifu_card::{Card, Settings, StatusWord};
//!
//! let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let mut card = Card::with_usual_slots(Settings::default(), &mut rng).unwrap();
//! let select = [0x00, 0xa4, 0x04, 0x00, 0x07, 0xa0, 0, 0, 5, 0x59, 0, 0x10];
//! assert_eq!(card.transmit(&select, &mut rng).sw, StatusWord::OK);
//! let random = card.transmit(&[0x80, 0x84, 0, 0, 16], &mut rng);
//! assert_eq!((random.data.len(), random.sw), (16, StatusWord::OK));
//! ```

pub mod apdu;
mod card;
pub mod crypto;
pub mod faults;
pub mod identity;
pub mod object;
mod pin;
pub mod quirks;
mod state;
pub mod timing;
pub mod tlv;

pub use apdu::{Command, Response, StatusWord};
pub use card::{
    AIDS, ATR, Card, KeySource, Nonce, ObjectInfo, PersonaliseError, Reset, Settings, ins,
};
pub use identity::APPLET_ID_MAX_BYTES;
pub use pin::{PIN_MAX_BYTES, PIN_MIN_BYTES, Pin, PinScope, padded};
pub use quirks::Quirks;
pub use state::StateError;

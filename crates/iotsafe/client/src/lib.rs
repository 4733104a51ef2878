// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's side of IoT SAFE (GSMA IoT.05).
//!
//! - [`Transport`]: ways to a card, each with a deadline for every exchange.
//! - [`CardToken`]: one card's applet as a [`Token`]: its objects, its PIN, its keys at work.
//! - [`Token`] is what a PKCS#11 module asks; whoever owns the card can stand behind it, this
//!   process or another.
//! - [`CardAddress`]: where a card is, as people write it.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use warifu_iotsafe_client::{CardAddress, CardToken, Options, Token};
//!
//! let address: CardAddress = "unix:/run/warifu/card.sock".parse()?;
//! let mut token = CardToken::new(address.transport(None), Options::default());
//! let deadline = Instant::now() + Duration::from_secs(5);
//! for key in token.objects(deadline)?.private_keys {
//!     println!("{} {:02x?}", key.label, key.id);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod applet;
mod card;
mod error;
mod object;
mod signing;
mod token;
pub mod transport;

pub use address::{CardAddress, CardAddressError};
pub use applet::{Channel, ChannelPolicy, Options};
pub use card::CardToken;
pub use error::TokenError;
pub use object::{File, Inventory, PrivateKey, PublicKey, TokenInfo};
pub use token::{GeneratedPair, PinState, SignInput, Token};
pub use transport::{Transport, TransportError};
pub use warifu_card::crypto::{Curve, Hash};

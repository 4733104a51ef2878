// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the card computes: two curves, three hashes, two key derivations. The arithmetic is
//! RustCrypto's; secrets are overwritten when they are dropped and never shown.

mod curve;
mod derive;
mod hash;

pub use curve::{Curve, Point, Scalar};
pub use derive::{hkdf_extract, premaster_psk, premaster_psk_ecdhe, prf_tls12};
pub use hash::Hash;

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes that nobody else should see: overwritten when dropped, hidden in `Debug`.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes the bytes over.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> SecretBytes {
        SecretBytes(bytes)
    }

    /// The bytes themselves.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretBytes({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_secrets() {
        assert_eq!(format!("{:?}", SecretBytes::new(vec![0xab; 4])), "SecretBytes(4 bytes)");
        let scalar = Curve::Secp256r1.scalar(&[0xab; 32]).unwrap();
        assert_eq!(format!("{scalar:?}"), "Scalar(Secp256r1)");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! secp256r1 and brainpoolP256r1: key pairs, ECDSA, Diffie-Hellman.

use std::fmt;

use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Hash, SecretBytes};

/// A curve of GSMA IoT.05. Both have scalars and coordinates of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256.
    Secp256r1,
    /// RFC 5639 section 3.4.
    BrainpoolP256r1,
}

/// A private key: a scalar of its curve, not zero and below the order.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Scalar {
    #[zeroize(skip)]
    curve: Curve,
    bytes: [u8; 32],
}

/// A public key: a point of its curve, not the one at infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    curve: Curve,
    bytes: [u8; 65],
}

/// The same five functions over each curve's crate.
macro_rules! arithmetic {
    ($module:ident, $curve:ty, $secret:ty) => {
        mod $module {
            use ecdsa::Signature;
            use ecdsa::elliptic_curve::PublicKey;
            use ecdsa::elliptic_curve::ecdh::diffie_hellman;
            use ecdsa::elliptic_curve::sec1::ToSec1Point;
            use ecdsa::hazmat::{sign_prehashed_rfc6979, verify_prehashed};
            use sha2::{Sha256, Sha384, Sha512};

            use super::super::Hash;

            type Secret = $secret;
            type Public = PublicKey<$curve>;

            /// The secret key of bytes that were checked before.
            fn secret(scalar: &[u8; 32]) -> Option<Secret> {
                Secret::from_slice(scalar).ok()
            }

            pub(super) fn is_scalar(bytes: &[u8; 32]) -> bool {
                secret(bytes).is_some()
            }

            pub(super) fn is_point(bytes: &[u8; 65]) -> bool {
                Public::from_sec1_bytes(bytes).is_ok()
            }

            pub(super) fn public(scalar: &[u8; 32]) -> Option<[u8; 65]> {
                let point = secret(scalar)?.public_key().to_sec1_point(false);
                point.as_bytes().try_into().ok()
            }

            pub(super) fn sign(
                scalar: &[u8; 32],
                hash: Hash,
                digest: &[u8],
                extra: &[u8],
            ) -> Option<[u8; 64]> {
                let d = secret(scalar)?.to_nonzero_scalar();
                let (signature, _) = match hash {
                    Hash::Sha256 => sign_prehashed_rfc6979::<$curve, Sha256>(&d, digest, extra),
                    Hash::Sha384 => sign_prehashed_rfc6979::<$curve, Sha384>(&d, digest, extra),
                    Hash::Sha512 => sign_prehashed_rfc6979::<$curve, Sha512>(&d, digest, extra),
                };
                signature.to_bytes().as_slice().try_into().ok()
            }

            pub(super) fn verify(point: &[u8; 65], digest: &[u8], signature: &[u8; 64]) -> bool {
                let key = Public::from_sec1_bytes(point);
                let signature = Signature::<$curve>::from_slice(signature);
                match (key, signature) {
                    (Ok(key), Ok(signature)) => {
                        verify_prehashed(&key.to_projective(), digest, &signature).is_ok()
                    }
                    _ => false,
                }
            }

            pub(super) fn shared(scalar: &[u8; 32], point: &[u8; 65]) -> Option<[u8; 32]> {
                let d = secret(scalar)?.to_nonzero_scalar();
                let peer = Public::from_sec1_bytes(point).ok()?;
                let shared = diffie_hellman(d, peer.as_affine());
                shared.raw_secret_bytes().as_slice().try_into().ok()
            }
        }
    };
}

arithmetic!(secp256r1, p256::NistP256, p256::SecretKey);
arithmetic!(brainpool, bp256::BrainpoolP256r1, bp256::r1::SecretKey);

impl Curve {
    /// Both.
    pub const ALL: [Curve; 2] = [Curve::Secp256r1, Curve::BrainpoolP256r1];

    /// The private key of 32 bytes, the most significant first; None for zero and for what is not
    /// below the order.
    #[must_use]
    pub fn scalar(self, bytes: &[u8; 32]) -> Option<Scalar> {
        let fits = match self {
            Curve::Secp256r1 => secp256r1::is_scalar(bytes),
            Curve::BrainpoolP256r1 => brainpool::is_scalar(bytes),
        };
        fits.then_some(Scalar { curve: self, bytes: *bytes })
    }

    /// The public key of an uncompressed point (04, X, Y: SEC 1 section 2.3.3); None for what is
    /// not on the curve.
    #[must_use]
    pub fn point(self, bytes: &[u8]) -> Option<Point> {
        let bytes: &[u8; 65] = bytes.try_into().ok().filter(|bytes: &&[u8; 65]| bytes[0] == 4)?;
        let fits = match self {
            Curve::Secp256r1 => secp256r1::is_point(bytes),
            Curve::BrainpoolP256r1 => brainpool::is_point(bytes),
        };
        fits.then_some(Point { curve: self, bytes: *bytes })
    }

    /// A new private key.
    pub fn generate(self, rng: &mut dyn CryptoRng) -> Scalar {
        let mut bytes = Zeroizing::new([0; 32]);
        loop {
            rng.fill_bytes(&mut *bytes);
            if let Some(scalar) = self.scalar(&bytes) {
                return scalar;
            }
        }
    }
}

impl Scalar {
    /// Its curve.
    #[must_use]
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> Option<Point> {
        let bytes = match self.curve {
            Curve::Secp256r1 => secp256r1::public(&self.bytes),
            Curve::BrainpoolP256r1 => brainpool::public(&self.bytes),
        };
        bytes.map(|bytes| Point { curve: self.curve, bytes })
    }

    /// The ECDSA signature `r || s` of a digest, of which the leftmost 256 bits count.
    ///
    /// The nonce is that of RFC 6979 with `hash`; `extra` random bytes make it hedged
    /// (section 3.6), none deterministic.
    #[must_use]
    pub fn sign(&self, hash: Hash, digest: &[u8], extra: &[u8]) -> Option<[u8; 64]> {
        match self.curve {
            Curve::Secp256r1 => secp256r1::sign(&self.bytes, hash, digest, extra),
            Curve::BrainpoolP256r1 => brainpool::sign(&self.bytes, hash, digest, extra),
        }
    }

    /// The x coordinate of the product with another's point; None where the curves differ.
    #[must_use]
    pub fn shared_secret(&self, peer: &Point) -> Option<SecretBytes> {
        if peer.curve != self.curve {
            return None;
        }
        let shared = match self.curve {
            Curve::Secp256r1 => secp256r1::shared(&self.bytes, &peer.bytes),
            Curve::BrainpoolP256r1 => brainpool::shared(&self.bytes, &peer.bytes),
        };
        shared.map(|bytes| SecretBytes::new(Zeroizing::new(bytes).to_vec()))
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scalar({:?})", self.curve)
    }
}

impl Point {
    /// Its curve.
    #[must_use]
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// 04, X, Y.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 65] {
        &self.bytes
    }

    /// Whether `r || s` is a signature of the digest by this key.
    #[must_use]
    pub fn verify(&self, digest: &[u8], signature: &[u8; 64]) -> bool {
        match self.curve {
            Curve::Secp256r1 => secp256r1::verify(&self.bytes, digest, signature),
            Curve::BrainpoolP256r1 => brainpool::verify(&self.bytes, digest, signature),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn sign_verify_and_agree_on_both_curves() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for curve in Curve::ALL {
            let (one, other) = (curve.generate(&mut rng), curve.generate(&mut rng));
            let (public, other_public) = (one.public().unwrap(), other.public().unwrap());
            for hash in Hash::ALL {
                let digest = hash.digest(b"tally");
                let signature = one.sign(hash, &digest, &[]).unwrap();
                assert_eq!(one.sign(hash, &digest, &[]), Some(signature));
                assert_ne!(one.sign(hash, &digest, &[1; 32]), Some(signature));
                assert!(public.verify(&digest, &signature));
                assert!(!other_public.verify(&digest, &signature));
                assert!(!public.verify(&hash.digest(b"other"), &signature));
            }
            assert_eq!(one.shared_secret(&other_public), other.shared_secret(&public));
        }
    }

    #[test]
    fn invalid_keys() {
        for curve in Curve::ALL {
            assert_eq!(curve.scalar(&[0; 32]), None);
            assert_eq!(curve.scalar(&[0xff; 32]), None);
            let point = *curve.scalar(&[1; 32]).unwrap().public().unwrap().bytes();
            assert!(curve.point(&point).is_some());
            assert_eq!(curve.point(&point[1..]), None);
            let mut off = point;
            off[64] ^= 1;
            assert_eq!(curve.point(&off), None);
            let mut compressed = point;
            compressed[0] = 2;
            assert_eq!(curve.point(&compressed), None);
        }
        let point = Curve::Secp256r1.scalar(&[1; 32]).unwrap().public().unwrap();
        let other = Curve::BrainpoolP256r1.scalar(&[1; 32]).unwrap();
        assert_eq!(other.shared_secret(&point), None);
    }

    #[test]
    fn zero_in_a_signature() {
        let public = Curve::Secp256r1.scalar(&[1; 32]).unwrap().public().unwrap();
        assert!(!public.verify(&[0; 32], &[0; 64]));
        assert!(!public.verify(&[0; 32], &[0xff; 64]));
    }
}

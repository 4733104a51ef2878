// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.2's PRF and HKDF's first half.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384, Sha512};

use super::{Hash, SecretBytes};

/// `length_bytes` of P_hash (RFC 5246 section 5) of a secret, a label and a seed.
#[must_use]
pub fn prf_tls12(
    hash: Hash,
    secret: &[u8],
    label_and_seed: &[u8],
    length_bytes: usize,
) -> SecretBytes {
    let mut out = Vec::with_capacity(length_bytes + hash.length_bytes());
    let mut a = mac(hash, secret, &[label_and_seed]);
    while out.len() < length_bytes {
        out.extend_from_slice(mac(hash, secret, &[a.expose(), label_and_seed]).expose());
        a = mac(hash, secret, &[a.expose()]);
    }
    out.truncate(length_bytes);
    SecretBytes::new(out)
}

/// HKDF-Extract (RFC 5869 section 2.2): the pseudorandom key.
#[must_use]
pub fn hkdf_extract(hash: Hash, salt: &[u8], secret: &[u8]) -> SecretBytes {
    SecretBytes::new(match hash {
        Hash::Sha256 => Hkdf::<Sha256>::extract(Some(salt), secret).0.to_vec(),
        Hash::Sha384 => Hkdf::<Sha384>::extract(Some(salt), secret).0.to_vec(),
        Hash::Sha512 => Hkdf::<Sha512>::extract(Some(salt), secret).0.to_vec(),
    })
}

/// The premaster secret of a plain pre-shared key: as many zeros before it (RFC 4279 section 2).
#[must_use]
pub fn premaster_psk(psk: &[u8]) -> SecretBytes {
    premaster_psk_ecdhe(&vec![0; psk.len()], psk)
}

/// The premaster secret of a pre-shared key with ECDHE (RFC 5489 section 2): both with their
/// lengths in 16 bits. What is longer than 65535 bytes is cut.
#[must_use]
pub fn premaster_psk_ecdhe(shared: &[u8], psk: &[u8]) -> SecretBytes {
    let mut out = Vec::with_capacity(4 + shared.len() + psk.len());
    for part in [shared, psk] {
        let part = &part[..part.len().min(0xffff)];
        out.extend_from_slice(&(part.len() as u16).to_be_bytes());
        out.extend_from_slice(part);
    }
    SecretBytes::new(out)
}

fn mac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> SecretBytes {
    #[allow(clippy::expect_used, reason = "no length of a key is refused")]
    fn with<M: KeyInit + Mac>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        // RFC 2104 section 2: longer keys are hashed, shorter ones padded.
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key of any length fits");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
    SecretBytes::new(match hash {
        Hash::Sha256 => with::<Hmac<Sha256>>(key, parts),
        Hash::Sha384 => with::<Hmac<Sha384>>(key, parts),
        Hash::Sha512 => with::<Hmac<Sha512>>(key, parts),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prf_outputs_are_prefixes() {
        for hash in Hash::ALL {
            let long = prf_tls12(hash, b"secret", b"label seed", 200);
            for length in [0, 1, 31, 32, 33, 64, 199] {
                let short = prf_tls12(hash, b"secret", b"label seed", length);
                assert_eq!(short.expose(), &long.expose()[..length]);
            }
        }
    }

    #[test]
    fn premaster_secrets() {
        assert_eq!(premaster_psk(&[7, 8]).expose(), [0, 2, 0, 0, 0, 2, 7, 8]);
        assert_eq!(premaster_psk_ecdhe(&[9], &[7, 8]).expose(), [0, 1, 9, 0, 2, 7, 8]);
    }

    #[test]
    fn missing_salt_equals_zeros() {
        for hash in Hash::ALL {
            let zeros = vec![0; hash.length_bytes()];
            assert_eq!(hkdf_extract(hash, &[], b"key"), hkdf_extract(hash, &zeros, b"key"));
        }
    }
}

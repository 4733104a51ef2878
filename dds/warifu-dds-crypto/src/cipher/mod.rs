// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A keyed cipher, made once for a session's key and used for many messages.

mod aes_gcm;
#[cfg(target_arch = "x86_64")]
mod deoxys;

use ::deoxys::DeoxysII128;
use aegis::aegis128l::Aegis128L;
use aegis::aegis256::Aegis256;
use ascon_aead::AsconAead128;
use ascon_aead::aead::{AeadInOut, KeyInit};
use aws_lc_rs::aead as aws;
use zeroize::Zeroizing;

use self::aes_gcm::AesGcm;
use crate::algorithm::{Aead, TAG_BYTES};

/// An authentication tag.
pub type Tag = [u8; TAG_BYTES];

/// A cipher with its key, which is overwritten when it is dropped.
pub struct Cipher(Keyed);

/// A tag that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch;

enum Keyed {
    // AWS-LC expands a key once, and cleanses it when it is freed (`OPENSSL_free`).
    AesGcm(Box<AesGcm>),
    ChaCha20Poly1305(aws::LessSafeKey),
    Aegis128L(Box<Zeroizing<[u8; 16]>>),
    Aegis256(Box<Zeroizing<[u8; 32]>>),
    Ascon(Box<AsconAead128>),
    Deoxys(Box<DeoxysII128>),
    #[cfg(target_arch = "x86_64")]
    DeoxysAesNi(deoxys::DeoxysII),
}

impl Cipher {
    /// Nothing if the key has another length than the cipher's.
    pub fn new(aead: Aead, key: &[u8]) -> Option<Self> {
        Some(Self(match aead {
            Aead::Aes128Gcm | Aead::Aes256Gcm if key.len() != aead.key_bytes() => return None,
            Aead::Aes128Gcm | Aead::Aes256Gcm => Keyed::AesGcm(Box::new(AesGcm::new(key)?)),
            Aead::ChaCha20Poly1305 => Keyed::ChaCha20Poly1305(aws::LessSafeKey::new(
                aws::UnboundKey::new(&aws::CHACHA20_POLY1305, key).ok()?,
            )),
            Aead::Aegis128L => Keyed::Aegis128L(boxed(key)?),
            Aead::Aegis256 => Keyed::Aegis256(boxed(key)?),
            Aead::AsconAead128 => Keyed::Ascon(Box::new(AsconAead128::new_from_slice(key).ok()?)),
            #[cfg(target_arch = "x86_64")]
            Aead::DeoxysII128 if deoxys::is_supported() => {
                Keyed::DeoxysAesNi(deoxys::DeoxysII::new(key)?)
            }
            Aead::DeoxysII128 => Keyed::Deoxys(Box::new(DeoxysII128::new_from_slice(key).ok()?)),
        }))
    }

    /// Encrypts in place. `nonce` has the length of the cipher's; nothing if it has not, or if the
    /// message is longer than the cipher allows.
    #[inline]
    pub fn seal(&self, nonce: &[u8], associated: &[u8], message: &mut [u8]) -> Option<Tag> {
        match &self.0 {
            Keyed::AesGcm(key) => key.seal(nonce, associated, message),
            Keyed::ChaCha20Poly1305(key) => {
                let nonce = aws::Nonce::try_assume_unique_for_key(nonce).ok()?;
                let associated = aws::Aad::from(associated);
                let tag = key.seal_in_place_separate_tag(nonce, associated, message).ok()?;
                tag.as_ref().try_into().ok()
            }
            Keyed::Aegis128L(key) => {
                let cipher = Aegis128L::<TAG_BYTES>::new(key, nonce.try_into().ok()?);
                Some(cipher.encrypt_in_place(message, associated))
            }
            Keyed::Aegis256(key) => {
                let cipher = Aegis256::<TAG_BYTES>::new(key, nonce.try_into().ok()?);
                Some(cipher.encrypt_in_place(message, associated))
            }
            Keyed::Ascon(cipher) => seal(&**cipher, nonce, associated, message),
            Keyed::Deoxys(cipher) => seal(&**cipher, nonce, associated, message),
            #[cfg(target_arch = "x86_64")]
            Keyed::DeoxysAesNi(key) => key.seal(nonce, associated, message),
        }
    }

    /// Decrypts in place, in constant time for a given length. If the tag does not fit, what is
    /// left in `message` means nothing and must not be given to anyone.
    pub fn open(
        &self,
        nonce: &[u8],
        associated: &[u8],
        message: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Mismatch> {
        match &self.0 {
            Keyed::AesGcm(key) => key.open(nonce, associated, message, tag),
            Keyed::ChaCha20Poly1305(key) => {
                let nonce = aws::Nonce::try_assume_unique_for_key(nonce).map_err(|_| Mismatch)?;
                let associated = aws::Aad::from(associated);
                key.open_in_place_separate_tag(nonce, associated, tag, message)
                    .map(drop)
                    .map_err(|_| Mismatch)
            }
            Keyed::Aegis128L(key) => {
                let cipher = Aegis128L::<TAG_BYTES>::new(key, nonce.try_into()?);
                cipher.decrypt_in_place(message, tag, associated).map_err(|_| Mismatch)
            }
            Keyed::Aegis256(key) => {
                let cipher = Aegis256::<TAG_BYTES>::new(key, nonce.try_into()?);
                cipher.decrypt_in_place(message, tag, associated).map_err(|_| Mismatch)
            }
            Keyed::Ascon(cipher) => open(&**cipher, nonce, associated, message, tag),
            Keyed::Deoxys(cipher) => open(&**cipher, nonce, associated, message, tag),
            #[cfg(target_arch = "x86_64")]
            Keyed::DeoxysAesNi(key) => key.open(nonce, associated, message, tag),
        }
    }

    /// A tag over a message that stays readable.
    pub fn sign(&self, nonce: &[u8], message: &[u8]) -> Option<Tag> {
        self.seal(nonce, message, &mut [])
    }

    /// Whether the tag is the one of [`Self::sign`].
    pub fn verify(&self, nonce: &[u8], message: &[u8], tag: &Tag) -> Result<(), Mismatch> {
        self.open(nonce, message, &mut [], tag)
    }
}

impl From<std::array::TryFromSliceError> for Mismatch {
    fn from(_: std::array::TryFromSliceError) -> Self {
        Self
    }
}

/// On the heap, so that a key that moves leaves no copy behind.
fn boxed<const N: usize>(key: &[u8]) -> Option<Box<Zeroizing<[u8; N]>>> {
    if key.len() != N {
        return None;
    }
    let mut place = Box::new(Zeroizing::new([0; N]));
    place.copy_from_slice(key);
    Some(place)
}

fn seal<A: AeadInOut>(
    cipher: &A,
    nonce: &[u8],
    associated: &[u8],
    message: &mut [u8],
) -> Option<Tag> {
    let nonce = nonce.try_into().ok()?;
    let tag = cipher.encrypt_inout_detached(nonce, associated, message.into()).ok()?;
    tag.as_slice().try_into().ok()
}

fn open<A: AeadInOut>(
    cipher: &A,
    nonce: &[u8],
    associated: &[u8],
    message: &mut [u8],
    tag: &Tag,
) -> Result<(), Mismatch> {
    let nonce = nonce.try_into()?;
    let tag = tag.as_slice().try_into()?;
    cipher.decrypt_inout_detached(nonce, associated, message.into(), tag).map_err(|_| Mismatch)
}

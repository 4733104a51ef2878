// SPDX-License-Identifier: Apache-2.0 OR MIT
//! AES-GCM with AWS-LC.
//!
//! Its AEAD interface, which any number of threads may use at once, copies the key's tables into
//! each call: some 20 ns at 64 B (`benches/encode`, a Xeon of 2.5 GHz). A cipher context has them
//! in place, for one message at a time. So each key keeps one context. A thread borrows it for a
//! message; if another has it, the thread uses the AEAD interface.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use aws_lc_rs::aead as aws;
use aws_lc_sys as sys;

use super::{Mismatch, Tag};
use crate::algorithm::TAG_BYTES;

/// Of a nonce (NIST SP 800-38D, section 8.2.1).
const NONCE_BYTES: usize = 12;

const TAG_LENGTH: c_int = TAG_BYTES as c_int;

/// A key, expanded once.
pub struct AesGcm {
    /// Used while another thread has the context.
    shared: aws::LessSafeKey,
    /// Null while a thread has it.
    context: AtomicPtr<sys::EVP_CIPHER_CTX>,
}

impl AesGcm {
    /// Nothing if the key has neither 16 nor 32 bytes, or there is no memory.
    pub fn new(key: &[u8]) -> Option<Self> {
        // SAFETY: both give what is never freed.
        let (of_128, of_256) = unsafe { (sys::EVP_aes_128_gcm(), sys::EVP_aes_256_gcm()) };
        let (algorithm, cipher) = match key.len() {
            16 => (&aws::AES_128_GCM, of_128),
            32 => (&aws::AES_256_GCM, of_256),
            _ => return None,
        };
        let shared = aws::LessSafeKey::new(aws::UnboundKey::new(algorithm, key).ok()?);
        // SAFETY: it gives a new context, or null.
        let context = unsafe { sys::EVP_CIPHER_CTX_new() };
        if context.is_null() {
            return None;
        }
        let made = Self { shared, context: AtomicPtr::new(context) };
        // SAFETY: the key has the cipher's length.
        let done = unsafe {
            sys::EVP_CipherInit_ex(context, cipher, ptr::null_mut(), key.as_ptr(), ptr::null(), 1)
        };
        (done == 1).then_some(made)
    }

    /// Encrypts in place. Nothing if the nonce is not of 12 bytes or the message too long.
    #[inline]
    pub fn seal(&self, nonce: &[u8], associated: &[u8], message: &mut [u8]) -> Option<Tag> {
        let nonce: &[u8; NONCE_BYTES] = nonce.try_into().ok()?;
        if let Some(context) = self.take(associated, message) {
            let mut tag = [0; TAG_BYTES];
            let done = context.process(true, nonce, associated, message) && context.tag(&mut tag);
            return done.then_some(tag);
        }
        let nonce = aws::Nonce::assume_unique_for_key(*nonce);
        let associated = aws::Aad::from(associated);
        let tag = self.shared.seal_in_place_separate_tag(nonce, associated, message).ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Decrypts in place; see [`super::Cipher::open`].
    pub fn open(
        &self,
        nonce: &[u8],
        associated: &[u8],
        message: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Mismatch> {
        let nonce: &[u8; NONCE_BYTES] = nonce.try_into()?;
        if let Some(context) = self.take(associated, message) {
            let is_authentic =
                context.process(false, nonce, associated, message) && context.has_tag(tag);
            return if is_authentic { Ok(()) } else { Err(Mismatch) };
        }
        let nonce = aws::Nonce::assume_unique_for_key(*nonce);
        let associated = aws::Aad::from(associated);
        let opened = self.shared.open_in_place_separate_tag(nonce, associated, tag, message);
        opened.map(drop).map_err(|_| Mismatch)
    }

    /// The context, if no other thread has it and the lengths fit its interface.
    #[inline]
    fn take(&self, associated: &[u8], message: &[u8]) -> Option<Taken<'_>> {
        if c_int::try_from(associated.len().max(message.len())).is_err() {
            return None;
        }
        let context = self.context.swap(ptr::null_mut(), Ordering::Acquire);
        (!context.is_null()).then_some(Taken { context, from: self })
    }
}

impl Drop for AesGcm {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and it is used no more. It cleanses the key (OPENSSL_free).
        unsafe { sys::EVP_CIPHER_CTX_free(*self.context.get_mut()) };
    }
}

/// A context, for one message.
struct Taken<'a> {
    context: *mut sys::EVP_CIPHER_CTX,
    from: &'a AesGcm,
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        self.from.context.store(self.context, Ordering::Release);
    }
}

impl Taken<'_> {
    #[inline]
    fn process(
        &self,
        encrypts: bool,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        message: &mut [u8],
    ) -> bool {
        let encrypts = c_int::from(encrypts);
        // SAFETY: the context is ours alone and has its key; nothing else of it is replaced.
        let begun = unsafe {
            sys::EVP_CipherInit_ex(
                self.context,
                ptr::null(),
                ptr::null_mut(),
                ptr::null(),
                nonce.as_ptr(),
                encrypts,
            )
        };
        begun == 1
            && (associated.is_empty() || self.authenticate(associated))
            && (message.is_empty() || self.transform(message))
    }

    #[inline]
    fn authenticate(&self, octets: &[u8]) -> bool {
        // SAFETY: where there is no output, the octets are only read.
        unsafe { self.update(ptr::null_mut(), octets.as_ptr(), octets.len()) }
    }

    /// Encrypts or decrypts in place.
    #[inline]
    fn transform(&self, octets: &mut [u8]) -> bool {
        let (place, length) = (octets.as_mut_ptr(), octets.len());
        // SAFETY: both pointers come from the one exclusive borrow; GCM may work in place.
        unsafe { self.update(place, place.cast_const(), length) }
    }

    /// # Safety
    ///
    /// `length` octets can be read at `input`, and, unless `out` is null, written at `out`.
    #[inline]
    unsafe fn update(&self, out: *mut u8, input: *const u8, length: usize) -> bool {
        // Made sure of by `take`.
        let Ok(length) = c_int::try_from(length) else { return false };
        let mut written = 0;
        // SAFETY: the caller's; GCM writes as many octets as it reads.
        let done =
            unsafe { sys::EVP_CipherUpdate(self.context, out, &raw mut written, input, length) };
        done == 1
    }

    #[inline]
    fn tag(&self, tag: &mut Tag) -> bool {
        self.finish()
            // SAFETY: there is room for so many octets.
            && unsafe {
                sys::EVP_CIPHER_CTX_ctrl(
                    self.context,
                    sys::EVP_CTRL_AEAD_GET_TAG,
                    TAG_LENGTH,
                    tag.as_mut_ptr().cast(),
                )
            } == 1
    }

    /// In constant time (`CRYPTO_memcmp`).
    fn has_tag(&self, tag: &Tag) -> bool {
        // SAFETY: so many octets are there, and are copied.
        let is_set = unsafe {
            sys::EVP_CIPHER_CTX_ctrl(
                self.context,
                sys::EVP_CTRL_AEAD_SET_TAG,
                TAG_LENGTH,
                tag.as_ptr().cast_mut().cast(),
            )
        };
        is_set == 1 && self.finish()
    }

    #[inline]
    fn finish(&self) -> bool {
        let mut nothing = [0; TAG_BYTES];
        let mut written = 0;
        // SAFETY: GCM has nothing left to write.
        let done = unsafe {
            sys::EVP_CipherFinal_ex(self.context, nothing.as_mut_ptr(), &raw mut written)
        };
        done == 1
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const NONCE: [u8; NONCE_BYTES] = [9; NONCE_BYTES];

    fn sealed(key: &AesGcm, associated: &[u8], plain: &[u8]) -> (Vec<u8>, Tag) {
        let mut message = plain.to_vec();
        let tag = key.seal(&NONCE, associated, &mut message).expect("a nonce of 12 bytes");
        (message, tag)
    }

    #[test]
    fn context_in_use_falls_back_to_aead_interface() {
        for bytes in [16, 32] {
            let key = AesGcm::new(&vec![7; bytes]).expect("a key's length");
            for length in [0, 1, 15, 16, 17, 64, 300, 4096] {
                let plain: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0]).collect();
                for associated in [&b""[..], b"associated"] {
                    let with = sealed(&key, associated, &plain);
                    let taken = key.take(&[], &[]).expect("nobody has it");
                    let without = sealed(&key, associated, &plain);
                    assert_eq!(with, without, "{bytes} {length}");
                    let (mut message, tag) = with;
                    assert_eq!(key.open(&NONCE, associated, &mut message, &tag), Ok(()));
                    assert_eq!(message, plain);
                    drop(taken);
                    let (mut message, mut tag) = without;
                    assert_eq!(key.open(&NONCE, associated, &mut message, &tag), Ok(()));
                    assert_eq!(message, plain);
                    tag[15] ^= 1;
                    assert_eq!(key.open(&NONCE, associated, &mut message, &tag), Err(Mismatch));
                }
            }
        }
    }

    #[test]
    fn forged_tag_leaves_context_usable() {
        let key = AesGcm::new(&[7; 32]).expect("a key's length");
        let (sealed_message, tag) = sealed(&key, b"", b"plain");
        for _ in 0..3 {
            let mut message = sealed_message.clone();
            assert_eq!(key.open(&NONCE, b"x", &mut message, &tag), Err(Mismatch));
            let mut message = sealed_message.clone();
            assert_eq!(key.open(&NONCE, b"", &mut message, &tag), Ok(()));
            assert_eq!(message, b"plain");
        }
    }

    #[test]
    fn threads_that_share_a_key_do_not_disturb_each_other() {
        let key = AesGcm::new(&[7; 32]).expect("a key's length");
        let expected: Vec<_> = (0..4_u8).map(|of| sealed(&key, b"", &[of; 700])).collect();
        thread::scope(|scope| {
            for (of, expected) in (0..4_u8).zip(&expected) {
                let key = &key;
                scope.spawn(move || {
                    for _ in 0..3000 {
                        assert_eq!(&sealed(key, b"", &[of; 700]), expected);
                        let (mut message, tag) = expected.clone();
                        assert_eq!(key.open(&NONCE, b"", &mut message, &tag), Ok(()));
                        assert_eq!(message, [of; 700]);
                    }
                });
            }
        });
    }

    #[test]
    fn other_lengths_are_refused() {
        for bytes in [0, 15, 17, 24, 31, 33] {
            assert!(AesGcm::new(&vec![7; bytes]).is_none(), "{bytes}");
        }
        let key = AesGcm::new(&[7; 16]).expect("a key's length");
        for bytes in [0, 11, 13, 16] {
            assert_eq!(key.seal(&vec![0; bytes], &[], &mut []), None, "{bytes}");
            assert_eq!(key.open(&vec![0; bytes], &[], &mut [], &[0; 16]), Err(Mismatch));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Deoxys-II-128-128 (CAESAR submission, version 1.43) with the processor's instructions for AES.
//!
//! Crate `deoxys`, which stands for it on every other processor, calls a function for each round:
//! 1,128 ns at 64 B instead of 134 (`benches/encode`, a Xeon of 2.5 GHz). Here a group of blocks
//! goes through its rounds together, so that one block's round is computed while another's is
//! awaited.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_setr_epi8, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_unpackhi_epi64, _mm_xor_si128,
};

use zeroize::Zeroizing;

use super::{Mismatch, Tag};

/// Of a nonce.
const NONCE_BYTES: usize = 15;
/// Of a key.
const KEY_BYTES: usize = 16;
/// Of a block, and of a tweak.
const BLOCK_BYTES: usize = 16;
/// Of Deoxys-BC-256; there is one subkey more.
const ROUNDS: usize = 14;
/// Blocks that go through their rounds together: as many as two units for AES with four cycles'
/// latency have in work.
const GROUP: usize = 8;

/// First octets of tweaks, by what is encrypted (table 2.2: domain separation).
mod domain {
    pub const ASSOCIATED: u8 = 0x20;
    pub const ASSOCIATED_PADDED: u8 = 0x60;
    pub const MESSAGE: u8 = 0x00;
    pub const MESSAGE_PADDED: u8 = 0x40;
    pub const TAG: u8 = 0x10;
    pub const KEYSTREAM: u8 = 0x80;
}

/// The permutation h of the tweakey schedule: where each octet comes from.
const H: [u8; BLOCK_BYTES] = [1, 6, 11, 12, 5, 10, 15, 0, 9, 14, 3, 4, 13, 2, 7, 8];

/// The constants of the tweakey schedule.
const RCON: [u8; ROUNDS + 1] =
    [0x2f, 0x5e, 0xbc, 0x63, 0xc6, 0x97, 0x35, 0x6a, 0xd4, 0xb3, 0x7d, 0xfa, 0xef, 0xc5, 0x91];

/// A key with its schedule, which lacks only what comes from tweaks.
pub struct DeoxysII {
    subkeys: Box<Zeroizing<[[u8; BLOCK_BYTES]; ROUNDS + 1]>>,
}

/// Whether this processor has what [`DeoxysII`] needs.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx")
}

impl DeoxysII {
    /// Nothing if the key has not 16 bytes, or the processor lacks the instructions.
    pub fn new(key: &[u8]) -> Option<Self> {
        if !is_supported() || key.len() != KEY_BYTES {
            return None;
        }
        let mut subkeys = Box::new(Zeroizing::new([[0; BLOCK_BYTES]; ROUNDS + 1]));
        // TK2 of the submission.
        let mut half = Zeroizing::new([0; BLOCK_BYTES]);
        half.copy_from_slice(key);
        for (round, subkey) in subkeys.iter_mut().enumerate() {
            if round > 0 {
                let before = Zeroizing::new(*half);
                for (octet, from) in half.iter_mut().zip(H) {
                    let octet_before = before[usize::from(from)];
                    // LFSR2.
                    *octet = octet_before << 1 | (octet_before >> 7 ^ octet_before >> 5) & 1;
                }
            }
            *subkey = *half;
            for (octet, constant) in subkey.iter_mut().zip([1, 2, 4, 8]) {
                *octet ^= constant;
            }
            for octet in &mut subkey[4..8] {
                *octet ^= RCON[round];
            }
        }
        Some(Self { subkeys })
    }

    /// Encrypts in place. Nothing if the nonce has not 15 bytes.
    pub fn seal(&self, nonce: &[u8], associated: &[u8], message: &mut [u8]) -> Option<Tag> {
        let nonce = nonce.try_into().ok()?;
        // SAFETY: `new` has made sure of the instructions.
        let tag = unsafe { self.tag(nonce, associated, message) };
        // SAFETY: as above.
        unsafe { self.apply_keystream(nonce, &tag, message) };
        Some(tag)
    }

    /// Decrypts in place; see [`super::Cipher::open`].
    pub fn open(
        &self,
        nonce: &[u8],
        associated: &[u8],
        message: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Mismatch> {
        let nonce = nonce.try_into()?;
        // SAFETY: `new` has made sure of the instructions.
        unsafe { self.apply_keystream(nonce, tag, message) };
        // SAFETY: as above.
        let expected = unsafe { self.tag(nonce, associated, message) };
        if aws_lc_rs::constant_time::verify_slices_are_equal(&expected, tag).is_ok() {
            Ok(())
        } else {
            Err(Mismatch)
        }
    }

    #[target_feature(enable = "aes,avx")]
    fn tag(&self, nonce: &[u8; NONCE_BYTES], associated: &[u8], message: &[u8]) -> Tag {
        let sum = _mm_xor_si128(
            self.sum(associated, domain::ASSOCIATED, domain::ASSOCIATED_PADDED),
            self.sum(message, domain::MESSAGE, domain::MESSAGE_PADDED),
        );
        let [tag] = self.encrypt([sum], [with_first(domain::TAG, nonce)]);
        store(tag)
    }

    /// Encrypts each block under its number, and adds all up.
    #[target_feature(enable = "aes,avx")]
    fn sum(&self, octets: &[u8], full: u8, padded: u8) -> __m128i {
        let (blocks, rest) = octets.as_chunks::<BLOCK_BYTES>();
        let (groups, singles) = blocks.as_chunks::<GROUP>();
        let mut sum = _mm_setzero_si128();
        let mut number = 0;
        for group in groups {
            let mut blocks = [_mm_setzero_si128(); GROUP];
            for (block, octets) in blocks.iter_mut().zip(group) {
                *block = load(octets);
            }
            let tweaks = numbered_from(numbered(full, 0), number);
            for block in self.encrypt(blocks, tweaks) {
                sum = _mm_xor_si128(sum, block);
            }
            number += GROUP as u64;
        }
        // What is left goes together, too: the time of one block is that of a group.
        let mut group = [_mm_setzero_si128(); GROUP];
        let mut tweaks = numbered_from(numbered(full, 0), number);
        let mut count = 0;
        for block in singles {
            group[count] = load(block);
            count += 1;
        }
        if !rest.is_empty() {
            let mut block = Zeroizing::new([0; BLOCK_BYTES]);
            block[..rest.len()].copy_from_slice(rest);
            block[rest.len()] = 0x80;
            group[count] = load(&block);
            tweaks[count] = numbered(padded, number + count as u64);
            count += 1;
        }
        for block in &self.encrypt_some(group, tweaks, count)[..count] {
            sum = _mm_xor_si128(sum, *block);
        }
        sum
    }

    #[target_feature(enable = "aes,avx")]
    fn apply_keystream(&self, nonce: &[u8; NONCE_BYTES], tag: &Tag, message: &mut [u8]) {
        let mut first = *tag;
        first[0] |= domain::KEYSTREAM;
        let first = load(&first);
        let input = with_first(0, nonce);
        let (blocks, rest) = message.as_chunks_mut::<BLOCK_BYTES>();
        let (groups, singles) = blocks.as_chunks_mut::<GROUP>();
        let mut number = 0;
        for group in groups {
            let tweaks = numbered_from(first, number);
            let keystream = self.encrypt([input; GROUP], tweaks);
            for (block, key) in group.iter_mut().zip(keystream) {
                *block = store(_mm_xor_si128(load(block), key));
            }
            number += GROUP as u64;
        }
        let count = singles.len() + usize::from(!rest.is_empty());
        let tweaks = numbered_from(first, number);
        let keystream = self.encrypt_some([input; GROUP], tweaks, count);
        for (block, key) in singles.iter_mut().zip(keystream) {
            *block = store(_mm_xor_si128(load(block), key));
        }
        if !rest.is_empty() {
            for (octet, key) in rest.iter_mut().zip(store(keystream[count - 1])) {
                *octet ^= key;
            }
        }
    }

    /// The first `count` of a group.
    #[target_feature(enable = "aes,avx")]
    fn encrypt_some(
        &self,
        blocks: [__m128i; GROUP],
        tweaks: [__m128i; GROUP],
        count: usize,
    ) -> [__m128i; GROUP] {
        const HALF: usize = GROUP / 2;
        if count == 0 {
            blocks
        } else if count <= HALF {
            let [a, b, c, d, ..] = blocks;
            let [ta, tb, tc, td, ..] = tweaks;
            let [a, b, c, d] = self.encrypt([a, b, c, d], [ta, tb, tc, td]);
            [a, b, c, d, a, b, c, d]
        } else {
            self.encrypt(blocks, tweaks)
        }
    }

    /// Deoxys-BC-256, of N blocks at once.
    #[inline]
    #[target_feature(enable = "aes,avx")]
    fn encrypt<const N: usize>(
        &self,
        mut blocks: [__m128i; N],
        mut tweaks: [__m128i; N],
    ) -> [__m128i; N] {
        let h = permutation();
        let [first, others @ ..] = &**self.subkeys;
        let subkey = load(first);
        for (block, tweak) in blocks.iter_mut().zip(&tweaks) {
            *block = _mm_xor_si128(*block, _mm_xor_si128(subkey, *tweak));
        }
        for subkey in others {
            let subkey = load(subkey);
            for (block, tweak) in blocks.iter_mut().zip(&mut tweaks) {
                *tweak = _mm_shuffle_epi8(*tweak, h);
                *block = _mm_aesenc_si128(*block, _mm_xor_si128(subkey, *tweak));
            }
        }
        blocks
    }
}

#[inline]
#[target_feature(enable = "avx")]
fn permutation() -> __m128i {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = H.map(u8::cast_signed);
    _mm_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
}

#[inline]
#[target_feature(enable = "avx")]
fn load(block: &[u8; BLOCK_BYTES]) -> __m128i {
    let value = u128::from_le_bytes(*block).cast_signed();
    #[expect(clippy::cast_possible_truncation)]
    let (high, low) = ((value >> 64) as i64, value as i64);
    _mm_set_epi64x(high, low)
}

#[inline]
#[target_feature(enable = "avx")]
fn store(value: __m128i) -> [u8; BLOCK_BYTES] {
    let low = _mm_cvtsi128_si64(value).cast_unsigned();
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(value, value)).cast_unsigned();
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// A group's tweaks: one to which each block's number is added, without carry.
#[inline]
#[target_feature(enable = "avx")]
fn numbered_from(tweak: __m128i, first: u64) -> [__m128i; GROUP] {
    let mut tweaks = [tweak; GROUP];
    for (step, tweak) in tweaks.iter_mut().enumerate() {
        *tweak = _mm_xor_si128(*tweak, numbered(0, first + step as u64));
    }
    tweaks
}

/// A tweak: what is encrypted, and the block's number.
#[inline]
#[target_feature(enable = "avx")]
fn numbered(first: u8, number: u64) -> __m128i {
    _mm_set_epi64x(number.swap_bytes().cast_signed(), i64::from(first))
}

/// A nonce behind an octet.
#[inline]
#[target_feature(enable = "avx")]
fn with_first(first: u8, nonce: &[u8; NONCE_BYTES]) -> __m128i {
    let mut block = [first; BLOCK_BYTES];
    block[1..].copy_from_slice(nonce);
    load(&block)
}

#[cfg(test)]
mod tests {
    use deoxys::DeoxysII128;
    use deoxys::aead::{AeadInOut, KeyInit};

    use super::*;

    #[test]
    fn matches_portable_deoxys() {
        if !is_supported() {
            return;
        }
        let octets = |length: usize, factor: usize| -> Vec<u8> {
            (0..length).map(|at| (at * factor + at / 251).to_le_bytes()[0]).collect()
        };
        for (seed, length) in (0..300).chain([1023, 1024, 4111, 70_000]).enumerate() {
            let key = octets(KEY_BYTES, 3 + seed);
            let nonce: [u8; NONCE_BYTES] =
                octets(NONCE_BYTES, 7 + seed).try_into().expect("its length");
            let (associated, plain) = (octets(seed % 70, 11), octets(length, 13));
            let portable = DeoxysII128::new_from_slice(&key).expect("a key's length");
            let mut expected = plain.clone();
            let expected_tag = portable
                .encrypt_inout_detached(
                    (&nonce).into(),
                    &associated,
                    expected.as_mut_slice().into(),
                )
                .expect("a message's length");
            let ours = DeoxysII::new(&key).expect("a key's length");
            let mut message = plain.clone();
            let tag = ours.seal(&nonce, &associated, &mut message).expect("a nonce's length");
            assert_eq!((&message, &tag[..]), (&expected, &expected_tag[..]), "{length}");
            assert_eq!(ours.open(&nonce, &associated, &mut message, &tag), Ok(()));
            assert_eq!(message, plain);
            let mut other = tag;
            other[seed % 16] ^= 1 << (seed % 8);
            assert_eq!(ours.open(&nonce, &associated, &mut expected, &other), Err(Mismatch));
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(DeoxysII::new(&[0; 15]).is_none() && DeoxysII::new(&[0; 17]).is_none());
        if let Some(key) = DeoxysII::new(&[0; KEY_BYTES]) {
            assert_eq!(key.seal(&[0; 14], &[], &mut []), None);
            assert_eq!(key.open(&[0; 16], &[], &mut [], &[0; 16]), Err(Mismatch));
        }
    }
}

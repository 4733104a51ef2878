// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The three hashes of IoT SAFE, whole or from an intermediate state.

use sha2::block_api::{compress256, compress512};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A hash of GSMA IoT.05: 0001, 0002, 0004.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// All three.
    pub const ALL: [Hash; 3] = [Hash::Sha256, Hash::Sha384, Hash::Sha512];

    /// The bit that stands for it.
    #[must_use]
    pub fn bit(self) -> u8 {
        match self {
            Hash::Sha256 => 1,
            Hash::Sha384 => 2,
            Hash::Sha512 => 4,
        }
    }

    /// The hash of a value of two bytes, as commands carry it.
    #[must_use]
    pub fn from_bytes(value: &[u8]) -> Option<Hash> {
        Hash::ALL.into_iter().find(|hash| value == [0, hash.bit()])
    }

    /// Its length, bytes.
    #[must_use]
    pub fn length_bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    /// The length of its blocks, bytes.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        match self {
            Hash::Sha256 => 64,
            Hash::Sha384 | Hash::Sha512 => 128,
        }
    }

    /// The length of its state between two blocks, bytes.
    #[must_use]
    pub fn state_bytes(self) -> usize {
        self.block_bytes() / 2
    }

    /// The hash of a text.
    #[must_use]
    pub fn digest(self, text: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(text).to_vec(),
            Hash::Sha384 => Sha384::digest(text).to_vec(),
            Hash::Sha512 => Sha512::digest(text).to_vec(),
        }
    }

    /// The hash of a text of which all blocks but the last are in `state`: `hashed_bytes` of
    /// them, and `last` behind. None where the lengths are no such thing.
    #[must_use]
    pub fn finish(self, state: &[u8], hashed_bytes: u64, last: &[u8]) -> Option<Vec<u8>> {
        let block = self.block_bytes();
        let whole = hashed_bytes > 0 && hashed_bytes.is_multiple_of(block as u64);
        if state.len() != self.state_bytes() || !whole || last.len() > block {
            return None;
        }
        let tail = padded(last, hashed_bytes, block);
        let mut digest = match self {
            Hash::Sha256 => {
                let mut words = [0_u32; 8];
                for (word, bytes) in words.iter_mut().zip(state.as_chunks::<4>().0) {
                    *word = u32::from_be_bytes(*bytes);
                }
                compress256(&mut words, tail.as_chunks::<64>().0);
                words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
            }
            Hash::Sha384 | Hash::Sha512 => {
                let mut words = [0_u64; 8];
                for (word, bytes) in words.iter_mut().zip(state.as_chunks::<8>().0) {
                    *word = u64::from_be_bytes(*bytes);
                }
                compress512(&mut words, tail.as_chunks::<128>().0);
                words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
            }
        };
        digest.truncate(self.length_bytes());
        Some(digest)
    }
}

/// The end of a text with the padding of FIPS 180-4 section 5.1.
fn padded(last: &[u8], hashed_bytes: u64, block: usize) -> Vec<u8> {
    let length_field = block / 8;
    let mut tail = last.to_vec();
    tail.push(0x80);
    while tail.len() % block != block - length_field {
        tail.push(0);
    }
    let bits = (u128::from(hashed_bytes) + last.len() as u128) * 8;
    tail.extend_from_slice(&bits.to_be_bytes()[16 - length_field..]);
    tail
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The state after the whole blocks of a text: what a host hands over in last-block mode.
    pub(crate) fn state_after(hash: Hash, blocks: &[u8]) -> Vec<u8> {
        // FIPS 180-4 section 5.3: the square roots of the first primes; for SHA-384 of the ninth
        // to the sixteenth.
        match hash {
            Hash::Sha256 => {
                let mut words: [u32; 8] = [
                    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                    0x1f83d9ab, 0x5be0cd19,
                ];
                compress256(&mut words, blocks.as_chunks::<64>().0);
                words.iter().flat_map(|word| word.to_be_bytes()).collect()
            }
            Hash::Sha384 | Hash::Sha512 => {
                let mut words: [u64; 8] = if hash == Hash::Sha384 {
                    [
                        0xcbbb9d5dc1059ed8,
                        0x629a292a367cd507,
                        0x9159015a3070dd17,
                        0x152fecd8f70e5939,
                        0x67332667ffc00b31,
                        0x8eb44a8768581511,
                        0xdb0c2e0d64f98fa7,
                        0x47b5481dbefa4fa4,
                    ]
                } else {
                    [
                        0x6a09e667f3bcc908,
                        0xbb67ae8584caa73b,
                        0x3c6ef372fe94f82b,
                        0xa54ff53a5f1d36f1,
                        0x510e527fade682d1,
                        0x9b05688c2b3e6c1f,
                        0x1f83d9abfb41bd6b,
                        0x5be0cd19137e2179,
                    ]
                };
                compress512(&mut words, blocks.as_chunks::<128>().0);
                words.iter().flat_map(|word| word.to_be_bytes()).collect()
            }
        }
    }

    #[test]
    fn hash_names_of_two_bytes() {
        assert_eq!(Hash::from_bytes(&[0, 2]), Some(Hash::Sha384));
        for other in [&[][..], &[1], &[0, 0], &[0, 3], &[1, 0], &[0, 0, 1]] {
            assert_eq!(Hash::from_bytes(other), None);
        }
    }

    #[test]
    fn invalid_intermediate_lengths() {
        let state = [0; 32];
        assert!(Hash::Sha256.finish(&state, 64, &[]).is_some());
        assert_eq!(Hash::Sha256.finish(&state[1..], 64, &[]), None);
        assert_eq!(Hash::Sha256.finish(&state, 0, &[]), None);
        assert_eq!(Hash::Sha256.finish(&state, 65, &[]), None);
        assert_eq!(Hash::Sha256.finish(&state, 64, &[0; 65]), None);
        assert_eq!(Hash::Sha512.finish(&state, 128, &[]), None);
    }

    proptest! {
        #[test]
        fn last_block_after_intermediate_hash(
            text in prop::collection::vec(any::<u8>(), 129..700),
            keep_whole_block: bool,
        ) {
            for hash in Hash::ALL {
                let block = hash.block_bytes();
                let mut whole = text.len() / block * block;
                if whole == text.len() && keep_whole_block {
                    whole -= block;
                }
                let (head, last) = text.split_at(whole);
                let state = state_after(hash, head);
                prop_assert_eq!(hash.finish(&state, whole as u64, last), Some(hash.digest(&text)));
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random streams: one per purpose, so that a mechanism that draws more often does not shift
//! what another one sees, and cases that differ in one choice share the rest of their luck.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use warifu_model::CaseId;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// Which packets from the client are lost.
    LossUp = 1,
    /// Which packets from the server are lost.
    LossDown = 2,
    /// Jitter of the packets from the client.
    JitterUp = 3,
    /// Jitter of the packets from the server.
    JitterDown = 4,
    /// The client's processing times.
    ClientCosts = 5,
    /// The server's processing times.
    ServerCosts = 6,
    /// Lengths of signatures and tickets.
    Lengths = 7,
    /// Where in a jiffy and in a millisecond the connection begins.
    Clock = 8,
    /// The key store's times.
    KeyStore = 9,
    /// What a carrier draws itself, such as its first timeout.
    Carrier = 10,
    /// Where in the bands of its assumed figures a board is.
    Board = 11,
    /// How slow or quick each role is in a connection.
    Speed = 12,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

/// The increment of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014): 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of one trial. It depends on nothing but its arguments, so adding a case or a trial
/// changes no other.
///
/// ```
/// use warifu_model::CaseId;
/// let case = CaseId("0123456789abcdef".to_owned());
/// assert_eq!(warifu_sim::trial_seed(1, &case, 2), warifu_sim::trial_seed(1, &case, 2));
/// assert_ne!(warifu_sim::trial_seed(1, &case, 2), warifu_sim::trial_seed(1, &case, 3));
/// ```
pub fn trial_seed(study_seed: u64, case: &CaseId, trial: u64) -> u64 {
    TrialSeeds::new(study_seed, case).of(trial)
}

/// The seeds of a case's trials, as [`trial_seed`] gives them one by one.
#[derive(Clone, Copy, Debug)]
pub struct TrialSeeds(u64);

impl TrialSeeds {
    /// The seeds of a case in a study of this seed.
    pub fn new(study_seed: u64, case: &CaseId) -> TrialSeeds {
        let mut hash = mix(study_seed.wrapping_add(GOLDEN));
        for chunk in case.0.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash.wrapping_add(GOLDEN) ^ u64::from_le_bytes(word));
        }
        TrialSeeds(hash.wrapping_add(GOLDEN))
    }

    /// The seed of one trial.
    #[inline]
    pub fn of(self, trial: u64) -> u64 {
        mix(self.0 ^ trial)
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every bit over all others.
pub(crate) const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// As `seed_from_u64` has it: the state is the first four outputs of SplitMix64. Most of what a
/// trial that was remembered costs is this.
#[inline]
fn seeded(seed: u64) -> Xoshiro256PlusPlus {
    let mut state = [0; 32];
    state[0..8].copy_from_slice(&state_word(seed, 1).to_le_bytes());
    state[8..16].copy_from_slice(&state_word(seed, 2).to_le_bytes());
    state[16..24].copy_from_slice(&state_word(seed, 3).to_le_bytes());
    state[24..32].copy_from_slice(&state_word(seed, 4).to_le_bytes());
    Xoshiro256PlusPlus::from_seed(state)
}

/// A word of the state, counted from 1.
#[inline]
fn state_word(seed: u64, number: u64) -> u64 {
    mix(seed.wrapping_add(GOLDEN.wrapping_mul(number)))
}

/// Uniform from 0 up to, but not including, 1, from 64 random bits.
#[inline]
fn unit(bits: u64) -> f64 {
    // 53 bits: each result is a multiple of 2^-53, exactly representable. Here and below, a
    // signed integer converts in one instruction.
    (bits >> 11) as i64 as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// How many packets come through before the next one that is lost, from 64 random bits, when each
/// is lost with a probability whose complement has this logarithm: `floor(ln(u) / ln(1 - p))`.
#[inline]
pub(crate) fn geometric(bits: u64, ln_keep: f64) -> u64 {
    // 1 - u lies in (0, 1], so the logarithm is finite; the cast saturates.
    ((1.0 - unit(bits)).ln() / ln_keep) as i64 as u64
}

impl Stream {
    /// The stream of a purpose within a trial.
    #[inline]
    pub(crate) fn new(trial_seed: u64, purpose: Purpose) -> Stream {
        Stream(seeded(trial_seed ^ mix(purpose as u64)))
    }

    /// The first 64 bits of a stream that most trials ask for nothing more: those of
    /// xoshiro256++ depend on two words of its state.
    #[inline]
    pub(crate) fn first_bits(trial_seed: u64, purpose: Purpose) -> u64 {
        let seed = trial_seed ^ mix(purpose as u64);
        let (first, fourth) = (state_word(seed, 1), state_word(seed, 4));
        first.wrapping_add(fourth).rotate_left(23).wrapping_add(first)
    }

    /// One of many streams of a purpose within a trial, by its number.
    pub(crate) fn numbered(trial_seed: u64, purpose: Purpose, number: u64) -> Stream {
        Stream::new(trial_seed ^ mix(number.wrapping_add(GOLDEN)), purpose)
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform from 0 up to, but not including, 1.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        unit(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_seed_depends_on_each_argument_and_is_fixed_for_ever() {
        let case = |text: &str| CaseId(text.to_owned());
        let seed = trial_seed(20_261_121, &case("0123456789abcdef"), 0);
        assert_eq!(seed, trial_seed(20_261_121, &case("0123456789abcdef"), 0));
        assert_ne!(seed, trial_seed(20_261_122, &case("0123456789abcdef"), 0));
        assert_ne!(seed, trial_seed(20_261_121, &case("0123456789abcdee"), 0));
        assert_ne!(seed, trial_seed(20_261_121, &case("0123456789abcdef"), 1));
    }

    proptest! {
        #[test]
        fn seeding_is_that_of_the_generator(seed: u64) {
            prop_assert_eq!(seeded(seed), Xoshiro256PlusPlus::seed_from_u64(seed));
            let first = Stream::first_bits(seed, Purpose::LossUp);
            prop_assert_eq!(first, Stream::new(seed, Purpose::LossUp).bits());
        }
    }

    #[test]
    fn streams_differ_by_purpose() {
        let first = |purpose| Stream::new(7, purpose).bits();
        let all = [
            first(Purpose::LossUp),
            first(Purpose::LossDown),
            first(Purpose::JitterUp),
            first(Purpose::JitterDown),
            first(Purpose::ClientCosts),
            first(Purpose::ServerCosts),
            first(Purpose::Lengths),
            first(Purpose::Clock),
            first(Purpose::KeyStore),
            first(Purpose::Carrier),
            first(Purpose::Board),
            first(Purpose::Speed),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one));
        }
    }

    #[test]
    fn geometric_gaps_have_the_right_mean() {
        let mut stream = Stream::new(3, Purpose::LossUp);
        let n = 200_000;
        let probability = 0.02_f64;
        let total: u64 = (0..n).map(|_| geometric(stream.bits(), (1.0 - probability).ln())).sum();
        let mean = total as f64 / f64::from(n);
        // (1 - p) / p = 49 with a standard deviation of 49.5 / sqrt(n) = 0.11.
        assert!((mean - 49.0).abs() < 0.6, "{mean}");
    }
}

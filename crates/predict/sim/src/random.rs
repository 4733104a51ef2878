// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random streams: one per purpose, so that a mechanism that draws more often does not shift
//! what another one sees, and cases that differ in one choice share the rest of their luck.

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
    /// How slow or quick each machine is in a trial.
    Sitting = 13,
    /// How slow or quick each machine's system calls are in a trial.
    SittingOfSystem = 14,
}

/// A stream of random numbers: SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014). A trial has eight streams and takes ten numbers from each, so that
/// what counts is that a stream begins at once, anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Stream(u64);

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
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
        // Mixed, so that streams do not begin a few increments apart.
        Stream(mix(trial_seed ^ mix(purpose as u64)))
    }

    /// One of many streams of a purpose within a trial, by its number.
    pub(crate) fn numbered(trial_seed: u64, purpose: Purpose, number: u64) -> Stream {
        Stream::new(trial_seed ^ mix(number.wrapping_add(GOLDEN)), purpose)
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
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

    /// The first outputs for the seed 1234567, as of `splitmix64.c` by Vigna.
    #[test]
    fn outputs_of_splitmix64() {
        let mut stream = Stream(1_234_567);
        for expected in [6_457_827_717_110_365_317, 3_203_168_211_198_807_973_u64] {
            assert_eq!(stream.bits(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_part_of_all_numbers_is_below_each(seed: u64, part in 1_u64..8) {
            let mut stream = Stream::new(seed, Purpose::ClientCosts);
            let (n, bound) = (4_000_u32, part << 61);
            let below = f64::from((0..n).map(|_| u32::from(stream.bits() < bound)).sum::<u32>());
            let expected = f64::from(n) * part as f64 / 8.0;
            // Six standard errors.
            prop_assert!((below - expected).abs() < 6.0 * (f64::from(n) / 4.0).sqrt(), "{}", below);
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
            first(Purpose::Sitting),
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

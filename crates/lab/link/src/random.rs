// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seeded random streams, one for each use and direction, so that a seed replays whatever the
//! timing was.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From namespace A to namespace B.
    AToB,
    /// From namespace B to namespace A.
    BToA,
}

impl Direction {
    /// Both, in the order of their indices.
    pub const BOTH: [Direction; 2] = [Direction::AToB, Direction::BToA];

    /// 0 for A to B, 1 for B to A.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Direction::AToB => 0,
            Direction::BToA => 1,
        }
    }
}

/// One stream of uniform numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The next number, uniform in [0, 1), with 53 random bits.
    ///
    /// Written out here, and not taken from a distribution library, so that a seed replays across
    /// versions of one.
    pub fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * SCALE
    }
}

/// The streams of one direction. Loss and jitter never share one: turning jitter on must not change
/// which packets are lost.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Draws of the loss model.
    pub loss: Stream,
    /// Draws of the jitter.
    pub jitter: Stream,
}

impl Streams {
    /// The streams of `direction` under `seed`: four pieces of one xoshiro256++ sequence, 2^128
    /// numbers apart (its `jump`).
    #[must_use]
    pub fn new(seed: u64, direction: Direction) -> Streams {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        if direction == Direction::BToA {
            generator.jump();
            generator.jump();
        }
        let loss = Stream(generator.clone());
        generator.jump();
        Streams { loss, jitter: Stream(generator) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(stream: &mut Stream) -> Vec<u64> {
        (0..8).map(|_| stream.uniform().to_bits()).collect()
    }

    #[test]
    fn a_seed_replays_and_the_four_streams_differ() {
        let mut heads: Vec<_> = Direction::BOTH
            .iter()
            .flat_map(|&direction| {
                let mut streams = Streams::new(7, direction);
                let mut again = Streams::new(7, direction);
                let (loss, jitter) = (head(&mut streams.loss), head(&mut streams.jitter));
                assert_eq!(loss, head(&mut again.loss));
                assert_eq!(jitter, head(&mut again.jitter));
                [loss, jitter]
            })
            .collect();
        heads.sort();
        heads.dedup();
        assert_eq!(heads.len(), 4);
    }

    #[test]
    fn uniform_numbers_fill_the_unit_interval_evenly() {
        let mut stream = Streams::new(1, Direction::AToB).loss;
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            let u = stream.uniform();
            assert!((0.0..1.0).contains(&u));
            counts[(u * 10.0) as usize] += 1;
        }
        // 10,000 expected in each; 400 is over four standard deviations (95).
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 400), "{counts:?}");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a card takes, apart from what it answers: a profile of laws, and draws from it.
//!
//! The model knows the command and the answer as bytes, so it serves any card of these commands.

mod operation;
mod profile;

pub use operation::Operation;
pub use profile::CardProfile;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use warifu_model::{Distribution, Nanos};

use crate::apdu::{Response, StatusWord};

/// Draws the times of a card, one command after the other; a seed replays them.
#[derive(Clone, Debug)]
pub struct Timing {
    profile: CardProfile,
    rng: Xoshiro256PlusPlus,
    busy_until: Nanos,
}

impl Timing {
    /// The times of a profile under a seed.
    #[must_use]
    pub fn new(profile: CardProfile, seed: u64) -> Timing {
        Timing { profile, rng: Xoshiro256PlusPlus::seed_from_u64(seed), busy_until: Nanos::ZERO }
    }

    /// The profile that it draws from.
    #[must_use]
    pub fn profile(&self) -> &CardProfile {
        &self.profile
    }

    /// Virtual clock: how long the card takes from a command to the end of its answer.
    pub fn time(&mut self, command: &[u8], response: &Response) -> Nanos {
        self.draw(command, response.data.len() + 2, response.sw)
    }

    /// Wall clock: when the answer is due to a command that came in at `received`, on the same
    /// clock. It is absolute, so what computing the answer took is not waited for again; a card
    /// that is still busy with the command before begins when that is due.
    pub fn deadline(&mut self, received: Nanos, command: &[u8], response: &Response) -> Nanos {
        let start = received.max(self.busy_until);
        let time = self.time(command, response);
        self.busy_until = Nanos(start.0.saturating_add(time.0));
        self.busy_until
    }

    /// The same two numbers are drawn for every law, so one law's change shifts no other's luck.
    fn draw(&mut self, command: &[u8], answer_bytes: usize, sw: StatusWord) -> Nanos {
        let operation = Operation::of(command, sw);
        let bytes = (command.len() + answer_bytes) as u64;
        let transfer = self.profile.byte.0.saturating_mul(bytes);
        let exchange = sample(&self.profile.exchange, &mut self.rng);
        let work = sample(self.profile.operation(operation), &mut self.rng);
        Nanos(transfer.saturating_add(exchange.0).saturating_add(work.0))
    }
}

fn sample(law: &Distribution, rng: &mut Xoshiro256PlusPlus) -> Nanos {
    let (u, v) = (uniform(rng), uniform(rng));
    law.sample(u, v)
}

/// Uniform in [0, 1), with 53 random bits.
fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> CardProfile {
        let mut text = "name = \"t\"\ndescription = \"a card\"\nexchange = \"1 ms\"\n\
            byte = \"10 us\"\n[operation]\n"
            .to_owned();
        for operation in Operation::ALL {
            let time = if operation == Operation::ComputeSignature { 100 } else { 0 };
            text += &format!("{} = \"{time} ms\"\n", operation.name());
        }
        CardProfile::parse("t", &text, "t.toml").unwrap()
    }

    const SIGN: [u8; 6] = [0x81, 0x2b, 0x80, 0x01, 0x01, 0x00];

    #[test]
    fn time_is_exchange_plus_bytes_plus_operation() {
        let mut timing = Timing::new(profile(), 1);
        let answer = Response { data: vec![0; 66], sw: StatusWord::OK };
        // 1 ms + (6 + 66 + 2) bytes of 10 us + 100 ms.
        assert_eq!(timing.time(&SIGN, &answer), Nanos(101_740_000));
        let refused = Response::status(StatusWord::CONDITIONS);
        assert_eq!(timing.time(&SIGN, &refused), Nanos(1_080_000));
    }

    #[test]
    fn due_time_counts_from_the_command() {
        let mut timing = Timing::new(profile(), 1);
        let answer = Response { data: vec![0; 66], sw: StatusWord::OK };
        let due = timing.deadline(Nanos(5), &SIGN, &answer);
        assert_eq!(due, Nanos(101_740_005));
        // The next one came while the card was busy.
        assert_eq!(timing.deadline(Nanos(6), &SIGN, &answer), Nanos(203_480_005));
        let late = timing.deadline(Nanos(1_000_000_000), &SIGN, &answer);
        assert_eq!(late, Nanos(1_101_740_000));
    }

    #[test]
    fn same_seed_same_times() {
        let mut law = profile();
        law.exchange = Distribution::from_quantiles(vec![Nanos(0), Nanos(1_000_000_000)]).unwrap();
        let answer = Response::status(StatusWord::OK);
        let draws = |seed| {
            let mut timing = Timing::new(law.clone(), seed);
            (0..4).map(|_| timing.time(&SIGN, &answer)).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes wrong with cards, on demand: a card with faults between it and its user.
//!
//! A fault is asked for by a script, one entry for each command, or drawn by rates under a seed.
//! Whatever happens, the stored state is the one before a command or the one after it.

use std::collections::{BTreeMap, VecDeque};

use rand_core::CryptoRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use warifu_model::Nanos;
use zeroize::Zeroizing;

use crate::apdu::{Command, Response, StatusWord};
use crate::card::{Card, Reset, ins};

/// How many commands a removed card misses before it is back, if nothing else is said.
const ABSENT_COMMANDS: u32 = 2;

/// One thing that goes wrong with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The command is carried out, its answer never comes.
    LostAnswer,
    /// The answer comes this much later.
    LateAnswer {
        /// How much.
        by: Nanos,
    },
    /// One bit of a signature is wrong; of another answer, one bit of its data.
    FlippedBit,
    /// The command is carried out, but its status word says 6F00.
    WrongStatus,
    /// The card is pulled out before the command and misses some.
    Removed {
        /// How many commands it misses, this one among them.
        commands: u32,
    },
    /// The card resets before it carries the command out.
    Reset,
    /// Power fails after the command was carried out, before the new state was written.
    PowerCutBeforeWrite,
    /// Power fails after the new state was written, before the answer was sent.
    PowerCutAfterWrite,
}

/// How often each fault happens, as probabilities a command; together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Of [`Fault::LostAnswer`].
    pub lost: f64,
    /// Of [`Fault::LateAnswer`].
    pub late: f64,
    /// By how much a late answer is late.
    pub late_by: Nanos,
    /// Of [`Fault::FlippedBit`].
    pub flipped: f64,
    /// Of [`Fault::WrongStatus`].
    pub wrong_status: f64,
    /// Of [`Fault::Removed`].
    pub removed: f64,
    /// Of [`Fault::Reset`].
    pub reset: f64,
    /// Of power cuts, half of them before the write.
    pub power_cut: f64,
}

/// Which commands go wrong, and how.
#[derive(Clone, Debug)]
pub enum Plan {
    /// The next command's entry first; nothing goes wrong behind the last.
    Script(VecDeque<Option<Fault>>),
    /// Drawn for each command.
    Rates(Rates),
}

/// What the user of a card gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer.
    Answer(Response),
    /// An answer, later than it would have come.
    Late {
        /// The answer.
        response: Response,
        /// How much later.
        by: Nanos,
    },
    /// No answer.
    Lost,
    /// No answer: there is no card.
    Absent,
    /// No answer: the card was reset and waits anew for SELECT.
    Reset,
}

/// A card with faults around it.
#[derive(Debug)]
pub struct FaultyCard {
    card: Card,
    stored: Zeroizing<Vec<u8>>,
    plan: Plan,
    rng: Xoshiro256PlusPlus,
    absent: u32,
    dirty: bool,
    counts: BTreeMap<&'static str, u64>,
}

impl FaultyCard {
    /// Puts faults around a card; `seed` decides where and which bits.
    #[must_use]
    pub fn new(card: Card, plan: Plan, seed: u64) -> FaultyCard {
        FaultyCard {
            stored: card.to_bytes(),
            card,
            plan,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            absent: 0,
            dirty: false,
            counts: BTreeMap::new(),
        }
    }

    /// Passes a command on, or not.
    pub fn transmit(&mut self, command: &[u8], rng: &mut dyn CryptoRng) -> Outcome {
        if self.absent > 0 {
            self.absent -= 1;
            return Outcome::Absent;
        }
        let fault = self.next_fault();
        if let Some(fault) = fault {
            *self.counts.entry(fault.name()).or_default() += 1;
        }
        match fault {
            None => Outcome::Answer(self.carry_out(command, rng)),
            Some(Fault::LostAnswer) => {
                self.carry_out(command, rng);
                Outcome::Lost
            }
            Some(Fault::LateAnswer { by }) => {
                Outcome::Late { response: self.carry_out(command, rng), by }
            }
            Some(Fault::FlippedBit) => {
                let mut response = self.carry_out(command, rng);
                self.flip(command, &mut response);
                Outcome::Answer(response)
            }
            Some(Fault::WrongStatus) => {
                self.carry_out(command, rng);
                Outcome::Answer(Response::status(StatusWord::UNKNOWN))
            }
            Some(Fault::Removed { commands }) => {
                self.card.reset(Reset::Cold);
                self.absent = commands.saturating_sub(1);
                Outcome::Absent
            }
            Some(Fault::Reset) => {
                self.card.reset(Reset::Warm);
                Outcome::Reset
            }
            Some(Fault::PowerCutBeforeWrite) => {
                // What was not written is lost with the power.
                self.card.transmit(command, rng);
                match Card::from_bytes(&self.stored) {
                    Ok(card) => self.card = card,
                    Err(_) => self.card.reset(Reset::Cold), // never: the card wrote it itself
                }
                Outcome::Reset
            }
            Some(Fault::PowerCutAfterWrite) => {
                self.carry_out(command, rng);
                self.card.reset(Reset::Cold);
                Outcome::Reset
            }
        }
    }

    /// Another plan from the next command on; gives the one until now.
    pub fn replace_plan(&mut self, plan: Plan) -> Plan {
        std::mem::replace(&mut self.plan, plan)
    }

    /// Puts another state of the card in the place of this one; faults go on as planned.
    pub fn replace_card(&mut self, card: Card) {
        self.stored = card.to_bytes();
        self.card = card;
    }

    /// Resets the card, as a reader does; one that is away stays away.
    pub fn reset(&mut self, kind: Reset) {
        self.card.reset(kind);
    }

    /// The state as it is stored.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Whether [`FaultyCard::stored`] changed since this was last asked.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// The card itself.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// How often each fault happened, by name.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    fn carry_out(&mut self, command: &[u8], rng: &mut dyn CryptoRng) -> Response {
        let response = self.card.transmit(command, rng);
        if self.card.take_dirty() {
            self.stored = self.card.to_bytes();
            self.dirty = true;
        }
        response
    }

    fn next_fault(&mut self) -> Option<Fault> {
        let rates = match &mut self.plan {
            Plan::Script(script) => return script.pop_front().flatten(),
            Plan::Rates(rates) => *rates,
        };
        // 53 random bits: uniform in [0, 1).
        let mut u = (self.rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
        let removed = Fault::Removed { commands: ABSENT_COMMANDS };
        for (rate, fault) in [
            (rates.lost, Fault::LostAnswer),
            (rates.late, Fault::LateAnswer { by: rates.late_by }),
            (rates.flipped, Fault::FlippedBit),
            (rates.wrong_status, Fault::WrongStatus),
            (rates.removed, removed),
            (rates.reset, Fault::Reset),
            (rates.power_cut / 2.0, Fault::PowerCutBeforeWrite),
            (rates.power_cut / 2.0, Fault::PowerCutAfterWrite),
        ] {
            if u < rate {
                return Some(fault);
            }
            u -= rate;
        }
        None
    }

    /// Flips a bit of the data, of a signature behind its header; an answer without data gets a
    /// wrong status word, as there is nothing else to be wrong.
    fn flip(&mut self, command: &[u8], response: &mut Response) {
        if response.data.is_empty() {
            response.sw = StatusWord::UNKNOWN;
            return;
        }
        let signs = Command::parse(command)
            .is_ok_and(|command| command.ins == ins::COMPUTE_SIGNATURE_UPDATE);
        let header = if signs { response.data.len().saturating_sub(64) } else { 0 };
        let bits = (response.data.len() - header) as u64 * 8;
        let bit = (self.rng.next_u64() % bits) as usize;
        response.data[header + bit / 8] ^= 1 << (bit % 8);
    }
}

impl Fault {
    /// Its name, for counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::LostAnswer => "lost answer",
            Fault::LateAnswer { .. } => "late answer",
            Fault::FlippedBit => "flipped bit",
            Fault::WrongStatus => "wrong status",
            Fault::Removed { .. } => "removed",
            Fault::Reset => "reset",
            Fault::PowerCutBeforeWrite => "power cut before write",
            Fault::PowerCutAfterWrite => "power cut after write",
        }
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;

    use super::*;
    use crate::card::Settings;
    use crate::object::{KeyAttributes, KeyType, Name, access};
    use crate::{AIDS, KeySource};

    const GENERATE: [u8; 8] = [0x80, 0xb9, 0, 0, 3, 0x84, 1, 9];

    fn faulty(faults: &[Option<Fault>]) -> (FaultyCard, ChaCha8Rng) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut card = Card::with_usual_slots(Settings::default(), &mut rng).unwrap();
        let name = Name::slot(9, "", access::READ | access::UPDATE);
        let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
        card.add_key_pair(name, attributes, KeySource::Generate, &mut rng).unwrap();
        card.take_dirty();
        let script = [None].iter().chain(faults).copied().collect();
        let mut faulty = FaultyCard::new(card, Plan::Script(script), 1);
        let select = [&[0, 0xa4, 4, 0x0c, AIDS[0].len() as u8], AIDS[0]].concat();
        let answer = faulty.transmit(&select, &mut rng);
        assert_eq!(answer, Outcome::Answer(Response::status(StatusWord::OK)));
        (faulty, rng)
    }

    #[test]
    fn faulty_answers_to_executed_commands() {
        let by = Nanos(7);
        for fault in
            [Fault::LostAnswer, Fault::LateAnswer { by }, Fault::WrongStatus, Fault::FlippedBit]
        {
            let (mut card, mut rng) = faulty(&[Some(fault)]);
            let before = card.stored().to_vec();
            let outcome = card.transmit(&GENERATE, &mut rng);
            assert_ne!(card.stored(), before, "{fault:?}");
            assert_eq!(*card.card().to_bytes(), card.stored());
            match (fault, outcome) {
                (Fault::LostAnswer, Outcome::Lost) => {}
                (Fault::LateAnswer { .. }, Outcome::Late { by: late, .. }) => assert_eq!(late, by),
                (Fault::WrongStatus, Outcome::Answer(response)) => {
                    assert_eq!(response, Response::status(StatusWord::UNKNOWN));
                }
                // Without Le the answer waits, so that there is only a status word to be wrong.
                (Fault::FlippedBit, Outcome::Answer(response)) => {
                    assert_eq!(response, Response::status(StatusWord::UNKNOWN));
                }
                (fault, outcome) => panic!("{fault:?} gave {outcome:?}"),
            }
        }
    }

    #[test]
    fn power_cut_leaves_old_or_new_state() {
        let (mut card, mut rng) = faulty(&[Some(Fault::PowerCutBeforeWrite)]);
        let before = card.stored().to_vec();
        assert_eq!(card.transmit(&GENERATE, &mut rng), Outcome::Reset);
        assert_eq!((card.stored(), &**card.card().to_bytes()), (&before[..], &before[..]));

        let (mut card, mut rng) = faulty(&[Some(Fault::PowerCutAfterWrite)]);
        let before = card.stored().to_vec();
        assert_eq!(card.transmit(&GENERATE, &mut rng), Outcome::Reset);
        assert_ne!(card.stored(), before);
        assert_eq!(*card.card().to_bytes(), card.stored());
    }

    #[test]
    fn removed_card_loses_channels() {
        let (mut card, mut rng) = faulty(&[Some(Fault::Removed { commands: 2 })]);
        assert_eq!(card.transmit(&GENERATE, &mut rng), Outcome::Absent);
        assert_eq!(card.transmit(&GENERATE, &mut rng), Outcome::Absent);
        let refused = Outcome::Answer(Response::status(StatusWord::CONDITIONS));
        assert_eq!(card.transmit(&GENERATE, &mut rng), refused);
        assert_eq!(card.counts().get("removed"), Some(&1));
    }

    #[test]
    fn rates_and_seed() {
        let rates = Rates {
            lost: 0.1,
            late: 0.1,
            late_by: Nanos(1),
            flipped: 0.1,
            wrong_status: 0.1,
            removed: 0.05,
            reset: 0.1,
            power_cut: 0.1,
        };
        let run = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let card = Card::with_usual_slots(Settings::default(), &mut rng).unwrap();
            let mut faulty = FaultyCard::new(card, Plan::Rates(rates), seed);
            for _ in 0..4_000 {
                faulty.transmit(&[0x80, 0x84, 0, 0, 8], &mut rng);
            }
            faulty.counts().clone()
        };
        let counts = run(3);
        assert_eq!(counts, run(3));
        assert_ne!(counts, run(4));
        assert_eq!(counts.len(), 8);
        // About 3800 commands are drawn for; 0.1 of them with a standard deviation of 18.5.
        assert!(counts["lost answer"].abs_diff(380) < 90, "{counts:?}");
    }
}

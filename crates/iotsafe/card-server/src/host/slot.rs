// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One command at the card: on the channel of its client, with what it changed on the disk before
//! its answer leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warifu_card::faults::{FaultyCard, Outcome};
use warifu_card::timing::Timing;
use warifu_card::{Reset, Response, StatusWord};
use warifu_model::Nanos;
use warifu_os::clock;
use zeroize::Zeroizing;

use super::{Faults, Reply, load, system_random};
use crate::LOG;
use crate::channels::{self, Channels, ClientId, Then};
use crate::error::ServerError;
use crate::store::Store;

/// Memory failure (ISO 7816-4 section 5.6): the change could not be written.
const MEMORY_FAILURE: StatusWord = StatusWord(0x6581);

/// The card, and all that its state depends on.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) card: FaultyCard,
    pub(super) faults: Faults,
    /// What is on the disk.
    pub(super) saved: Zeroizing<Vec<u8>>,
    pub(super) store: Store,
    pub(super) channels: Channels,
    pub(super) timing: Option<Timing>,
}

impl Slot {
    pub(super) fn transmit(
        &mut self,
        id: ClientId,
        apdu: &[u8],
        received: Nanos,
    ) -> (Reply, Option<Nanos>) {
        let (before, sent, then) = match self.channels.plan(id, apdu) {
            channels::Plan::Answer(sw) => {
                let response = Response::status(sw);
                let due = self.due(received, apdu, &response);
                return (Reply::Answer(response.to_bytes()), due);
            }
            channels::Plan::Send { before, apdu, then } => (before, apdu, then),
        };
        if let Some(open) = before {
            match self.carry_out(&open) {
                Outcome::Answer(response) | Outcome::Late { response, .. }
                    if !response.sw.is_error() => {}
                other => {
                    self.channels.settle_refused(id);
                    return self.reply(received, &open, other);
                }
            }
        }
        let outcome = self.carry_out(&sent);
        if let Outcome::Answer(response) | Outcome::Late { response, .. } = &outcome {
            self.channels.settle(id, then, response.sw);
        } else if outcome == Outcome::Lost && then != Then::Nothing {
            // It was carried out, so the card's channel is what the client asked for.
            self.channels.settle(id, then, StatusWord::OK);
        }
        self.reply(received, &sent, outcome)
    }

    /// Passes a command to the card and stores what it changed. A panic loses the command.
    fn carry_out(&mut self, apdu: &[u8]) -> Outcome {
        let card = &mut self.card;
        let _ = card.take_dirty(); // of the command before
        let mut rng = system_random();
        let outcome = catch_unwind(AssertUnwindSafe(|| card.transmit(apdu, &mut rng)));
        let Ok(outcome) = outcome else {
            LOG.line("the card panicked at a command and was reloaded");
            self.restore();
            return Outcome::Answer(Response::status(StatusWord::UNKNOWN));
        };
        if let Err(error) = self.save() {
            LOG.line(&error);
            if self.card.take_dirty() && apdu.get(1) != Some(&warifu_card::ins::VERIFY) {
                self.take_back();
            }
            return Outcome::Answer(Response::status(MEMORY_FAILURE));
        }
        outcome
    }

    /// What a client is told has failed must not come true later: the state of the disk is the
    /// card's again. But a PIN's wrong tries stay counted, and are saved with the next command.
    fn take_back(&mut self) {
        let Ok(mut card) = load(self.store.path(), &self.saved) else { return };
        card.set_pin(self.card.card().settings().pin.clone());
        self.card.replace_card(card);
        self.channels.forget();
    }

    fn save(&mut self) -> Result<(), ServerError> {
        if self.card.stored() != self.saved.as_slice() {
            self.store.save(self.card.stored())?;
            self.saved = Zeroizing::new(self.card.stored().to_vec());
        }
        Ok(())
    }

    fn restore(&mut self) {
        if let Ok(card) = load(self.store.path(), &self.saved) {
            let Faults { plan, seed } = self.faults.clone();
            self.card = FaultyCard::new(card, plan, seed);
        }
        self.channels.forget();
    }

    fn reply(&mut self, received: Nanos, apdu: &[u8], outcome: Outcome) -> (Reply, Option<Nanos>) {
        match outcome {
            Outcome::Answer(response) => {
                let due = self.due(received, apdu, &response);
                (Reply::Answer(response.to_bytes()), due)
            }
            Outcome::Late { response, by } => {
                let due = self.due(received, apdu, &response).unwrap_or_else(clock::now);
                (Reply::Answer(response.to_bytes()), Some(Nanos(due.0.saturating_add(by.0))))
            }
            Outcome::Lost => (Reply::Lost, None),
            Outcome::Absent => {
                self.channels.forget();
                (Reply::Absent, None)
            }
            Outcome::Reset => {
                self.channels.forget();
                (Reply::Reset, None)
            }
        }
    }

    fn due(&mut self, received: Nanos, apdu: &[u8], response: &Response) -> Option<Nanos> {
        self.timing.as_mut().map(|timing| timing.deadline(received, apdu, response))
    }

    /// Takes a client's channels back.
    pub(super) fn release(&mut self, id: ClientId) {
        let closing = self.channels.release(id);
        if self.channels.is_idle() {
            // Nobody is left to be harmed: selection, sessions, PIN and volatile keys go.
            self.card.reset(Reset::Warm);
            self.channels.forget();
        } else {
            for apdu in closing {
                self.carry_out(&apdu);
            }
        }
    }
}

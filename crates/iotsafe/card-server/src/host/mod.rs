// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One card and its state file, shared by every way in.
//!
//! Commands are carried out one at a time, in the order in which they came. What a command changed
//! is on the disk before its answer leaves, and the timing model's deadline is waited for after
//! that, so that the disk's time is part of the card's.

mod slot;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use getrandom::SysRng;
use rand_core::UnwrapErr;
use warifu_card::faults::{FaultyCard, Plan};
use warifu_card::timing::Timing;
use warifu_card::{ATR, Card};
use warifu_model::Nanos;
use warifu_os::{TurnQueue, clock};

use self::slot::Slot;
use crate::channels::{Channels, ClientId};
use crate::error::ServerError;
use crate::store::{self, Store};

/// How often a command is tried again that finds every channel held by others, and how long after:
/// of a client that has just gone, nobody may have noticed it yet.
const FULL_TRIES: u32 = 10;
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// What a client gets for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The response APDU.
    Answer(Vec<u8>),
    /// No answer, and none to come.
    Lost,
    /// The card is out of its reader.
    Absent,
    /// The card was reset before it could answer: no channel is open any more.
    Reset,
}

/// How the card behaves beside answering.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// When answers are due; as soon as they are there by default.
    pub timing: Option<Timing>,
    /// What goes wrong; nothing by default.
    pub faults: Option<Faults>,
}

/// Faults with their seed.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Which commands go wrong, and how.
    pub plan: Plan,
    /// Decides where and which bits.
    pub seed: u64,
}

/// The card, its state file, and who is at it.
#[derive(Debug)]
pub struct Host {
    turns: TurnQueue,
    slot: Mutex<Slot>,
    clients: AtomicU64,
}

impl Host {
    /// Takes over a state file.
    ///
    /// # Errors
    /// Those of [`Store::lock`] and [`store::read`]; [`ServerError::Corrupt`].
    pub fn open(path: &Path, behaviour: Behaviour) -> Result<Host, ServerError> {
        // Without a card there is no folder to lock anything in.
        store::read(path)?;
        let store = Store::lock(path)?;
        let saved = store::read(path)?;
        let card = load(path, &saved)?;
        let faults = behaviour
            .faults
            .unwrap_or(Faults { plan: Plan::Script(std::collections::VecDeque::new()), seed: 0 });
        let slot = Slot {
            card: FaultyCard::new(card, faults.plan.clone(), faults.seed),
            faults,
            saved,
            store,
            channels: Channels::default(),
            timing: behaviour.timing,
        };
        Ok(Host { turns: TurnQueue::default(), slot: Mutex::new(slot), clients: AtomicU64::new(0) })
    }

    /// A new client, with no channel but its basic one.
    #[must_use]
    pub fn client(self: &Arc<Self>) -> Client {
        let id = self.clients.fetch_add(1, Ordering::Relaxed);
        Client { host: Arc::clone(self), id }
    }

    /// Waits until no change is on its way to the disk, and lets nothing begin any more: what
    /// follows must be the end of the process.
    pub fn halt(&self) {
        std::mem::forget(self.slot());
    }

    /// How often each fault happened, by name.
    #[must_use]
    pub fn fault_counts(&self) -> Vec<(&'static str, u64)> {
        self.slot().card.counts().iter().map(|(name, count)| (*name, *count)).collect()
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // A panic in the card is caught and the card loaded anew, so the slot is whole.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the card of a state.
///
/// # Errors
/// [`ServerError::Corrupt`], which names the file.
pub fn load(path: &Path, state: &[u8]) -> Result<Card, ServerError> {
    Card::from_bytes(state)
        .map_err(|error| ServerError::Corrupt { path: path.to_owned(), why: error.to_string() })
}

/// The system's randomness, as the card takes it.
#[must_use]
pub fn system_random() -> UnwrapErr<SysRng> {
    UnwrapErr(SysRng)
}

/// One who sends commands; its channels are closed when it is dropped.
#[derive(Debug)]
pub struct Client {
    host: Arc<Host>,
    id: ClientId,
}

impl Client {
    /// Carries out a command that came in at `received`; returns when its answer is due.
    pub fn transmit(&self, apdu: &[u8], received: Nanos) -> Reply {
        let mut turn = self.host.turns.acquire();
        for _ in 0..FULL_TRIES {
            if !self.host.slot().channels.is_full(self.id, apdu) {
                break;
            }
            drop(turn);
            std::thread::sleep(FULL_PAUSE);
            turn = self.host.turns.acquire();
        }
        let (reply, due) = self.host.slot().transmit(self.id, apdu, received);
        if let Some(due) = due {
            clock::sleep_until(due);
        }
        drop(turn);
        reply
    }

    /// Ends this client's session: closes its channels and gives the answer to reset. The card
    /// itself is reset if no other client holds a channel.
    pub fn reset(&self) -> Vec<u8> {
        let _turn = self.host.turns.acquire();
        self.host.slot().release(self.id);
        ATR.to_vec()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _turn = self.host.turns.acquire();
        self.host.slot().release(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use warifu_card::faults::Fault;
    use warifu_card::object::{KeyAttributes, KeyType, Name, access};
    use warifu_card::{KeySource, Settings};

    const SELECT: [u8; 12] = [0x00, 0xa4, 0x04, 0x0c, 0x07, 0xa0, 0, 0, 5, 0x59, 0, 0x10];
    const RANDOM: [u8; 5] = [0x80, 0x84, 0x00, 0x00, 0x08];
    /// Into the ephemeral pair's place, which is not stored.
    const GENERATE: [u8; 9] = [0x80, 0xb9, 0x00, 0x00, 0x03, 0x84, 0x01, 0x04, 0x00];

    fn made(folder: &tempfile::TempDir) -> std::path::PathBuf {
        let path = folder.path().join("card.state");
        let card = Card::with_usual_slots(Settings::default(), &mut system_random()).unwrap();
        Store::lock(&path).unwrap().save(&card.to_bytes()).unwrap();
        path
    }

    fn host(folder: &tempfile::TempDir, faults: &[Option<Fault>]) -> Arc<Host> {
        let plan = Plan::Script(faults.iter().copied().collect::<VecDeque<_>>());
        let faults = Some(Faults { plan, seed: 1 });
        Arc::new(Host::open(&made(folder), Behaviour { timing: None, faults }).unwrap())
    }

    fn sw(reply: &Reply) -> u16 {
        let Reply::Answer(bytes) = reply else { panic!("{reply:?}") };
        u16::from_be_bytes(*bytes.last_chunk().unwrap())
    }

    #[test]
    fn two_clients_have_separate_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let host = host(&folder, &[]);
        let (one, other) = (host.client(), host.client());
        assert_eq!(sw(&one.transmit(&SELECT, Nanos(0))), 0x9000);
        assert_eq!(sw(&one.transmit(&GENERATE, Nanos(0))) >> 8, 0x90);
        assert_eq!(sw(&other.transmit(&RANDOM, Nanos(0))), 0x6985, "it has selected nothing");
        assert_eq!(sw(&other.transmit(&SELECT, Nanos(0))), 0x9000);
        assert_eq!(other.reset(), ATR);
        drop(other);
        assert_eq!(sw(&one.transmit(&RANDOM, Nanos(0))), 0x9000, "not reset by the other");
        one.reset();
        assert_eq!(sw(&one.transmit(&RANDOM, Nanos(0))), 0x6985);
    }

    #[test]
    fn unsaved_changes_are_undone_except_wrong_pins() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(&folder);
        let pin = warifu_card::Pin::new("1234", warifu_card::PinScope::Nothing, 3);
        let mut card = load(&path, &store::read(&path).unwrap()).unwrap();
        card.set_pin(pin);
        let name = Name::slot(0x20, "", access::READ | access::UPDATE);
        let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
        card.add_key_pair(name, attributes, KeySource::Generate, &mut system_random()).unwrap();
        Store::lock(&path).unwrap().save(&card.to_bytes()).unwrap();
        let host = Arc::new(Host::open(&path, Behaviour { timing: None, faults: None }).unwrap());
        let client = host.client();
        let key = || *host.slot().card.card().export_public_key(&[0x20]).unwrap().bytes();
        let tries = || host.slot().card.card().settings().pin.as_ref().unwrap().tries_left();
        let generate = [0x80, 0xb9, 0, 0, 3, 0x84, 1, 0x20, 0];
        let wrong = [0, 0x20, 0, 1, 8, b'9', b'9', b'9', b'9', 0xff, 0xff, 0xff, 0xff];
        let before = key();
        assert_eq!(sw(&client.transmit(&SELECT, Nanos(0))), 0x9000);
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(sw(&client.transmit(&generate, Nanos(0))), 0x6581);
        assert_eq!(key(), before);
        client.transmit(&SELECT, Nanos(0));
        assert_eq!(sw(&client.transmit(&wrong, Nanos(0))), 0x6581);
        client.transmit(&SELECT, Nanos(0));
        assert_eq!(sw(&client.transmit(&generate, Nanos(0))), 0x6581);
        assert_eq!((key(), tries()), (before, 2));
        std::fs::create_dir(folder.path()).unwrap();
        assert_eq!(sw(&client.transmit(&SELECT, Nanos(0))), 0x9000);
        let kept = load(&path, &store::read(&path).unwrap()).unwrap();
        assert_eq!(*kept.export_public_key(&[0x20]).unwrap().bytes(), before);
        assert_eq!(kept.settings().pin.as_ref().unwrap().tries_left(), 2);
        assert_eq!(sw(&client.transmit(&generate, Nanos(0))) >> 8, 0x90);
        assert_ne!(key(), before);
    }

    #[test]
    fn faults_and_channels_after_reset() {
        let folder = tempfile::tempdir().unwrap();
        let faults = [
            None,
            Some(Fault::LostAnswer),
            Some(Fault::Removed { commands: 1 }),
            None,
            None,
            Some(Fault::Reset),
            None,
        ];
        let host = host(&folder, &faults);
        let client = host.client();
        assert_eq!(sw(&client.transmit(&SELECT, Nanos(0))), 0x9000);
        assert_eq!(client.transmit(&RANDOM, Nanos(0)), Reply::Lost);
        assert_eq!(client.transmit(&RANDOM, Nanos(0)), Reply::Absent);
        assert_eq!(sw(&client.transmit(&RANDOM, Nanos(0))), 0x6985);
        assert_eq!(sw(&client.transmit(&SELECT, Nanos(0))), 0x9000);
        assert_eq!(client.transmit(&RANDOM, Nanos(0)), Reply::Reset);
        assert_eq!(sw(&client.transmit(&RANDOM, Nanos(0))), 0x6985);
    }

    #[test]
    fn corrupt_state_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(&folder);
        let mut bytes = store::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = Host::open(&path, Behaviour::default()).unwrap_err().to_string();
        assert!(error.contains("card.state") && error.contains("was not changed"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), *bytes);
    }
}

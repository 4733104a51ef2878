// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session keys: the sender's, which is renewed after so many blocks, and those that a receiver
//! remembers (DDS Security 1.1, section 9.5.3.3.3).

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::algorithm::{Kind, MAX_NONCE_BYTES};
use crate::cipher::Cipher;
use crate::error::Result;
use crate::fork::Generation;
use crate::keys::MasterKey;
use crate::random::Random;
use crate::wire::HeaderOctets;

/// Bytes of a cipher's block; the unit of `max_blocks_per_session` (section 9.5.3.3.3).
const BLOCK_BYTES: u64 = 16;

/// A master key in use by its sender.
pub struct Sender {
    /// What it was made from.
    pub master: Arc<MasterKey>,
    max_blocks: u64,
    generation: Generation,
    first: First,
    state: Mutex<State>,
}

/// One message's cipher and nonce, given out once.
pub struct Ticket {
    /// Keyed for the session.
    pub cipher: Arc<Cipher>,
    /// What it does.
    pub kind: Kind,
    /// What the message begins with; the nonce is in it.
    pub header: HeaderOctets,
}

struct State {
    session_id: u32,
    cipher: Arc<Cipher>,
    blocks: u64,
    /// Of the latest message.
    header: HeaderOctets,
    /// The end of its nonce. Counts on across sessions, so that no nonce returns even when session
    /// ids have wrapped; what a nonce has between the session's id and it stays as it was drawn.
    count: u64,
}

/// Where a sender's nonces began.
struct First {
    session_id: u32,
    /// The end of the count.
    count: u64,
}

impl Sender {
    /// Begins at a random session and a random count.
    pub fn new(master: Arc<MasterKey>, max_blocks: u64, random: &dyn Random) -> Result<Self> {
        let generation = Generation::watched()?;
        let mut nonce = [0; MAX_NONCE_BYTES];
        let nonce = &mut nonce[..master.kind.aead.nonce_bytes()];
        random.fill(nonce)?;
        let header = HeaderOctets::new(master.kind, master.id, nonce);
        let session_id = session_id(nonce);
        let count = count(nonce);
        let cipher = Arc::new(master.session(session_id)?);
        let first = First { session_id, count };
        let state = Mutex::new(State { session_id, cipher, blocks: 0, header, count });
        Ok(Self { master, max_blocks, generation, first, state })
    }

    /// The next nonce, for a message of `bytes`, in a new session where the old one is used up.
    /// Nothing is encrypted under the lock.
    #[inline]
    pub fn ticket(&self, bytes: usize) -> Result<Ticket> {
        // Before the lock, which a thread of the parent's may have had and no one gives back here.
        self.generation.check()?;
        // One more for the tag, so that empty messages count, too.
        let blocks = (bytes as u64).div_ceil(BLOCK_BYTES) + 1;
        let mut guard = self.lock();
        let state = &mut *guard;
        let used = state.blocks.saturating_add(blocks);
        if used > self.max_blocks && state.blocks > 0 {
            self.begin_session(state)?;
            state.blocks = blocks;
        } else {
            state.blocks = used;
        }
        state.count = state.count.wrapping_add(1);
        state.header.set_count(state.count);
        let cipher = Arc::clone(&state.cipher);
        Ok(Ticket { cipher, kind: self.master.kind, header: state.header })
    }

    #[cold]
    fn begin_session(&self, state: &mut State) -> Result<()> {
        let session_id = state.session_id.wrapping_add(1);
        state.cipher = Arc::new(self.master.session(session_id)?);
        state.session_id = session_id;
        state.header.set_session_id(session_id);
        Ok(())
    }

    /// Whether this sender may have given out that nonce: it lies between its first and its latest.
    pub fn has_used(&self, nonce: &[u8]) -> bool {
        let state = self.lock();
        let first = &self.first;
        session_id(nonce).wrapping_sub(first.session_id)
            <= state.session_id.wrapping_sub(first.session_id)
            && count(nonce).wrapping_sub(first.count) <= state.count.wrapping_sub(first.count)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in there can be left half done by a panic but a count that has gone on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Session id and count.
    pub fn nonce(&self) -> &[u8] {
        self.header.nonce()
    }

    /// The session that the nonce names.
    pub fn session_id(&self) -> u32 {
        session_id(self.nonce())
    }
}

/// The first four octets of a nonce.
fn session_id(nonce: &[u8]) -> u32 {
    nonce.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
}

/// The last eight octets of a nonce.
fn count(nonce: &[u8]) -> u64 {
    nonce.last_chunk().map_or(0, |last| u64::from_be_bytes(*last))
}

/// One session of a sender's, as its receiver knows it.
pub struct Session {
    /// Keyed for it.
    pub cipher: Cipher,
    id: u32,
    seen: Mutex<Seen>,
}

/// The nonces of the latest messages: at least [`Seen::ENOUGH`] of them, in two halves of which the
/// older is given up when the younger is full.
#[derive(Default)]
struct Seen {
    younger: HashSet<[u8; Seen::SUFFIX_BYTES]>,
    older: HashSet<[u8; Seen::SUFFIX_BYTES]>,
}

impl Seen {
    /// A message that came later than so many others is one that RTPS itself takes for old, by its
    /// sequence number or count.
    const ENOUGH: usize = 512;
    /// Of a nonce, its end: Fast DDS fills the eight octets behind the session's id at random, all
    /// others count.
    const SUFFIX_BYTES: usize = 8;
}

impl Session {
    const fn new(id: u32, cipher: Cipher, seen: Mutex<Seen>) -> Self {
        Self { cipher, id, seen }
    }

    /// Whether no message with this nonce has come before. To be asked only about messages that are
    /// authentic, so that nobody else can fill the memory or bar a nonce.
    pub fn is_new(&self, nonce: &[u8]) -> bool {
        let Some(suffix) = nonce.last_chunk() else { return false };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.older.contains(suffix) || !seen.younger.insert(*suffix) {
            return false;
        }
        if seen.younger.len() >= Seen::ENOUGH {
            // Both keep their memory.
            let Seen { younger, older } = &mut *seen;
            mem::swap(younger, older);
            younger.clear();
        }
        true
    }
}

/// A key's latest sessions, by their ids. Only those of messages that were authentic are
/// remembered, so that nobody else can push them out.
///
/// A sender's ids grow by one from session to session, and wrap (DDS Security 1.1, section
/// 9.5.3.3.3; Cyclone DDS 0.10 and Fast DDS 2.9 do so). So what lies behind all those remembered,
/// when there is room for no more, has been here before or comes too late.
pub struct Sessions(RwLock<Vec<Arc<Session>>>);

/// Around a change of session messages of the old and the new one come mixed, and threads send
/// later than they encrypt. Fast DDS begins a session every 32 messages, of which these are as many
/// as [`Seen::ENOUGH`].
const REMEMBERED: usize = 16;

impl Sessions {
    /// Remembers none.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// One of those remembered.
    pub fn known(&self, id: u32) -> Option<Arc<Session>> {
        let sessions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().find(|session| session.id == id).cloned()
    }

    /// A session, with a cipher made by `derive` if it is not among those remembered.
    pub fn find(&self, id: u32, derive: impl FnOnce() -> Result<Cipher>) -> Result<Arc<Session>> {
        match self.known(id) {
            Some(known) => Ok(known),
            None => Ok(Arc::new(Session::new(id, derive()?, Mutex::default()))),
        }
    }

    /// For the next message. Gives the session that is remembered: another thread may have been
    /// faster. Nothing if it lies behind all of them.
    pub fn remember(&self, session: &Arc<Session>) -> Option<Arc<Session>> {
        let known = self.known(session.id);
        if known.is_some() {
            return known;
        }
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.iter().find(|known| known.id == session.id) {
            return Some(Arc::clone(known));
        }
        // The latest stands first, and is nearly always the one.
        let older = sessions.iter().position(|known| is_behind(known.id, session.id));
        let place = older.unwrap_or(sessions.len());
        if place == REMEMBERED {
            return None;
        }
        sessions.truncate(REMEMBERED - 1);
        sessions.insert(place, Arc::clone(session));
        Some(Arc::clone(session))
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether one session's id comes before another's, in a circle of 2^32.
const fn is_behind(id: u32, other: u32) -> bool {
    id.wrapping_sub(other).cast_signed() < 0
}

/// A master key in use by its receiver.
pub struct Receiver {
    /// What the sender's token held.
    pub master: MasterKey,
    /// For messages.
    pub sessions: Sessions,
    /// For receiver-specific tags.
    pub receiver_sessions: Sessions,
    /// Of the key under which keys are exchanged alone.
    pub exchange: Option<Exchange>,
}

/// What is peculiar to a key that both sides send with, each with a writer and a reader.
pub struct Exchange {
    /// Of the peer's reader, which counts for itself: Fast DDS begins both at 0.
    pub readers_sessions: Sessions,
    /// Our own, whose messages anyone can send back to us.
    pub ours: [Arc<Sender>; 2],
}

impl Receiver {
    /// Remembers no session yet.
    pub const fn new(master: MasterKey) -> Self {
        Self {
            master,
            sessions: Sessions::new(),
            receiver_sessions: Sessions::new(),
            exchange: None,
        }
    }

    /// Of the key under which keys are exchanged.
    pub const fn of_exchange(master: MasterKey, ours: [Arc<Sender>; 2]) -> Self {
        Self {
            master,
            sessions: Sessions::new(),
            receiver_sessions: Sessions::new(),
            exchange: Some(Exchange { readers_sessions: Sessions::new(), ours }),
        }
    }

    /// The session of that id, if need be a new one.
    pub fn session(&self, id: u32) -> Result<Arc<Session>> {
        let of_reader = || self.exchange.as_ref()?.readers_sessions.known(id);
        match self.sessions.known(id).or_else(of_reader) {
            Some(known) => Ok(known),
            None => Ok(Arc::new(Session::new(id, self.master.session(id)?, Mutex::default()))),
        }
    }

    /// Those among which a message counts that the peer's reader, or writer, has sent.
    pub fn sessions_of(&self, is_from_reader: bool) -> &Sessions {
        match &self.exchange {
            Some(exchange) if is_from_reader => &exchange.readers_sessions,
            _ => &self.sessions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Aead;

    fn session(id: u32) -> Arc<Session> {
        let cipher = Cipher::new(Aead::Aegis128L, &[1; 16]).expect("a key of 16 bytes");
        Arc::new(Session::new(id, cipher, Mutex::default()))
    }

    #[test]
    fn sessions_behind_those_remembered_are_refused_across_the_wrap() {
        const COUNT: u32 = 40;
        for first in [0, 7, u32::MAX - 30, u32::MAX, 0x7fff_fff0] {
            let sessions = Sessions::new();
            for step in 0..COUNT {
                let new = session(first.wrapping_add(step));
                assert!(sessions.remember(&new).is_some(), "{first} + {step}");
            }
            for step in 0..COUNT {
                let again = sessions.remember(&session(first.wrapping_add(step)));
                let is_remembered = (COUNT - step) as usize <= REMEMBERED;
                assert_eq!(again.is_some(), is_remembered, "{first} + {step}");
            }
        }
    }

    #[test]
    fn a_late_session_takes_its_place_while_there_is_room() {
        let sessions = Sessions::new();
        // 100, 102, 104 ..
        for step in (0..REMEMBERED as u32).rev() {
            assert!(sessions.remember(&session(100 + 2 * step)).is_some());
        }
        assert!(sessions.remember(&session(99)).is_none(), "behind 100");
        assert!(sessions.remember(&session(101)).is_some(), "behind 102, and ahead of 100");
        assert!(sessions.remember(&session(100)).is_none(), "101 has taken its place");
        assert!(sessions.known(102).is_some());
    }
}

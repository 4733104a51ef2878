// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session keys: the sender's, which is renewed after so many blocks, and those that a receiver
//! remembers (DDS Security 1.1, section 9.5.3.3.3).

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::algorithm::MAX_NONCE_BYTES;
use crate::cipher::Cipher;
use crate::error::Result;
use crate::keys::MasterKey;
use crate::random::Random;

/// Bytes of a cipher's block; the unit of `max_blocks_per_session` (section 9.5.3.3.3).
const BLOCK_BYTES: u64 = 16;

/// Of the nonce, what is the session's id.
const SESSION_ID_BYTES: usize = 4;

/// A master key in use by its sender.
pub struct Sender {
    /// What it was made from.
    pub master: Arc<MasterKey>,
    max_blocks: u64,
    state: Mutex<State>,
}

/// One message's cipher and nonce, given out once.
pub struct Ticket {
    /// Keyed for the session.
    pub cipher: Arc<Cipher>,
    /// The session that the nonce names.
    pub session_id: u32,
    nonce: [u8; MAX_NONCE_BYTES],
    nonce_bytes: usize,
}

struct State {
    session_id: u32,
    cipher: Arc<Cipher>,
    blocks: u64,
    /// Counts on across sessions, so that no nonce returns even when session ids have wrapped.
    suffix: [u8; MAX_NONCE_BYTES - SESSION_ID_BYTES],
}

impl Sender {
    /// Begins at a random session and a random count.
    pub fn new(master: Arc<MasterKey>, max_blocks: u64, random: &dyn Random) -> Result<Self> {
        let mut id = [0; 4];
        random.fill(&mut id)?;
        let session_id = u32::from_be_bytes(id);
        let mut suffix = [0; MAX_NONCE_BYTES - SESSION_ID_BYTES];
        random.fill(&mut suffix)?;
        let cipher = Arc::new(master.session(session_id)?);
        let state = Mutex::new(State { session_id, cipher, blocks: 0, suffix });
        Ok(Self { master, max_blocks, state })
    }

    /// The next nonce, for a message of `bytes`, in a new session where the old one is used up.
    /// Nothing is encrypted under the lock.
    pub fn ticket(&self, bytes: usize) -> Result<Ticket> {
        // One more for the tag, so that empty messages count, too.
        let blocks = (bytes as u64).div_ceil(BLOCK_BYTES) + 1;
        let mut state = self.lock();
        if state.blocks.saturating_add(blocks) > self.max_blocks && state.blocks > 0 {
            let session_id = state.session_id.wrapping_add(1);
            state.cipher = Arc::new(self.master.session(session_id)?);
            state.session_id = session_id;
            state.blocks = 0;
        }
        state.blocks = state.blocks.saturating_add(blocks);
        let nonce_bytes = self.master.kind.aead.nonce_bytes();
        let count = &mut state.suffix[..nonce_bytes - SESSION_ID_BYTES];
        increment(count);
        let mut nonce = [0; MAX_NONCE_BYTES];
        nonce[SESSION_ID_BYTES..nonce_bytes].copy_from_slice(count);
        nonce[..SESSION_ID_BYTES].copy_from_slice(&state.session_id.to_be_bytes());
        let session_id = state.session_id;
        Ok(Ticket { cipher: Arc::clone(&state.cipher), session_id, nonce, nonce_bytes })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in there can be left half done by a panic but a count that has gone on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Session id and count.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce[..self.nonce_bytes]
    }
}

/// Adds one to a number of that many octets, big-endian.
fn increment(number: &mut [u8]) {
    for octet in number.iter_mut().rev() {
        *octet = octet.wrapping_add(1);
        if *octet != 0 {
            break;
        }
    }
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

/// A key's latest sessions. Only those of messages that were authentic are remembered, so that
/// nobody else can push them out.
pub struct Sessions(RwLock<Vec<Arc<Session>>>);

/// Around a change of session messages of the old and the new one come mixed.
const REMEMBERED: usize = 4;

impl Sessions {
    /// Remembers none.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// A session, with a cipher made by `derive` if it is not among those remembered.
    pub fn find(&self, id: u32, derive: impl FnOnce() -> Result<Cipher>) -> Result<Arc<Session>> {
        let sessions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.iter().find(|session| session.id == id) {
            return Ok(Arc::clone(known));
        }
        drop(sessions);
        Ok(Arc::new(Session::new(id, derive()?, Mutex::default())))
    }

    /// For the next message. Gives the session that is remembered: another thread may have been
    /// faster.
    pub fn remember(&self, session: Arc<Session>) -> Arc<Session> {
        // The latest stands first, and is nearly always the one.
        let is_first = |sessions: &[Arc<Session>]| {
            sessions.first().is_some_and(|first| Arc::ptr_eq(first, &session))
        };
        if is_first(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return session;
        }
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.iter().find(|known| known.id == session.id) {
            return Arc::clone(known);
        }
        sessions.truncate(REMEMBERED - 1);
        sessions.insert(0, Arc::clone(&session));
        session
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

/// A master key in use by its receiver.
pub struct Receiver {
    /// What the sender's token held.
    pub master: MasterKey,
    /// For messages.
    pub sessions: Sessions,
    /// For receiver-specific tags.
    pub receiver_sessions: Sessions,
}

impl Receiver {
    /// Remembers no session yet.
    pub const fn new(master: MasterKey) -> Self {
        Self { master, sessions: Sessions::new(), receiver_sessions: Sessions::new() }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of the library in one process: its slots and its sessions.

use std::collections::BTreeMap;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cryptoki_sys::*;

use crate::object::{Kind, Object};
use crate::rv::{Result, Rv};
use crate::session::Session;
use crate::slot::{Slot, lock};
use crate::trace::Trace;

/// One process's library.
pub struct Library {
    pid: u32,
    slots: Vec<Arc<Slot>>,
    sessions: Mutex<BTreeMap<CK_SESSION_HANDLE, Arc<Session>>>,
    last_session: AtomicU64,
    trace: Option<Arc<Trace>>,
}

impl Library {
    pub(crate) fn new(slots: Vec<Arc<Slot>>, trace: Option<Arc<Trace>>) -> Library {
        Library {
            pid: process::id(),
            slots,
            sessions: Mutex::default(),
            last_session: AtomicU64::new(0),
            trace,
        }
    }

    /// Whether it belongs to this process, rather than to one that has forked it.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == process::id()
    }

    /// Takes over which slots the parent process has used. Of its library nothing but these flags
    /// may be touched: threads that this process does not have may hold its locks.
    pub(crate) fn continue_from(&self, parents: &Library) {
        for slot in &self.slots {
            let mut of_parent = parents.slots.iter().filter(|one| one.location == slot.location);
            if of_parent.any(|one| one.was_used()) {
                slot.mark_used();
            }
        }
    }

    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    /// Ends all sessions and gives the cards their channels back.
    pub(crate) fn end(&self) {
        lock(&self.sessions).clear();
        // C_GetTokenInfo opens a channel without a session.
        self.slots.iter().for_each(|slot| slot.release());
    }

    /// The slots.
    #[must_use]
    pub fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// A slot.
    ///
    /// # Errors
    /// CKR_SLOT_ID_INVALID.
    pub fn slot(&self, id: CK_SLOT_ID) -> Result<&Arc<Slot>> {
        self.slots.iter().find(|slot| slot.id == id).ok_or(Rv(CKR_SLOT_ID_INVALID))
    }

    /// A session.
    ///
    /// # Errors
    /// CKR_SESSION_HANDLE_INVALID.
    pub fn session(&self, handle: CK_SESSION_HANDLE) -> Result<Arc<Session>> {
        let session = lock(&self.sessions).get(&handle).cloned();
        session.ok_or(Rv(CKR_SESSION_HANDLE_INVALID))
    }

    /// How many sessions a slot has, and how many of them may write.
    #[must_use]
    pub fn session_counts(&self, slot: CK_SLOT_ID) -> (CK_ULONG, CK_ULONG) {
        let sessions = lock(&self.sessions);
        let of_slot = sessions.values().filter(|session| session.slot.id == slot);
        of_slot
            .fold((0, 0), |(all, rw), session| (all + 1, rw + CK_ULONG::from(session.read_write)))
    }

    pub(crate) fn add_session(&self, slot: &Arc<Slot>, read_write: bool) -> CK_SESSION_HANDLE {
        let handle = self.last_session.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Session::new(handle, Arc::clone(slot), read_write);
        lock(&self.sessions).insert(handle, Arc::new(session));
        handle
    }

    /// Closes a session.
    ///
    /// # Errors
    /// CKR_SESSION_HANDLE_INVALID.
    pub fn close_session(&self, handle: CK_SESSION_HANDLE) -> Result {
        let closed = lock(&self.sessions).remove(&handle);
        let slot = &closed.ok_or(Rv(CKR_SESSION_HANDLE_INVALID))?.slot;
        slot.end_of_session(handle, self.session_counts(slot.id).0 == 0);
        Ok(())
    }

    /// The sessions of a slot.
    pub(crate) fn sessions_of(&self, slot: &Slot) -> Vec<Arc<Session>> {
        let sessions = lock(&self.sessions);
        sessions.values().filter(|session| session.slot.id == slot.id).cloned().collect()
    }

    /// Ends the signatures with a private key that the card is replacing.
    pub(crate) fn end_signatures_with(&self, slot: &Slot, card_id: &[u8]) {
        let is_replaced =
            |key: &Object| matches!(&key.kind, Kind::PrivateKey(key) if key.card_id == card_id);
        for session in self.sessions_of(slot) {
            let mut operations = session.operations();
            if operations.sign.as_ref().is_some_and(|operation| is_replaced(&operation.key)) {
                operations.sign = None;
            }
        }
    }

    /// Ends what a logout ends: operations with private keys, in every session of the slot.
    pub(crate) fn end_private_operations(&self, slot: &Slot) {
        for session in self.sessions_of(slot) {
            let mut operations = session.operations();
            operations.find = None;
            if operations.sign.as_ref().is_some_and(|operation| operation.key.private) {
                operations.sign = None;
            }
        }
    }
}

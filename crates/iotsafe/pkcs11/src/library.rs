// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The library as one process has it: initialised or not, its slots, its sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use cryptoki_sys::*;
use warifu_iotsafe_client::Token;
use warifu_iotsafe_client::transport::{Exchange, Watch};
use warifu_os::Log;

use crate::config::Config;
use crate::object::{Kind, Object};
use crate::rv::{Result, Rv, fail};
use crate::session::Session;
use crate::slot::{Report, Slot, SlotConfig, lock};
use crate::trace::Trace;

/// What the module tells the person who started the program.
const LOG: Log = Log::new("warifu-pkcs11");

/// The library between C_Initialize and C_Finalize. No lock guards it: after a fork, a lock that
/// another thread held would stay locked in the child for good.
static CURRENT: ArcSwapOption<Library> = ArcSwapOption::const_empty();

/// Stands in for the configured cards, in tests.
static PROVIDER: OnceLock<Provider> = OnceLock::new();

/// Gives a token for each slot, with its configuration.
pub type Provider = Box<dyn Fn() -> Vec<(SlotConfig, Box<dyn Token>)> + Send + Sync>;

/// How long the end of a program may wait for the card.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// One process's library.
pub struct Library {
    pid: u32,
    slots: Vec<Arc<Slot>>,
    sessions: Mutex<BTreeMap<CK_SESSION_HANDLE, Arc<Session>>>,
    last_session: AtomicU64,
    trace: Option<Arc<Trace>>,
}

/// What C_Initialize's arguments come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialiseArgs {
    /// CKF_LIBRARY_CANT_CREATE_OS_THREADS.
    pub no_threads: bool,
}

/// Puts tokens of a test in the place of the configured ones. Works once in a process.
#[doc(hidden)]
pub fn provide(provider: Provider) -> bool {
    PROVIDER.set(provider).is_ok()
}

/// The library, if it is initialised in this process. In a child that has forked it is not
/// (PKCS#11 2.40 section 5.4: the child calls C_Initialize for itself).
///
/// # Errors
/// CKR_CRYPTOKI_NOT_INITIALIZED.
pub fn current() -> Result<Arc<Library>> {
    let library = CURRENT.load_full().filter(|library| library.pid == process::id());
    library.ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}

/// The trace of the library that is there, if any; in a child that has forked, not the parent's.
pub(crate) fn current_trace() -> Option<Arc<Trace>> {
    let library = CURRENT.load();
    let trace = library.as_ref()?.trace.as_ref()?;
    trace.is_of(process::id()).then(|| Arc::clone(trace))
}

/// C_Initialize.
///
/// # Errors
/// CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_NEED_TO_CREATE_THREADS, CKR_GENERAL_ERROR for a
/// configuration that cannot be read.
pub fn initialise(args: InitialiseArgs) -> Result {
    let before = CURRENT.load_full();
    if before.as_ref().is_some_and(|library| library.pid == process::id()) {
        return fail(CKR_CRYPTOKI_ALREADY_INITIALIZED);
    }
    let library = Arc::new(Library::new(args)?);
    let was = CURRENT.compare_and_swap(&before, Some(library));
    let ours = match (&*was, &before) {
        (Some(was), Some(before)) => Arc::ptr_eq(was, before),
        (None, None) => true,
        _ => false,
    };
    if let Some(parents) = before {
        // The parent's: its connections are the parent's to close, its locks may be held by
        // threads that this process does not have. It is left alone, not dropped.
        std::mem::forget(parents);
    }
    if ours { Ok(()) } else { fail(CKR_CRYPTOKI_ALREADY_INITIALIZED) }
}

/// C_Finalize.
///
/// # Errors
/// CKR_CRYPTOKI_NOT_INITIALIZED.
pub fn finalise() -> Result {
    let library = current()?;
    CURRENT.store(None);
    lock(&library.sessions).clear();
    // Asking what a token is opens its channel as well.
    library.slots.iter().for_each(|slot| slot.release());
    Ok(())
}

/// The end of a program that did not call C_Finalize, as those of libp11's engine do not: behind a
/// modem nothing else gives the card its channels back, of which it has few.
pub(crate) fn end_of_process() {
    if let Ok(library) = current() {
        let end = Instant::now() + EXIT_PATIENCE;
        library.slots.iter().for_each(|slot| slot.release_by(end));
    }
}

impl Library {
    fn new(args: InitialiseArgs) -> Result<Library> {
        let trace;
        let report;
        let tokens = match PROVIDER.get() {
            Some(provider) => {
                trace = None;
                report = silent();
                provider()
            }
            None => {
                let config = Config::load().map_err(|error| {
                    LOG.line(error);
                    Rv(CKR_GENERAL_ERROR)
                })?;
                trace = match config.trace.as_deref().map(Trace::open).transpose() {
                    Ok(trace) => trace,
                    Err(error) => {
                        LOG.line(&error);
                        if !error.passes() {
                            return fail(CKR_GENERAL_ERROR);
                        }
                        None
                    }
                };
                let tokens = tokens_of(&config, args, trace.as_ref())?;
                // Of the usual places one is enough.
                let together = if config.explicit { 1 } else { tokens.len() };
                report = if config.quiet { silent() } else { to_stderr(together) };
                tokens
            }
        };
        let slots = tokens.into_iter().enumerate().map(|(id, (config, token))| {
            Arc::new(Slot::new(id as CK_SLOT_ID, config, token, Arc::clone(&report)))
        });
        Ok(Library {
            pid: process::id(),
            slots: slots.collect(),
            sessions: Mutex::default(),
            last_session: AtomicU64::new(0),
            trace,
        })
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

    /// C_CloseSession.
    ///
    /// # Errors
    /// CKR_SESSION_HANDLE_INVALID.
    pub fn close_session(&self, handle: CK_SESSION_HANDLE) -> Result {
        let closed = lock(&self.sessions).remove(&handle);
        let slot = &closed.ok_or(Rv(CKR_SESSION_HANDLE_INVALID))?.slot;
        slot.end_of_session(handle, self.session_counts(slot.id).0 == 0);
        Ok(())
    }

    /// C_CloseAllSessions.
    ///
    /// # Errors
    /// CKR_SLOT_ID_INVALID.
    pub fn close_all_sessions(&self, slot: CK_SLOT_ID) -> Result {
        self.slot(slot)?;
        let of_slot = |session: &Session| session.slot.id == slot;
        let handles: Vec<CK_SESSION_HANDLE> = lock(&self.sessions)
            .values()
            .filter(|session| of_slot(session))
            .map(|session| session.handle)
            .collect();
        for handle in handles {
            // Another thread may have closed it meanwhile.
            let _ = self.close_session(handle);
        }
        Ok(())
    }

    /// What another key in a place of the card ends: signatures with the one before.
    pub(crate) fn end_operations_with(&self, slot: &Slot, card_id: &[u8]) {
        let is_it =
            |key: &Object| matches!(&key.kind, Kind::PrivateKey(key) if key.card_id == card_id);
        for session in self.sessions_of(slot) {
            let mut active = session.active();
            if active.sign.as_ref().is_some_and(|operation| is_it(&operation.key)) {
                active.sign = None;
            }
        }
    }

    fn sessions_of(&self, slot: &Slot) -> Vec<Arc<Session>> {
        let sessions = lock(&self.sessions);
        sessions.values().filter(|session| session.slot.id == slot.id).cloned().collect()
    }

    /// What a logout ends: operations with private keys, in every session of the slot.
    pub(crate) fn end_private_operations(&self, slot: &Slot) {
        for session in self.sessions_of(slot) {
            let mut active = session.active();
            active.find = None;
            if active.sign.as_ref().is_some_and(|operation| operation.key.private) {
                active.sign = None;
            }
        }
    }
}

/// The tokens that a configuration names.
fn tokens_of(
    config: &Config,
    args: InitialiseArgs,
    trace: Option<&Arc<Trace>>,
) -> Result<Vec<(SlotConfig, Box<dyn Token>)>> {
    let needs_thread = config.cards.iter().any(|card| card.needs_thread());
    if args.no_threads && needs_thread && config.explicit {
        return fail(CKR_NEED_TO_CREATE_THREADS);
    }
    let usable = config.cards.iter().filter(|card| !(args.no_threads && card.needs_thread()));
    Ok(usable
        .map(|card| {
            let watch = trace.map(|trace| {
                let trace = Arc::clone(trace);
                Arc::new(move |exchange: &Exchange| trace.exchange(exchange)) as Watch
            });
            let token = card.address.token(card.options.clone(), watch);
            let slot = SlotConfig {
                place: card.address.to_string(),
                label: card.label.clone(),
                card_hashes: card.card_hashes,
                replace_keys: card.replace_keys,
                timeout: config.timeout,
            };
            (slot, token)
        })
        .collect())
}

fn silent() -> Report {
    Arc::new(|_| {})
}

/// Each line once: programs ask again and again. The first `together` of them are one.
fn to_stderr(together: usize) -> Report {
    let said: Mutex<(BTreeSet<String>, Vec<String>)> = Mutex::default();
    Arc::new(move |line| {
        let (said, held) = &mut *lock(&said);
        if said.insert(line.to_owned()) {
            held.push(line.to_owned());
            if said.len() >= together {
                LOG.line(held.join("; "));
                held.clear();
            }
        }
    })
}

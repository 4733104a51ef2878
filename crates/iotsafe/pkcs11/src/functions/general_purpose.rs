// SPDX-License-Identifier: Apache-2.0 OR MIT
//! General-purpose functions (PKCS#11 2.40 section 5.4).

use std::collections::BTreeSet;
use std::process;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use cryptoki_sys::*;
use warifu_iotsafe_client::transport::{Exchange, Watch};
use warifu_iotsafe_client::{Options, Token};
use warifu_os::Log;

use crate::config::Config;
use crate::library::Library;
use crate::rv::{Result, Rv, fail};
use crate::slot::{Report, Reporter, Slot, SlotConfig, lock};
use crate::text::{MANUFACTURER, padded};
use crate::trace::Trace;

/// PKCS#11 2.40.
pub const VERSION_2_40: CK_VERSION = CK_VERSION { major: 2, minor: 40 };
/// PKCS#11 3.0.
pub const VERSION_3_0: CK_VERSION = CK_VERSION { major: 3, minor: 0 };

/// The module's messages on stderr.
pub(crate) const LOG: Log = Log::new("warifu-pkcs11");

/// The library between C_Initialize and C_Finalize. No lock guards it: after a fork, a lock that
/// another thread held would stay locked in the child for good.
static CURRENT: ArcSwapOption<Library> = ArcSwapOption::const_empty();

/// Replaces the configured cards, in tests.
static PROVIDER: OnceLock<Provider> = OnceLock::new();

/// Returns a token for each slot, with its configuration.
pub type Provider = Box<dyn Fn() -> Vec<(SlotConfig, Box<dyn Token>)> + Send + Sync>;

/// The timeout for closing cards at the end of a program.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The arguments of C_Initialize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialiseArgs {
    /// CKF_LIBRARY_CANT_CREATE_OS_THREADS.
    pub no_threads: bool,
}

/// Replaces the configured tokens by those of a test. Works once in a process.
#[doc(hidden)]
pub fn provide(provider: Provider) -> bool {
    PROVIDER.set(provider).is_ok()
}

/// The library, if this process has initialised it. A forked child has not (PKCS#11 2.40 section
/// 5.4: the child calls C_Initialize for itself).
///
/// # Errors
/// CKR_CRYPTOKI_NOT_INITIALIZED.
pub fn current() -> Result<Arc<Library>> {
    let library = CURRENT.load_full().filter(|library| library.is_of_this_process());
    library.ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}

/// The trace of the current library, if there is one; in a forked child not the parent's.
pub(crate) fn current_trace() -> Option<Arc<Trace>> {
    let library = CURRENT.load();
    let trace = library.as_ref()?.trace()?;
    trace.is_of(process::id()).then(|| Arc::clone(trace))
}

/// C_Initialize.
///
/// # Errors
/// CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_GENERAL_ERROR for an invalid configuration.
pub fn initialise(args: InitialiseArgs) -> Result {
    let before = CURRENT.load_full();
    if before.as_ref().is_some_and(|library| library.is_of_this_process()) {
        return fail(CKR_CRYPTOKI_ALREADY_INITIALIZED);
    }
    let library = Arc::new(new_library(args)?);
    if let Some(parents) = &before {
        library.continue_from(parents);
    }
    let was = CURRENT.compare_and_swap(&before, Some(library));
    let ours = match (&*was, &before) {
        (Some(was), Some(before)) => Arc::ptr_eq(was, before),
        (None, None) => true,
        _ => false,
    };
    if let Some(parents) = before {
        // It belongs to the parent process: dropping it would close the parent's connections, and
        // its locks may be held by threads that this process does not have.
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
    library.end();
    Ok(())
}

/// The end of a program that did not call C_Finalize, as programs with libp11's engine do not: a
/// modem would keep the card's channels open, of which there are few.
pub(crate) fn end_of_process() {
    if let Ok(library) = current() {
        let end = Instant::now() + EXIT_TIMEOUT;
        library.slots().iter().for_each(|slot| slot.release_by(end));
    }
}

/// C_GetInfo.
#[must_use]
pub fn get_info(version: CK_VERSION) -> CK_INFO {
    CK_INFO {
        cryptokiVersion: version,
        manufacturerID: padded(MANUFACTURER.as_bytes()),
        flags: 0,
        libraryDescription: padded(b"IoT SAFE cards"),
        libraryVersion: CK_VERSION { major: 0, minor: 1 },
    }
}

/// The library with the slots of the configuration.
fn new_library(args: InitialiseArgs) -> Result<Library> {
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
                    if !error.is_temporary() {
                        return fail(CKR_GENERAL_ERROR);
                    }
                    None
                }
            };
            let tokens = tokens_of(&config, args, trace.as_ref());
            // One error for all the default addresses.
            let together = if config.explicit { 1 } else { tokens.len() };
            report = if config.quiet { silent() } else { to_stderr(together) };
            tokens
        }
    };
    let slots = tokens.into_iter().enumerate().map(|(id, (config, token))| {
        Arc::new(Slot::new(id as CK_SLOT_ID, config, token, Arc::clone(&report)))
    });
    Ok(Library::new(slots.collect(), trace))
}

/// The tokens of a configuration.
fn tokens_of(
    config: &Config,
    args: InitialiseArgs,
    trace: Option<&Arc<Trace>>,
) -> Vec<(SlotConfig, Box<dyn Token>)> {
    config
        .cards
        .iter()
        .map(|card| {
            let watch = trace.map(|trace| {
                let trace = Arc::clone(trace);
                Arc::new(move |exchange: &Exchange| trace.exchange(exchange)) as Watch
            });
            let options = Options { no_threads: args.no_threads, ..card.options.clone() };
            let token = card.address.token(options, watch);
            let slot = SlotConfig {
                location: card.address.to_string(),
                label: card.label.clone(),
                card_hashes: card.card_hashes,
                replace_keys: card.replace_keys,
                timeout: config.timeout,
            };
            (slot, token)
        })
        .collect()
}

fn silent() -> Reporter {
    Arc::new(|_, _| {})
}

/// Prints each line once, since programs repeat their calls. The first `together` lines about cards
/// are joined.
fn to_stderr(together: usize) -> Reporter {
    let said: Mutex<(BTreeSet<String>, Vec<String>, usize)> = Mutex::default();
    Arc::new(move |about, line| {
        let (said, held, cards) = &mut *lock(&said);
        if said.insert(line.to_owned()) {
            if about == Report::Call {
                return LOG.line(line);
            }
            held.push(line.to_owned());
            *cards += 1;
            if *cards >= together {
                LOG.line(held.join("; "));
                held.clear();
            }
        }
    })
}

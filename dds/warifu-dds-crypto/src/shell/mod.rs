// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Cyclone DDS calls: it takes arguments apart, calls the safe functions, and turns what they
//! give into sequences and exceptions. No panic leaves it.

pub mod abi;
mod calls;
mod counters;
mod memory;
mod surroundings;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::{io, process, ptr};

use abi::{Boolean, Cryptography, Exception, KeyExchange, KeyFactory, Transform};
use counters::{COUNTERS_VARIABLE, Counters};
use surroundings::{announce, say, variable};

use crate::algorithm::Aead;
use crate::error::{Error, Result};
use crate::factory::Factory;
use crate::random::System;
use crate::settings::{AEAD_VARIABLE, MAX_BLOCKS_VARIABLE, Settings};

/// One of the three tables, and the way from it to the plugin.
#[repr(C)]
struct Table<T> {
    functions: T,
    plugin: *const Plugin,
}

/// What Cyclone has a pointer to: its own type comes first.
#[repr(C)]
struct Plugin {
    cryptography: Cryptography,
    key_factory: Table<KeyFactory>,
    key_exchange: Table<KeyExchange>,
    transform: Table<Transform>,
    factory: Factory,
    counters: Counters,
}

/// `DDS_SECURITY_SUCCESS` and `DDS_SECURITY_FAILED`.
const SUCCESS: c_int = 0;
const FAILED: c_int = -1;

/// Makes a plugin for one domain. `aead`, if there is one, is chosen by the init function's name.
fn init(aead: Option<Aead>, context: *mut *mut c_void, gv: *mut c_void) -> c_int {
    let made = panic::catch_unwind(|| {
        let settings = settings(aead)?;
        let factory = Factory::new(settings, Box::new(System));
        let cryptography = Cryptography {
            gv,
            crypto_transform: ptr::null_mut(),
            crypto_key_factory: ptr::null_mut(),
            crypto_key_exchange: ptr::null_mut(),
        };
        let plugin = Box::into_raw(Box::new(Plugin {
            cryptography,
            key_factory: Table { functions: calls::KEY_FACTORY, plugin: ptr::null() },
            key_exchange: Table { functions: calls::KEY_EXCHANGE, plugin: ptr::null() },
            transform: Table { functions: calls::TRANSFORM, plugin: ptr::null() },
            factory,
            counters: counters(),
        }));
        // SAFETY: it was just made, and nobody else knows of it.
        let inside = unsafe { &mut *plugin };
        inside.key_factory.plugin = plugin;
        inside.key_exchange.plugin = plugin;
        inside.transform.plugin = plugin;
        // Each table's functions come first in it.
        inside.cryptography.crypto_key_factory = (&raw mut inside.key_factory).cast();
        inside.cryptography.crypto_key_exchange = (&raw mut inside.key_exchange).cast();
        inside.cryptography.crypto_transform = (&raw mut inside.transform).cast();
        Ok::<_, Error>(plugin)
    });
    let reason = match made {
        Ok(Ok(plugin)) if !context.is_null() => {
            // SAFETY: Cyclone's pointer to its place for the plugin.
            unsafe { *context = plugin.cast() };
            return SUCCESS;
        }
        Ok(Ok(plugin)) => {
            // SAFETY: from Box::into_raw above, and given to nobody.
            drop(unsafe { Box::from_raw(plugin) });
            "there is no place for the plugin".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => PANICKED.to_owned(),
    };
    // Cyclone has no exception here, and says itself only that there was an error.
    say(&reason);
    FAILED
}

fn settings(aead: Option<Aead>) -> Result<Settings> {
    let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    let (named, blocks) = (text(AEAD_VARIABLE), text(MAX_BLOCKS_VARIABLE));
    let of = |name: &str| match name {
        AEAD_VARIABLE => named.as_deref(),
        MAX_BLOCKS_VARIABLE => blocks.as_deref(),
        _ => None,
    };
    let mut settings = Settings::default().with(AEAD_VARIABLE, MAX_BLOCKS_VARIABLE, of)?;
    if let Some(aead) = aead {
        settings.aead = aead;
    }
    announce(settings.aead);
    Ok(settings)
}

/// Counts if a file is named that can be written to.
fn counters() -> Counters {
    let Some(file) = variable(COUNTERS_VARIABLE).map(PathBuf::from) else {
        return Counters::default();
    };
    Counters::to(file.clone()).unwrap_or_else(|error| {
        say_of_counters(&file, &error);
        Counters::default()
    })
}

fn say_of_counters(file: &Path, error: &io::Error) {
    say(&format!(
        "{COUNTERS_VARIABLE} is {}: {error}: name a file that can be written to, and is no link",
        file.display()
    ));
}

macro_rules! init_functions {
    ($($(#[$doc:meta])* $name:ident: $aead:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// Called by Cyclone (`plugin_init` in dds_security_api.h).
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _argument: *const c_char,
                context: *mut *mut c_void,
                gv: *mut c_void,
            ) -> c_int {
                init($aead, context, gv)
            }
        )*
    };
}

init_functions! {
    /// The AEAD that `WARIFU_DDS_AEAD` names, or AES-256-GCM.
    init_crypto: None;
    /// AES-GCM with keys of 128 bit.
    init_crypto_aes_128_gcm: Some(Aead::Aes128Gcm);
    /// AES-GCM with keys of 256 bit.
    init_crypto_aes_256_gcm: Some(Aead::Aes256Gcm);
    /// AEGIS-128L, an experiment.
    init_crypto_aegis_128l: Some(Aead::Aegis128L);
    /// AEGIS-256, an experiment.
    init_crypto_aegis_256: Some(Aead::Aegis256);
    /// Ascon-AEAD128, an experiment.
    init_crypto_ascon_aead128: Some(Aead::AsconAead128);
    /// Deoxys-II-128-128, an experiment.
    init_crypto_deoxys_ii_128_128: Some(Aead::DeoxysII128);
    /// ChaCha20-Poly1305, an experiment.
    init_crypto_chacha20_poly1305: Some(Aead::ChaCha20Poly1305);
}

/// Ends a domain's plugin.
///
/// # Safety
/// `context` is what an init function gave, and is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn finalize_crypto(context: *mut c_void) -> c_int {
    if context.is_null() {
        return FAILED;
    }
    // SAFETY: by the contract.
    let plugin = unsafe { Box::from_raw(context.cast::<Plugin>()) };
    let end = || {
        let aead = plugin.factory.settings().aead.name();
        if let Err((file, error)) = plugin.counters.write(process::id(), aead) {
            say_of_counters(file, &error);
        }
        drop(plugin);
    };
    panic::catch_unwind(AssertUnwindSafe(end)).map_or(FAILED, |()| SUCCESS)
}

const PANICKED: &str = "the plugin failed inside: please report it";

/// The plugin, from its table of functions `T`.
///
/// # Safety
/// `instance` is null or the table of `T` of a plugin that has not been ended.
unsafe fn plugin<'a, T>(instance: *mut c_void) -> Result<&'a Plugin> {
    // SAFETY: Cyclone passes the table whose function it calls.
    let table = unsafe { instance.cast::<Table<T>>().as_ref() };
    // SAFETY: each table's pointer was set when the plugin was made, and lives as long.
    let plugin = table.and_then(|table| unsafe { table.plugin.as_ref() });
    plugin.ok_or(Error::Argument("the plugin's instance"))
}

/// The plugin's keys.
///
/// # Safety
/// As for [`plugin`].
unsafe fn factory<'a, T>(instance: *mut c_void) -> Result<&'a Factory> {
    // SAFETY: by the contract.
    Ok(&unsafe { plugin::<T>(instance) }?.factory)
}

/// Calls a safe function. What it refuses, and a panic, become an exception and `failed`.
///
/// # Safety
/// `exception` is null or points to one.
unsafe fn guard<T>(exception: *mut Exception, failed: T, call: impl FnOnce() -> Result<T>) -> T {
    let error = match panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(_) => Error::Setting(PANICKED.to_owned()),
    };
    // SAFETY: by the contract.
    unsafe { memory::raise(exception, &error) };
    failed
}

/// `guard` for functions that only succeed or fail.
///
/// # Safety
/// As for [`guard`].
unsafe fn succeeds(exception: *mut Exception, call: impl FnOnce() -> Result<()>) -> Boolean {
    // SAFETY: by the contract.
    unsafe { guard(exception, 0, || call().map(|()| 1)) }
}

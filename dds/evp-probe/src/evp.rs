// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OpenSSL's functions as this library exports them (EVP_EncryptInit(3)). Each calls the real one,
//! gives on what it gave, and enters what it took.

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_uchar, c_void};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;
use std::{env, process, ptr};

use crate::ledger::{Ledger, Message};
use crate::site;

/// Environment variable: the file to which the lines are added.
pub const FILE_VARIABLE: &str = "WARIFU_EVP_PROBE";

type Context = *mut c_void;

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger::new());

thread_local! {
    /// Messages under way: a thread has few at once, mostly one.
    static UNDER_WAY: RefCell<Vec<(usize, Message)>> = const { RefCell::new(Vec::new()) };
}

/// The next function of that name, which this one hides.
struct Real(AtomicPtr<c_void>, &'static CStr);

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), name)
    }

    /// Its address. A program that calls what is nowhere cannot go on.
    fn address(&self) -> *mut c_void {
        let known = self.0.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a name that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.1.as_ptr()) };
        if found.is_null() {
            eprintln!("evp-probe: {:?} is in no library: is it OpenSSL 3 that is used?", self.1);
            process::abort();
        }
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

/// A context is initialised: begins a message, or goes on with one whose key comes later.
fn initialised(context: Context, caller: usize, is_outgoing: bool, took_ns: u64) {
    at_exit();
    with(context, |found| {
        // Key and nonce are often set one after the other.
        let goes_on = matches!(found, Some(message) if message.bytes == 0 && message.data_ns == 0);
        if !goes_on {
            *found = Some(Message::new(caller, is_outgoing));
        }
        if let Some(message) = found {
            message.setup_ns += took_ns;
        }
    });
}

fn updated(context: Context, is_data: bool, bytes: c_int, took_ns: u64) {
    with(context, |found| {
        if let Some(message) = found {
            let bytes = u64::try_from(bytes).unwrap_or_default();
            *(if is_data { &mut message.bytes } else { &mut message.associated_bytes }) += bytes;
            message.data_ns += took_ns;
        }
    });
}

fn finished(context: Context, is_refused: bool, took_ns: u64) {
    with(context, |found| {
        if let Some(mut message) = found.take() {
            message.data_ns += took_ns;
            let mut ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.add(&message, is_refused, site::name);
        }
    });
}

/// The message of a context in this thread. Not while the thread ends, when its values are gone.
fn with(context: Context, change: impl FnOnce(&mut Option<Message>)) {
    let key = context as usize;
    let _ = UNDER_WAY.try_with(|under_way| {
        let Ok(mut all) = under_way.try_borrow_mut() else { return };
        let index = all.iter().position(|(known, _)| *known == key);
        let mut message = index.map(|index| all.swap_remove(index).1);
        change(&mut message);
        if let Some(message) = message {
            all.push((key, message));
        }
    });
}

fn timed<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let begun = Instant::now();
    let given = call();
    (given, u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// What the probe adds to one message of four calls: measured on itself, without OpenSSL.
fn probe_ns() -> u64 {
    const MESSAGES: u32 = 10_000;
    let mut ledger = Ledger::new();
    let context = ptr::without_provenance_mut(1);
    let (_, took_ns) = timed(|| {
        for _ in 0..MESSAGES {
            let (_, a) = timed(|| ());
            initialised(context, 1, true, a);
            let (_, b) = timed(|| ());
            updated(context, true, 16, b);
            let (_, c) = timed(|| ());
            with(context, |found| {
                if let Some(mut message) = found.take() {
                    message.data_ns += c;
                    ledger.add(&message, false, |_| String::new());
                }
            });
        }
    });
    took_ns / u64::from(MESSAGES)
}

fn at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a function without arguments, that stays: this library is never unloaded.
        unsafe { libc::atexit(write) };
    });
}

/// A program that never called any of these functions says so, too.
#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = loaded;

extern "C" fn loaded() {
    if env::var_os(FILE_VARIABLE).is_some() {
        at_exit();
    }
}

extern "C" fn write() {
    let Some(file) = env::var_os(FILE_VARIABLE) else { return };
    let ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = ledger.lines(process::id(), probe_ns());
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("evp-probe: {FILE_VARIABLE}={file:?}: {error}: name a file to write to");
    }
}

/// Exports a function that passes its return address on as the sixth argument: no real one has
/// more than five.
macro_rules! with_caller {
    ($($name:ident => $inside:ident;)*) => {
        $(
            #[doc = concat!("In the place of ", stringify!($name), ".")]
            ///
            /// # Safety
            /// As OpenSSL's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!("mov r9, [rsp]", "jmp {}", sym $inside);
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!("mov x5, x30", "b {}", sym $inside);
            }
        )*
    };
}

with_caller! {
    EVP_EncryptInit => encrypt_init;
    EVP_EncryptInit_ex => encrypt_init_ex;
    EVP_EncryptInit_ex2 => encrypt_init_ex2;
    EVP_DecryptInit => decrypt_init;
    EVP_DecryptInit_ex => decrypt_init_ex;
    EVP_DecryptInit_ex2 => decrypt_init_ex2;
}

macro_rules! inits {
    ($($inside:ident: $name:literal, $is_outgoing:literal;)*) => {
        $(
            /// Context and cipher, then whatever there is: registers are given on as they are.
            unsafe extern "C" fn $inside(
                context: Context,
                a: *mut c_void,
                b: *mut c_void,
                c: *mut c_void,
                d: *mut c_void,
                caller: usize,
            ) -> c_int {
                type Init = unsafe extern "C" fn(
                    Context, *mut c_void, *mut c_void, *mut c_void, *mut c_void,
                ) -> c_int;
                static REAL: Real = Real::new($name);
                // SAFETY: OpenSSL's function, which looks at no more arguments than it has.
                let real: Init = unsafe { std::mem::transmute(REAL.address()) };
                // SAFETY: the caller's own arguments.
                let (given, took_ns) = timed(|| unsafe { real(context, a, b, c, d) });
                initialised(context, caller, $is_outgoing, took_ns);
                given
            }
        )*
    };
}

inits! {
    encrypt_init: c"EVP_EncryptInit", true;
    encrypt_init_ex: c"EVP_EncryptInit_ex", true;
    encrypt_init_ex2: c"EVP_EncryptInit_ex2", true;
    decrypt_init: c"EVP_DecryptInit", false;
    decrypt_init_ex: c"EVP_DecryptInit_ex", false;
    decrypt_init_ex2: c"EVP_DecryptInit_ex2", false;
}

macro_rules! updates {
    ($($name:ident: $text:literal;)*) => {
        $(
            #[doc = concat!("In the place of ", stringify!($name), ".")]
            ///
            /// # Safety
            /// As OpenSSL's.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $name(
                context: Context,
                out: *mut c_uchar,
                out_bytes: *mut c_int,
                input: *const c_uchar,
                bytes: c_int,
            ) -> c_int {
                type Update = unsafe extern "C" fn(
                    Context, *mut c_uchar, *mut c_int, *const c_uchar, c_int,
                ) -> c_int;
                static REAL: Real = Real::new($text);
                // SAFETY: OpenSSL's function of this type.
                let real: Update = unsafe { std::mem::transmute(REAL.address()) };
                let (given, took_ns) = timed(|| {
                    // SAFETY: the caller's own arguments.
                    unsafe { real(context, out, out_bytes, input, bytes) }
                });
                // Without a place for its result it is associated data.
                updated(context, !out.is_null(), bytes, took_ns);
                given
            }
        )*
    };
}

updates! {
    EVP_EncryptUpdate: c"EVP_EncryptUpdate";
    EVP_DecryptUpdate: c"EVP_DecryptUpdate";
}

macro_rules! finals {
    ($($name:ident: $text:literal;)*) => {
        $(
            #[doc = concat!("In the place of ", stringify!($name), ".")]
            ///
            /// # Safety
            /// As OpenSSL's.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $name(
                context: Context,
                out: *mut c_uchar,
                out_bytes: *mut c_int,
            ) -> c_int {
                type Final = unsafe extern "C" fn(Context, *mut c_uchar, *mut c_int) -> c_int;
                static REAL: Real = Real::new($text);
                // SAFETY: OpenSSL's function of this type.
                let real: Final = unsafe { std::mem::transmute(REAL.address()) };
                // SAFETY: the caller's own arguments.
                let (given, took_ns) = timed(|| unsafe { real(context, out, out_bytes) });
                finished(context, given != 1, took_ns);
                given
            }
        )*
    };
}

finals! {
    EVP_EncryptFinal: c"EVP_EncryptFinal";
    EVP_EncryptFinal_ex: c"EVP_EncryptFinal_ex";
    EVP_DecryptFinal: c"EVP_DecryptFinal";
    EVP_DecryptFinal_ex: c"EVP_DecryptFinal_ex";
}

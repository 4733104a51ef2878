// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OpenSSL's functions, looked up as the caller would have found them without us.
//!
//! dlsym's RTLD_NEXT is not enough: ROS 2 loads its middleware, and with it OpenSSL, by dlopen(3)
//! into a scope of its own, and two libraries of a process may bring an OpenSSL each. So the lookup
//! goes by the caller's object and what that depends on.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::functions::{FUNCTIONS, NOTHING};
use crate::shim::Real;
use crate::site::Slot;

/// The version that all symbols of OpenSSL 3 carry (libcrypto.num).
const OPENSSL_3: &CStr = c"OPENSSL_3.0.0";

/// A function as its caller means it.
#[derive(Clone, Copy)]
pub struct Found {
    /// None where nobody defines it.
    pub address: Option<Real>,
    /// Not of OpenSSL 3: of 1.1, or of a library with the same names. Passed on, never watched.
    pub foreign: bool,
}

/// Entries by caller and function; never removed. A power of two.
const ENTRIES: usize = 4096;
struct Entry {
    key: AtomicUsize,
    /// Bit 0: foreign (functions lie at even addresses: they begin on a boundary of 16 bytes).
    address: AtomicUsize,
}
static FOUND: [Entry; ENTRIES] =
    [const { Entry { key: AtomicUsize::new(0), address: AtomicUsize::new(0) } }; ENTRIES];

/// Where this library's code begins and ends.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

thread_local! {
    /// The function that this library called last.
    static CALLED: Cell<usize> = const { Cell::new(0) };
}

/// Makes the call of a function that was found.
pub fn call<T>(function: Real, call: impl FnOnce(Real) -> T) -> T {
    CALLED.set(function as usize);
    call(function)
}

/// Whose call it is. Where OpenSSL jumps to another of its functions (a tail call, such as
/// EVP_EncryptInit_ex's of EVP_CipherInit_ex), the return address is this library's.
fn caller_of(slot: Slot) -> usize {
    let caller = slot.word(0);
    let [start, end] = [&OWN[0], &OWN[1]].map(|bound| bound.load(Ordering::Relaxed));
    if (start..end).contains(&caller) { CALLED.get() } else { caller }
}

/// Learns where this library's code is.
pub fn find_own() {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, own: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry with its program headers, and `own` as it
        // was given.
        let (info, headers, own) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info, headers, *own.cast::<usize>())
        };
        for header in headers {
            let [start, bytes] =
                [header.p_vaddr, header.p_memsz].map(|it| usize::try_from(it).unwrap_or(0));
            let start = start.wrapping_add(usize::try_from(info.dlpi_addr).unwrap_or(0));
            let code = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
            if code && (start..start + bytes).contains(&own) {
                OWN[0].store(start, Ordering::Relaxed);
                OWN[1].store(start + bytes, Ordering::Relaxed);
                return 1;
            }
        }
        0
    }
    let mut own = find_own as *const () as usize;
    // SAFETY: `visit` matches the signature, and `own` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut own).cast()) };
}

/// Function `index` for the caller at `slot`.
pub fn of(index: usize, slot: Slot) -> Found {
    let caller = caller_of(slot);
    // User addresses have 47 bits (56 with five levels of page tables), functions 6.
    let key = caller << 6 | index;
    let start = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    for step in 0..16 {
        let entry = &FOUND[(start + step) % ENTRIES];
        match entry.key.load(Ordering::Acquire) {
            0 => {
                let found = resolve(index, caller);
                let word = found.address.map_or(0, |address| address as usize)
                    | usize::from(found.foreign);
                // Two threads may store the same; a reader waits for neither.
                if word > 1
                    && entry
                        .address
                        .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire)
                        .is_ok()
                {
                    entry.key.store(key, Ordering::Release);
                }
                return found;
            }
            other if other == key => {
                let word = entry.address.load(Ordering::Acquire);
                // SAFETY: the address of a function that `resolve` found.
                let address = unsafe { mem::transmute::<usize, Option<Real>>(word & !1) };
                return Found { address, foreign: word & 1 == 1 };
            }
            _ => {}
        }
    }
    // The table is full here: right, but slow.
    resolve(index, caller)
}

fn resolve(index: usize, caller: usize) -> Found {
    if index >= NOTHING {
        return Found { address: Some(nothing), foreign: false };
    }
    let name = name_of(index);
    let (address, versioned) = lookup(caller, name);
    // SAFETY: a non-null symbol of this name is a function.
    let address = unsafe { mem::transmute::<*mut c_void, Option<Real>>(address) };
    Found { address, foreign: !versioned }
}

fn name_of(index: usize) -> &'static CStr {
    CStr::from_bytes_until_nul(FUNCTIONS[index].name.as_bytes()).unwrap_or_default()
}

/// A function of OpenSSL 3 that is not watched, looked up once.
pub struct Helper {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Helper {
    /// By its name.
    pub const fn new(name: &'static CStr) -> Helper {
        Helper { name, address: AtomicUsize::new(0) }
    }

    /// Where it is for the caller at `slot`; of several OpenSSLs any, since what is asked of it
    /// (numbers and names) reads structures that are laid out alike.
    pub fn address(&self, slot: Slot) -> Option<usize> {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        match lookup(caller_of(slot), self.name) {
            (address, true) => {
                self.address.store(address as usize, Ordering::Relaxed);
                Some(address as usize)
            }
            (_, false) => None,
        }
    }
}

/// Where `name` is for code at `caller`, and whether it is OpenSSL 3's.
fn lookup(caller: usize, name: &CStr) -> (*mut c_void, bool) {
    let handle = handle_of(caller);
    // SAFETY: names are terminated; the handle is the caller's object or RTLD_NEXT.
    unsafe {
        let found = libc::dlvsym(handle, name.as_ptr(), OPENSSL_3.as_ptr());
        let found = if found.is_null() && handle != libc::RTLD_NEXT {
            // A plugin that leaves OpenSSL to whoever loads it.
            libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), OPENSSL_3.as_ptr())
        } else {
            found
        };
        let answer = if found.is_null() {
            (libc::dlsym(handle, name.as_ptr()), false)
        } else {
            (found, true)
        };
        if handle != libc::RTLD_NEXT {
            // The object stays: its code is what called us.
            libc::dlclose(handle);
        }
        answer
    }
}

/// A handle whose search order is the caller's object and its dependencies; RTLD_NEXT, which starts
/// after this library, for the program itself.
fn handle_of(address: usize) -> *mut c_void {
    // SAFETY: `info` is written by dladdr, and read only if that says so; its strings live as long
    // as the object that the caller is executing in.
    unsafe {
        let mut info: libc::Dl_info = mem::zeroed();
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return libc::RTLD_NEXT;
        }
        let handle = libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() { libc::RTLD_NEXT } else { handle }
    }
}

/// A function of the middleware: that of the first loaded object that defines it and is not this
/// library. Null where nobody does.
pub fn anywhere(name: &CStr) -> *mut c_void {
    struct Search<'a> {
        name: &'a CStr,
        own: usize,
        found: *mut c_void,
    }
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry, and `data` as it was given.
        let (search, file) = unsafe { (&mut *data.cast::<Search<'_>>(), (*info).dlpi_name) };
        search.found = in_object(file, search.name, search.own);
        c_int::from(!search.found.is_null())
    }
    // SAFETY: the name is terminated.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    let mut search = Search { name, own: base_of(anywhere as *const c_void), found: next };
    // SAFETY: `visit` matches the signature, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

fn in_object(file: *const c_char, name: &CStr, own: usize) -> *mut c_void {
    // SAFETY: `file` is null or a terminated string of the dynamic linker.
    unsafe {
        if file.is_null() || *file == 0 {
            return ptr::null_mut();
        }
        let handle = libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return ptr::null_mut();
        }
        let found = libc::dlsym(handle, name.as_ptr());
        libc::dlclose(handle);
        if base_of(found) == own { ptr::null_mut() } else { found }
    }
}

fn base_of(address: *const c_void) -> usize {
    // SAFETY: `info` is plain data, written by dladdr and read only if that says so.
    unsafe {
        let mut info: libc::Dl_info = mem::zeroed();
        if address.is_null() || libc::dladdr(address, &raw mut info) == 0 {
            return 0;
        }
        info.dli_fbase as usize
    }
}

/// What calibration calls in OpenSSL's place.
unsafe extern "C" fn nothing(
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> usize {
    1
}

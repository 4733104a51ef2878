// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program asks of OpenSSL 3, seen by a library that is loaded before it (LD_PRELOAD).
//!
//! `warifu dds profile` sets `WARIFU_EVP_PROBE` to a folder of its own; each process of the command
//! then leaves a file there, which it writes as it runs, so that it is whole also when a signal
//! ends the process. Without the variable, or where the process has more rights than whoever
//! started it (AT_SECURE), every call goes straight on.
//!
//! - `shim`: the functions that take OpenSSL's and the middleware's place.
//! - `functions`: which they are, and what each is to an operation.
//! - `real`: OpenSSL's own, looked up as the caller would have found them.
//! - `operation`: calls joined to operations, from initialisation to the tag.
//! - `site`: who called, by four functions on the stack.
//! - `message`: the middleware's writes, and what happens within them.
//! - `record`: the file.
//! - `say`: words on standard error, which may be full, closed or read by nobody.
//! - `calibration`: what the probe itself costs, measured in this process.
//! - `swap`: another AEAD in the place of AES-GCM. For experiments only.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod calibration;
mod functions;
mod libraries;
mod message;
mod operation;
mod real;
mod record;
mod say;
mod shim;
mod site;
mod swap;

use std::ptr;

/// The folder for the files, and the switch: without it the probe does nothing.
const FOLDER: &str = "WARIFU_EVP_PROBE";
/// The AEAD that takes the place of AES-GCM.
const SWAP: &str = "WARIFU_EVP_SWAP";

// A constructor: the dynamic linker calls it before the program's `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    real::find_own();
    // Both are None in a process with more rights than whoever started it.
    if let Some(name) = warifu_os::secure_variable(SWAP) {
        swap::select(&name);
    }
    let Some(folder) = warifu_os::secure_variable(FOLDER) else { return };
    if let Err(error) = record::open(&folder) {
        say::say(&format!("not recording: {folder}: {error}"));
        return;
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    calibration::run();
    libraries::note();
    record::begin();
}

extern "C" fn end() {
    libraries::note();
    record::finish();
}

/// In a child of fork(2): the file is the parent's, and its locks may be held by threads that are
/// not here. The child is not recorded unless it executes a program, which starts anew.
extern "C" fn forked() {
    record::FILE.store(ptr::null_mut(), std::sync::atomic::Ordering::Release);
}

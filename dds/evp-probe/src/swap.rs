// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FOR EXPERIMENTS ONLY: another AEAD in the place of AES-GCM, in every context that this process
//! initialises with it outside TLS.
//!
//! What is sent is no longer DDS Security: only a process with the same swap understands it, keys
//! are cut or repeated to the other cipher's length, and its nonce is the 12 bytes of AES-GCM's
//! with zeroes behind. It answers one question: what would this middleware cost with that cipher.
//! Plaintext is released after the tag was checked: what the middleware passes is kept until the
//! last call, which writes to the buffers of the calls before. Fast DDS 2.9
//! (AESGCMGMAC_Transform.cpp) and Cyclone DDS 0.10 (crypto_cipher.c) keep theirs until then.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::mem;
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::{Mutex, PoisonError};

use aegis::aegis128l::Aegis128L;
use aegis::aegis256::Aegis256;
use ascon_aead::AsconAead128;
use ascon_aead::aead::{AeadInOut, KeyInit};

use crate::functions::{Direction, FUNCTIONS, Role};
use crate::real;
use crate::say::say;
use crate::site::{self, Slot};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Aead {
    Aegis128L,
    Aegis256,
    Ascon128,
}

/// By the names of `warifu dds`.
const AEADS: [(&str, Aead); 3] = [
    ("aegis-128l", Aead::Aegis128L),
    ("aegis-256", Aead::Aegis256),
    ("ascon-aead128", Aead::Ascon128),
];

static SELECTED: OnceLock<(&str, Aead)> = OnceLock::new();

/// Chooses the AEAD, and says so where everybody sees it. An unknown name ends the process, which
/// would otherwise measure something else than it was asked for.
pub fn select(name: &str) {
    let Some(known) = AEADS.iter().find(|known| known.0 == name) else {
        let names = AEADS.map(|known| known.0).join(", ");
        say(&format!("WARIFU_EVP_SWAP is {name}: expected {names}, or unset it"));
        // SAFETY: the program has not begun.
        unsafe { libc::_exit(2) };
    };
    let _ = SELECTED.set(*known);
    say(&format!(
        "EXPERIMENT: {name} takes the place of AES-GCM in process {}. This is \
         not DDS Security and protects nothing; unset WARIFU_EVP_SWAP for anything but a \
         measurement.",
        std::process::id()
    ));
}

/// Its name.
pub fn selected() -> Option<&'static str> {
    SELECTED.get().map(|selected| selected.0)
}

/// What stands in for an OpenSSL context.
struct Context {
    encrypts: bool,
    key: Vec<u8>,
    key_bytes: usize,
    nonce: [u8; NONCE],
    associated: Vec<u8>,
    /// What was passed in, and where its counterpart goes.
    payload: Vec<u8>,
    pieces: Vec<(usize, usize)>,
    tag: [u8; TAG],
}

const NONCE: usize = 12;
const TAG: usize = 16;

static CONTEXTS: Mutex<Option<HashMap<usize, Context>>> = Mutex::new(None);

/// Makes the call: OpenSSL's, unless its context is one that was swapped.
pub fn call(index: usize, arguments: &[usize; 6], slot: Slot, real: impl Fn() -> usize) -> usize {
    let Some((_, aead)) = SELECTED.get() else { return real() };
    instead(*aead, FUNCTIONS[index].role, index, arguments, slot).unwrap_or_else(real)
}

/// None where OpenSSL shall answer.
fn instead(
    aead: Aead,
    role: Role,
    index: usize,
    arguments: &[usize; 6],
    slot: Slot,
) -> Option<usize> {
    let mut all = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let contexts = all.get_or_insert_default();
    let [context, b, c, d, e, _] = *arguments;
    match role {
        Role::CipherInit(direction) => {
            // `_ex` has an engine before the key.
            let without_engine = !FUNCTIONS[index].name.ends_with("_ex\0");
            let (key, nonce) = if without_engine { (c, d) } else { (d, e) };
            if b != 0 {
                let key_bytes = gcm_key_bytes(b, slot).filter(|_| !of_tls(slot));
                let Some(key_bytes) = key_bytes else {
                    contexts.remove(&context);
                    return None;
                };
                contexts.insert(context, Context::new(key_bytes));
            }
            let swapped = contexts.get_mut(&context)?;
            swapped.encrypts = match direction {
                Direction::Encrypt => true,
                Direction::Decrypt => false,
                Direction::Argument(at) => arguments[at] as c_int != 0,
            };
            // SAFETY: EVP_*Init: a key of the cipher's length and a nonce, or null.
            unsafe { swapped.set(key, nonce) };
            Some(1)
        }
        Role::CipherUpdate => {
            let swapped = contexts.get_mut(&context)?;
            let bytes = usize::try_from(e as c_int).unwrap_or(0);
            // SAFETY: EVP_*Update: `bytes` bytes at `d`, and an int at `c`.
            unsafe { swapped.update(b, c, d, bytes) };
            Some(1)
        }
        Role::CipherFinal => {
            let swapped = contexts.get_mut(&context)?;
            if c != 0 {
                // SAFETY: EVP_*Final: an int at `c`.
                unsafe { ptr::write(c as *mut c_int, 0) };
            }
            // SAFETY: see the module's description: the buffers of the updates are still there.
            Some(usize::from(unsafe { swapped.finish(aead) }))
        }
        Role::Control => {
            let swapped = contexts.get_mut(&context)?;
            // SAFETY: EVP_CIPHER_CTX_ctrl: for tags, `c` bytes at `d`.
            Some(unsafe { swapped.control(b as c_int, c as c_int, d) })
        }
        Role::Free | Role::Reset => {
            contexts.remove(&context);
            None
        }
        _ => None,
    }
}

impl Context {
    fn new(key_bytes: usize) -> Context {
        Context {
            encrypts: true,
            key: Vec::new(),
            key_bytes,
            nonce: [0; NONCE],
            associated: Vec::new(),
            payload: Vec::new(),
            pieces: Vec::new(),
            tag: [0; TAG],
        }
    }

    /// # Safety
    /// As of EVP_EncryptInit: `key` and `nonce` are null or hold as much as the cipher takes.
    unsafe fn set(&mut self, key: usize, nonce: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if key != 0 {
                self.key = slice::from_raw_parts(key as *const u8, self.key_bytes).to_vec();
            }
            if nonce != 0 {
                ptr::copy_nonoverlapping(nonce as *const u8, self.nonce.as_mut_ptr(), NONCE);
            }
        }
        self.associated.clear();
        self.payload.clear();
        self.pieces.clear();
    }

    /// # Safety
    /// As of EVP_EncryptUpdate.
    unsafe fn update(&mut self, to: usize, length: usize, from: usize, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let input: &[u8] =
                if bytes == 0 { &[] } else { slice::from_raw_parts(from as *const u8, bytes) };
            if to == 0 {
                self.associated.extend_from_slice(input);
            } else {
                self.payload.extend_from_slice(input);
                self.pieces.push((to, bytes));
            }
            if length != 0 {
                ptr::write(length as *mut c_int, c_int::try_from(bytes).unwrap_or(0));
            }
        }
    }

    /// # Safety
    /// The outputs of all updates are still there.
    unsafe fn finish(&mut self, aead: Aead) -> bool {
        let whole = if self.encrypts {
            seal(aead, &self.key, &self.nonce, &self.associated, &mut self.payload)
                .map(|tag| self.tag = tag)
        } else {
            open(aead, &self.key, &self.nonce, &self.associated, &mut self.payload, &self.tag)
        };
        if whole.is_none() {
            return false;
        }
        let mut from = self.payload.as_slice();
        for (to, bytes) in self.pieces.drain(..) {
            let (piece, rest) = from.split_at(bytes);
            // SAFETY: the caller's promise, for as many bytes as went in.
            unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), to as *mut u8, bytes) };
            from = rest;
        }
        self.payload.clear();
        true
    }

    /// # Safety
    /// As of EVP_CIPHER_CTX_ctrl.
    unsafe fn control(&mut self, kind: c_int, number: c_int, place: usize) -> usize {
        // EVP_CTRL_AEAD_* of evp.h.
        const SET_NONCE_BYTES: c_int = 0x9;
        const GET_TAG: c_int = 0x10;
        const SET_TAG: c_int = 0x11;
        let bytes = usize::try_from(number).unwrap_or(0);
        match kind {
            SET_NONCE_BYTES => usize::from(bytes == NONCE),
            GET_TAG | SET_TAG if bytes > TAG || place == 0 => 0,
            // SAFETY: the caller's promise.
            GET_TAG => unsafe {
                ptr::copy_nonoverlapping(self.tag.as_ptr(), place as *mut u8, bytes);
                1
            },
            // SAFETY: as above.
            SET_TAG => unsafe {
                ptr::copy_nonoverlapping(place as *const u8, self.tag.as_mut_ptr(), bytes);
                1
            },
            _ => 0,
        }
    }
}

fn seal(
    aead: Aead,
    key: &[u8],
    nonce: &[u8],
    associated: &[u8],
    payload: &mut [u8],
) -> Option<[u8; TAG]> {
    match aead {
        Aead::Aegis128L => Some(
            Aegis128L::<TAG>::new(&stretched(key)?, &padded(nonce))
                .encrypt_in_place(payload, associated),
        ),
        Aead::Aegis256 => Some(
            Aegis256::<TAG>::new(&stretched(key)?, &padded(nonce))
                .encrypt_in_place(payload, associated),
        ),
        Aead::Ascon128 => {
            let nonce: [u8; 16] = padded(nonce);
            let tag = AsconAead128::new(&stretched::<16>(key)?.into())
                .encrypt_inout_detached(&nonce.into(), associated, payload.into())
                .ok()?;
            Some(tag.into())
        }
    }
}

fn open(
    aead: Aead,
    key: &[u8],
    nonce: &[u8],
    associated: &[u8],
    payload: &mut [u8],
    tag: &[u8; TAG],
) -> Option<()> {
    match aead {
        Aead::Aegis128L => Aegis128L::<TAG>::new(&stretched(key)?, &padded(nonce))
            .decrypt_in_place(payload, tag, associated)
            .ok(),
        Aead::Aegis256 => Aegis256::<TAG>::new(&stretched(key)?, &padded(nonce))
            .decrypt_in_place(payload, tag, associated)
            .ok(),
        Aead::Ascon128 => {
            let nonce: [u8; 16] = padded(nonce);
            AsconAead128::new(&stretched::<16>(key)?.into())
                .decrypt_inout_detached(&nonce.into(), associated, payload.into(), &(*tag).into())
                .ok()
        }
    }
}

/// A key cut, or repeated, to `N` bytes; None without one.
fn stretched<const N: usize>(key: &[u8]) -> Option<[u8; N]> {
    let mut bytes = key.iter().copied().cycle();
    let mut stretched = [0; N];
    for byte in &mut stretched {
        *byte = bytes.next()?;
    }
    Some(stretched)
}

fn padded<const N: usize>(nonce: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..nonce.len()].copy_from_slice(nonce);
    padded
}

/// The length of the key if the cipher is AES-128-GCM or AES-256-GCM.
fn gcm_key_bytes(cipher: usize, slot: Slot) -> Option<usize> {
    /// obj_mac.h: NID_aes_128_gcm and NID_aes_256_gcm.
    const AES_128_GCM: c_int = 895;
    const AES_256_GCM: c_int = 901;
    static NID: real::Helper = real::Helper::new(c"EVP_CIPHER_get_nid");
    let nid = NID.address(slot)?;
    // SAFETY: OpenSSL 3's EVP_CIPHER_get_nid; the program passed the cipher.
    let nid = unsafe {
        let nid: unsafe extern "C" fn(usize) -> c_int = mem::transmute::<usize, _>(nid);
        nid(cipher)
    };
    match nid {
        AES_128_GCM => Some(16),
        AES_256_GCM => Some(32),
        _ => None,
    }
}

/// Whether libssl called, whose peers do not swap.
fn of_tls(slot: Slot) -> bool {
    thread_local! {
        static KNOWN: RefCell<Vec<(usize, bool)>> = const { RefCell::new(Vec::new()) };
    }
    let caller = slot.word(0);
    KNOWN.with_borrow_mut(|known| {
        if let Some(entry) = known.iter().find(|entry| entry.0 == caller) {
            return entry.1;
        }
        let of_tls = site::name(caller).starts_with("libssl");
        known.push((caller, of_tls));
        of_tls
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aead_opens_what_it_sealed_and_nothing_else() {
        for (name, aead) in AEADS {
            let mut payload = *b"sixteen byte msg";
            let tag = seal(aead, &[7; 32], &[1; NONCE], b"header", &mut payload).unwrap();
            assert_ne!(&payload, b"sixteen byte msg", "{name}");
            let mut copy = payload;
            assert!(open(aead, &[7; 32], &[1; NONCE], b"header", &mut copy, &tag).is_some());
            assert_eq!(&copy, b"sixteen byte msg", "{name}");
            let mut changed = payload;
            changed[0] ^= 1;
            assert!(open(aead, &[7; 32], &[1; NONCE], b"header", &mut changed, &tag).is_none());
            assert!(open(aead, &[7; 32], &[1; NONCE], b"Header", &mut payload, &tag).is_none());
        }
    }

    #[test]
    fn context_writes_plaintext_only_after_the_tag_was_checked() {
        let mut sealed = *b"plain";
        let tag = seal(Aead::Ascon128, &[1; 16], &[2; NONCE], b"", &mut sealed).unwrap();
        for (tag, released) in [(tag, true), ([0; TAG], false)] {
            let mut context = Context::new(16);
            context.encrypts = false;
            let (key, nonce, mut out, mut length) = ([1u8; 16], [2u8; NONCE], [0u8; 5], 0 as c_int);
            // SAFETY: all buffers outlive the context.
            let opened = unsafe {
                context.set(key.as_ptr() as usize, nonce.as_ptr() as usize);
                context.update(
                    out.as_mut_ptr() as usize,
                    &raw mut length as usize,
                    sealed.as_ptr() as usize,
                    5,
                );
                assert_eq!(out, [0; 5]);
                assert_eq!(context.control(0x11, 16, tag.as_ptr() as usize), 1);
                context.finish(Aead::Ascon128)
            };
            assert_eq!((opened, length), (released, 5));
            assert_eq!(&out == b"plain", released);
        }
    }
}

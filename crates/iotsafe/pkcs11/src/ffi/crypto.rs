// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashing, signing and verifying (PKCS#11 2.40 sections 5.10 to 5.12).

use std::ptr;

use cryptoki_sys::*;

use super::entries;
use super::memory::{bytes, deliver, mechanism, room};
use crate::hashing;
use crate::library::{Library, current};
use crate::mechanism::Mechanism;
use crate::output::{Output, Room};
use crate::rv::{Result, Rv};
use crate::signing;

/// Ends an operation.
type End = fn(&Library, CK_SESSION_HANDLE) -> Result;
/// Takes data, gives a result of variable length.
type Give = fn(&Library, CK_SESSION_HANDLE, &[u8], Room) -> Result<Output>;
/// Takes data.
type Take = fn(&Library, CK_SESSION_HANDLE, &[u8]) -> Result;

/// Bad arguments end an operation, as every error does (PKCS#11 2.40 sections 5.10 to 5.12).
fn or_end<T>(
    result: Result<T>,
    library: &Library,
    session: CK_SESSION_HANDLE,
    end: End,
) -> Result<T> {
    result.or_else(|Rv(rv)| {
        end(library, session)?;
        Err(Rv(rv))
    })
}

/// C_DigestInit and its like.
///
/// # Safety
/// `pointer` is null or leads to a mechanism.
unsafe fn begin(
    session: CK_SESSION_HANDLE,
    pointer: *mut CK_MECHANISM,
    init: impl FnOnce(&Library, Option<&Mechanism>) -> Result,
) -> Result {
    let library = current()?;
    library.session(session)?;
    // SAFETY: by the caller's promise.
    let mechanism = unsafe { mechanism(pointer)? };
    init(&library, mechanism.as_ref())
}

/// C_Digest, C_Sign and, without data, the calls that end what was taken in parts.
///
/// # Safety
/// `data` and `place` are null or as long as the lengths beside them say; those are null or
/// lead to a CK_ULONG.
unsafe fn give(
    session: CK_SESSION_HANDLE,
    data: (*const CK_BYTE, CK_ULONG),
    place: (*mut CK_BYTE, *mut CK_ULONG),
    end: End,
    work: Give,
) -> Result {
    let library = current()?;
    // SAFETY: by the caller's promise.
    unsafe {
        let input = bytes(data.0, data.1).and_then(|data| Ok((data, room(place.0, place.1)?)));
        let (data, room) = or_end(input, &library, session, end)?;
        deliver(work(&library, session, data, room)?, place.0, place.1)
    }
}

/// C_DigestUpdate and its like, and C_VerifyFinal.
///
/// # Safety
/// `data` is null or as long as `length` says.
unsafe fn take(
    session: CK_SESSION_HANDLE,
    data: *const CK_BYTE,
    length: CK_ULONG,
    end: End,
    work: Take,
) -> Result {
    let library = current()?;
    // SAFETY: by the caller's promise.
    let data = or_end(unsafe { bytes(data, length) }, &library, session, end)?;
    work(&library, session, data)
}

/// Where a call has no data.
const NONE: (*const CK_BYTE, CK_ULONG) = (ptr::null(), 0);

entries! {
    /// Begins to hash.
    fn C_DigestInit(session: CK_SESSION_HANDLE, pointer: *mut CK_MECHANISM) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            hashing::init(library, session, mechanism)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Hashes in one go.
    fn C_Digest(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        digest: *mut CK_BYTE,
        digest_length: *mut CK_ULONG,
    ) {
        let (data, place) = ((data.cast_const(), data_length), (digest, digest_length));
        // SAFETY: by the caller's promise.
        unsafe { give(session, data, place, hashing::abort, hashing::finish) }
    }

    /// Hashes a part.
    fn C_DigestUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { take(session, part, length, hashing::abort, hashing::update) }
    }

    /// Hashes a secret.
    fn C_DigestKey(session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) {
        hashing::key(&*current()?, session, key)
    }

    /// Gives the hash.
    fn C_DigestFinal(
        session: CK_SESSION_HANDLE,
        digest: *mut CK_BYTE,
        digest_length: *mut CK_ULONG,
    ) {
        // SAFETY: by the caller's promise.
        unsafe { give(session, NONE, (digest, digest_length), hashing::abort, hashing::finish) }
    }

    /// Begins a signature.
    fn C_SignInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            signing::sign_init(library, session, mechanism, key)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Signs in one go.
    fn C_Sign(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let (data, place) = ((data.cast_const(), data_length), (signature, signature_length));
        // SAFETY: by the caller's promise.
        unsafe { give(session, data, place, signing::sign_abort, signing::sign) }
    }

    /// Takes a part of what is signed.
    fn C_SignUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { take(session, part, length, signing::sign_abort, signing::sign_update) }
    }

    /// Gives the signature.
    fn C_SignFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let place = (signature, signature_length);
        let work: Give = |library, session, _, room| signing::sign_final(library, session, room);
        // SAFETY: by the caller's promise.
        unsafe { give(session, NONE, place, signing::sign_abort, work) }
    }

    /// Begins to verify.
    fn C_VerifyInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            signing::verify_init(library, session, mechanism, key)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Verifies in one go.
    fn C_Verify(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        signature: *mut CK_BYTE,
        signature_length: CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: by the caller's promise.
        let input = unsafe {
            bytes(data, data_length)
                .and_then(|data| Ok((data, bytes(signature, signature_length)?)))
        };
        let (data, signature) = or_end(input, &library, session, signing::verify_abort)?;
        signing::verify(&library, session, data, signature)
    }

    /// Takes a part of what is verified.
    fn C_VerifyUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { take(session, part, length, signing::verify_abort, signing::verify_update) }
    }

    /// Says whether the signature matches.
    fn C_VerifyFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: CK_ULONG,
    ) {
        let (end, work): (End, Take) = (signing::verify_abort, signing::verify_final);
        // SAFETY: by the caller's promise.
        unsafe { take(session, signature, signature_length, end, work) }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashing, signing and verifying (PKCS#11 2.40 sections 5.10 to 5.12).

use cryptoki_sys::*;

use super::entries;
use super::memory::{bytes, deliver, mechanism, room};
use crate::hashing;
use crate::library::{Library, current};
use crate::rv::{Result, Rv};
use crate::signing;

/// Bad arguments end an operation, as every error does (PKCS#11 2.40 sections 5.10 to 5.12).
fn or_end<T>(
    result: Result<T>,
    library: &Library,
    session: CK_SESSION_HANDLE,
    end: fn(&Library, CK_SESSION_HANDLE) -> Result,
) -> Result<T> {
    result.or_else(|Rv(rv)| {
        end(library, session)?;
        Err(Rv(rv))
    })
}

entries! {
    /// Begins to hash.
    fn C_DigestInit(session: CK_SESSION_HANDLE, pointer: *mut CK_MECHANISM) {
        let library = current()?;
        library.session(session)?;
        // SAFETY: null or a mechanism by the caller's promise.
        let mechanism = unsafe { mechanism(pointer)? };
        hashing::init(&library, session, mechanism.as_ref())
    }

    /// Hashes in one go.
    fn C_Digest(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        digest: *mut CK_BYTE,
        digest_length: *mut CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: null or as long as they say by the caller's promise.
        unsafe {
            let input = bytes(data, data_length)
                .and_then(|data| Ok((data, room(digest, digest_length)?)));
            let (data, room) = or_end(input, &library, session, hashing::abort)?;
            let output = hashing::finish(&library, session, data, room)?;
            deliver(output, digest, digest_length)
        }
    }

    /// Hashes a part.
    fn C_DigestUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        let part = unsafe { bytes(part, length) };
        let part = or_end(part, &library, session, hashing::abort)?;
        hashing::update(&library, session, part)
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
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        unsafe {
            let room = or_end(room(digest, digest_length), &library, session, hashing::abort)?;
            deliver(hashing::finish(&library, session, &[], room)?, digest, digest_length)
        }
    }

    /// Begins a signature.
    fn C_SignInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        // SAFETY: null or a mechanism by the caller's promise.
        let mechanism = unsafe { mechanism(pointer)? };
        signing::sign_init(&library, session, mechanism.as_ref(), key)
    }

    /// Signs in one go.
    fn C_Sign(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: null or as long as they say by the caller's promise.
        unsafe {
            let input = bytes(data, data_length)
                .and_then(|data| Ok((data, room(signature, signature_length)?)));
            let (data, room) = or_end(input, &library, session, signing::sign_abort)?;
            let output = signing::sign(&library, session, data, room)?;
            deliver(output, signature, signature_length)
        }
    }

    /// Takes a part of what is signed.
    fn C_SignUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        let part = unsafe { bytes(part, length) };
        let part = or_end(part, &library, session, signing::sign_abort)?;
        signing::sign_update(&library, session, part)
    }

    /// Gives the signature.
    fn C_SignFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        unsafe {
            let room = room(signature, signature_length);
            let room = or_end(room, &library, session, signing::sign_abort)?;
            deliver(signing::sign_final(&library, session, room)?, signature, signature_length)
        }
    }

    /// Begins to verify.
    fn C_VerifyInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        // SAFETY: null or a mechanism by the caller's promise.
        let mechanism = unsafe { mechanism(pointer)? };
        signing::verify_init(&library, session, mechanism.as_ref(), key)
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
        // SAFETY: null or as long as they say by the caller's promise.
        let input = unsafe {
            bytes(data, data_length)
                .and_then(|data| Ok((data, bytes(signature, signature_length)?)))
        };
        let (data, signature) = or_end(input, &library, session, signing::verify_abort)?;
        signing::verify(&library, session, data, signature)
    }

    /// Takes a part of what is verified.
    fn C_VerifyUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        let part = unsafe { bytes(part, length) };
        let part = or_end(part, &library, session, signing::verify_abort)?;
        signing::verify_update(&library, session, part)
    }

    /// Says whether the signature matches.
    fn C_VerifyFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        let signature = unsafe { bytes(signature, signature_length) };
        let signature = or_end(signature, &library, session, signing::verify_abort)?;
        signing::verify_final(&library, session, signature)
    }
}

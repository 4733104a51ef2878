// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key management and random numbers (PKCS#11 2.40 sections 5.13 and 5.14).

use std::ptr;

use cryptoki_sys::*;

use super::entries;
use super::memory::{not_null, put, some_mechanism, template};
use crate::keys;
use crate::library::current;
use crate::rv::fail;

entries! {
    /// Has the card generate a key pair.
    fn C_GenerateKeyPair(
        session: CK_SESSION_HANDLE,
        mechanism: *mut CK_MECHANISM,
        public_attributes: *mut CK_ATTRIBUTE,
        public_count: CK_ULONG,
        private_attributes: *mut CK_ATTRIBUTE,
        private_count: CK_ULONG,
        public_key: *mut CK_OBJECT_HANDLE,
        private_key: *mut CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(public_key)?;
        not_null(private_key)?;
        // SAFETY: all are as long as they say, and both handles have room, by the caller's
        // promise.
        unsafe {
            let mechanism = some_mechanism(mechanism)?;
            let public = template(public_attributes, public_count)?;
            let private = template(private_attributes, private_count)?;
            let pair = keys::generate_pair(&library, session, &mechanism, &public, &private)?;
            put(public_key, pair.0)?;
            put(private_key, pair.1)
        }
    }

    /// Derives a shared secret.
    fn C_DeriveKey(
        session: CK_SESSION_HANDLE,
        mechanism: *mut CK_MECHANISM,
        base: CK_OBJECT_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        key: *mut CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(key)?;
        // SAFETY: all are as long as they say, and the handle has room, by the caller's promise.
        unsafe {
            let mechanism = some_mechanism(mechanism)?;
            let template = template(attributes, count)?;
            put(key, keys::derive(&library, session, &mechanism, base, &template)?)
        }
    }

    /// The card's generator takes no seed.
    fn C_SeedRandom(session: CK_SESSION_HANDLE, seed: *mut CK_BYTE, _length: CK_ULONG) {
        current()?.session(session)?;
        not_null(seed)?;
        fail(CKR_RANDOM_SEED_NOT_SUPPORTED)
    }

    /// Random bytes of the card's.
    fn C_GenerateRandom(session: CK_SESSION_HANDLE, room: *mut CK_BYTE, length: CK_ULONG) {
        let library = current()?;
        library.session(session)?;
        not_null(room)?;
        let bytes = keys::random(&library, session, length as usize)?;
        // SAFETY: `length` bytes of room by the caller's promise, and as many are given.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
        Ok(())
    }
}

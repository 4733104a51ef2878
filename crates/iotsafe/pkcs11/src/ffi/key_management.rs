// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key management functions (PKCS#11 2.40 section 5.14).

use cryptoki_sys::*;

use super::entries;
use super::memory::{not_null, put, some_mechanism, template};
use crate::functions::general_purpose::current;
use crate::functions::key_management::{derive_key, generate_key_pair};

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
            let pair = generate_key_pair(&library, session, &mechanism, &public, &private)?;
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
            put(key, derive_key(&library, session, &mechanism, base, &template)?)
        }
    }
}

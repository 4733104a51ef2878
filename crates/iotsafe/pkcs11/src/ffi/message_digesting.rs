// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message digesting functions (PKCS#11 2.40 section 5.10).

use cryptoki_sys::*;

use super::entries;
use super::operation::{NO_DATA, begin, finish, update};
use crate::functions::general_purpose::current;
use crate::functions::message_digesting::{
    digest, digest_abort, digest_init, digest_key, digest_update,
};
use crate::library::Library;
use crate::mechanism::Mechanism;

entries! {
    /// Begins a digest.
    fn C_DigestInit(session: CK_SESSION_HANDLE, pointer: *mut CK_MECHANISM) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            digest_init(library, session, mechanism)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Digests data in one call.
    fn C_Digest(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        output: *mut CK_BYTE,
        output_length: *mut CK_ULONG,
    ) {
        let (data, output) = ((data.cast_const(), data_length), (output, output_length));
        // SAFETY: by the caller's promise.
        unsafe { finish(session, data, output, digest_abort, digest) }
    }

    /// Digests a part of the data.
    fn C_DigestUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { update(session, part, length, digest_abort, digest_update) }
    }

    /// Digests the value of a secret key.
    fn C_DigestKey(session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) {
        digest_key(&*current()?, session, key)
    }

    /// Returns the digest.
    fn C_DigestFinal(
        session: CK_SESSION_HANDLE,
        output: *mut CK_BYTE,
        output_length: *mut CK_ULONG,
    ) {
        // SAFETY: by the caller's promise.
        unsafe { finish(session, NO_DATA, (output, output_length), digest_abort, digest) }
    }
}

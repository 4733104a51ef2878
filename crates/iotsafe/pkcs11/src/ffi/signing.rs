// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing functions (PKCS#11 2.40 section 5.11).

use cryptoki_sys::*;

use super::entries;
use super::operation::{Finish, NO_DATA, begin, finish, update};
use crate::functions::signing::{sign, sign_abort, sign_final, sign_init, sign_update};
use crate::library::Library;
use crate::mechanism::Mechanism;

entries! {
    /// Begins a signature.
    fn C_SignInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            sign_init(library, session, mechanism, key)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Signs data in one call.
    fn C_Sign(
        session: CK_SESSION_HANDLE,
        data: *mut CK_BYTE,
        data_length: CK_ULONG,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let (data, output) = ((data.cast_const(), data_length), (signature, signature_length));
        // SAFETY: by the caller's promise.
        unsafe { finish(session, data, output, sign_abort, sign) }
    }

    /// Signs a part of the data.
    fn C_SignUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { update(session, part, length, sign_abort, sign_update) }
    }

    /// Returns the signature.
    fn C_SignFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: *mut CK_ULONG,
    ) {
        let output = (signature, signature_length);
        let function: Finish = |library, session, _, size| sign_final(library, session, size);
        // SAFETY: by the caller's promise.
        unsafe { finish(session, NO_DATA, output, sign_abort, function) }
    }
}

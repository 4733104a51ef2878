// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions for verifying signatures (PKCS#11 2.40 section 5.12).

use cryptoki_sys::*;

use super::entries;
use super::memory::bytes;
use super::operation::{begin, or_abort, update};
use crate::functions::general_purpose::current;
use crate::functions::verifying::{verify, verify_abort, verify_final, verify_init, verify_update};
use crate::library::Library;
use crate::mechanism::Mechanism;

entries! {
    /// Begins a verification.
    fn C_VerifyInit(
        session: CK_SESSION_HANDLE,
        pointer: *mut CK_MECHANISM,
        key: CK_OBJECT_HANDLE,
    ) {
        let init = |library: &Library, mechanism: Option<&Mechanism>| {
            verify_init(library, session, mechanism, key)
        };
        // SAFETY: by the caller's promise.
        unsafe { begin(session, pointer, init) }
    }

    /// Verifies a signature in one call.
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
        let (data, signature) = or_abort(input, &library, session, verify_abort)?;
        verify(&library, session, data, signature)
    }

    /// Verifies a part of the data.
    fn C_VerifyUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, length: CK_ULONG) {
        // SAFETY: by the caller's promise.
        unsafe { update(session, part, length, verify_abort, verify_update) }
    }

    /// Checks the signature.
    fn C_VerifyFinal(
        session: CK_SESSION_HANDLE,
        signature: *mut CK_BYTE,
        signature_length: CK_ULONG,
    ) {
        // SAFETY: by the caller's promise.
        unsafe { update(session, signature, signature_length, verify_abort, verify_final) }
    }
}

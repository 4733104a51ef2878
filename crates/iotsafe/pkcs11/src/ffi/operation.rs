// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the functions for digests, signatures and verifications share.

use std::ptr;

use cryptoki_sys::*;

use super::memory::{buffer_size, bytes, deliver, mechanism};
use crate::functions::general_purpose::current;
use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::output::{BufferSize, Output};
use crate::rv::{Result, Rv};

/// The data of a call without data.
pub(super) const NO_DATA: (*const CK_BYTE, CK_ULONG) = (ptr::null(), 0);

/// Ends an operation.
pub(super) type Abort = fn(&Library, CK_SESSION_HANDLE) -> Result;
/// Takes data and returns a result of variable length.
pub(super) type Finish = fn(&Library, CK_SESSION_HANDLE, &[u8], BufferSize) -> Result<Output>;
/// Takes data.
pub(super) type Update = fn(&Library, CK_SESSION_HANDLE, &[u8]) -> Result;

/// Ends the operation after bad arguments, as after every error (PKCS#11 2.40 sections 5.10 to
/// 5.12).
pub(super) fn or_abort<T>(
    result: Result<T>,
    library: &Library,
    session: CK_SESSION_HANDLE,
    abort: Abort,
) -> Result<T> {
    result.or_else(|Rv(rv)| {
        abort(library, session)?;
        Err(Rv(rv))
    })
}

/// C_DigestInit, C_SignInit and C_VerifyInit.
///
/// # Safety
/// `pointer` is null or leads to a mechanism.
pub(super) unsafe fn begin(
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

/// C_Digest, C_Sign and, without data, C_DigestFinal and C_SignFinal.
///
/// # Safety
/// `data` and `output` are null or as long as the lengths beside them say; those are null or
/// lead to a CK_ULONG.
pub(super) unsafe fn finish(
    session: CK_SESSION_HANDLE,
    data: (*const CK_BYTE, CK_ULONG),
    output: (*mut CK_BYTE, *mut CK_ULONG),
    abort: Abort,
    function: Finish,
) -> Result {
    let library = current()?;
    // SAFETY: by the caller's promise.
    unsafe {
        let input =
            bytes(data.0, data.1).and_then(|data| Ok((data, buffer_size(output.0, output.1)?)));
        let (data, size) = or_abort(input, &library, session, abort)?;
        deliver(function(&library, session, data, size)?, output.0, output.1)
    }
}

/// C_DigestUpdate, C_SignUpdate, C_VerifyUpdate and C_VerifyFinal.
///
/// # Safety
/// `data` is null or as long as `length` says.
pub(super) unsafe fn update(
    session: CK_SESSION_HANDLE,
    data: *const CK_BYTE,
    length: CK_ULONG,
    abort: Abort,
    function: Update,
) -> Result {
    let library = current()?;
    // SAFETY: by the caller's promise.
    let data = or_abort(unsafe { bytes(data, length) }, &library, session, abort)?;
    function(&library, session, data)
}

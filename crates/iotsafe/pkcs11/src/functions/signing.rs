// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing functions (PKCS#11 2.40 section 5.11).

use cryptoki_sys::*;

use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::operation::{SIGNATURE_BYTES, SignOperation};
use crate::output::{BufferSize, Output};
use crate::rv::{Result, Rv, fail};
use crate::session::Select;

const SIGN: Select<SignOperation> = |operations| &mut operations.sign;

/// C_SignInit.
pub fn sign_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
    key: CK_OBJECT_HANDLE,
) -> Result {
    library
        .session(session)?
        .begin(SIGN, mechanism, |slot, mechanism| SignOperation::new(slot, mechanism, key))
}

/// C_Sign. Ends the operation, unless the caller asks for the length or the buffer is too small.
pub fn sign(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    buffer: BufferSize,
) -> Result<Output> {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let operation = operations.sign.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if operation.message.in_parts {
        // C_Sign cannot end what C_SignUpdate began.
        operations.sign = None;
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    if let Some(answer) = buffer.unless_fits(SIGNATURE_BYTES) {
        return Ok(answer);
    }
    let mut operation = operations.sign.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.message.update(data);
    operation.finish(&session.slot)
}

/// C_SignUpdate.
pub fn sign_update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let operation = operations.sign.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.message.in_parts = true;
    operation.message.update(data);
    Ok(())
}

/// C_SignFinal.
pub fn sign_final(
    library: &Library,
    session: CK_SESSION_HANDLE,
    buffer: BufferSize,
) -> Result<Output> {
    let session = library.session(session)?;
    let mut operations = session.operations();
    if operations.sign.is_none() {
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    if let Some(answer) = buffer.unless_fits(SIGNATURE_BYTES) {
        return Ok(answer);
    }
    let operation = operations.sign.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.finish(&session.slot)
}

/// Ends a signature after a call with bad arguments.
pub fn sign_abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    library.session(session)?.abandon(SIGN);
    Ok(())
}

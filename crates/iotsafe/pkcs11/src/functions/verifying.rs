// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions for verifying signatures (PKCS#11 2.40 section 5.12).

use cryptoki_sys::*;

use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::operation::VerifyOperation;
use crate::rv::{Result, Rv, fail};
use crate::session::Select;

const VERIFY: Select<VerifyOperation> = |operations| &mut operations.verify;

/// C_VerifyInit.
pub fn verify_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
    key: CK_OBJECT_HANDLE,
) -> Result {
    library
        .session(session)?
        .begin(VERIFY, mechanism, |slot, mechanism| VerifyOperation::new(slot, mechanism, key))
}

/// C_Verify.
pub fn verify(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    signature: &[u8],
) -> Result {
    let session = library.session(session)?;
    let mut operation =
        session.operations().verify.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if operation.message.in_parts {
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    operation.message.update(data);
    operation.finish(signature)
}

/// C_VerifyUpdate.
pub fn verify_update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let operation = operations.verify.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.message.in_parts = true;
    operation.message.update(data);
    Ok(())
}

/// C_VerifyFinal.
pub fn verify_final(library: &Library, session: CK_SESSION_HANDLE, signature: &[u8]) -> Result {
    let session = library.session(session)?;
    let operation = session.operations().verify.take();
    operation.ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?.finish(signature)
}

/// Ends a verification after a call with bad arguments.
pub fn verify_abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    library.session(session)?.abandon(VERIFY);
    Ok(())
}

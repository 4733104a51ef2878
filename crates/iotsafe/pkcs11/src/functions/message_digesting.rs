// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message digesting functions (PKCS#11 2.40 section 5.10).

use cryptoki_sys::*;

use crate::digest::Digest;
use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::object::{Kind, Object};
use crate::output::{BufferSize, Output};
use crate::rv::{Result, Rv, fail};
use crate::session::Select;

const DIGEST: Select<Digest> = |operations| &mut operations.digest;

/// C_DigestInit.
pub fn digest_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
) -> Result {
    let session = library.session(session)?;
    session.begin(DIGEST, mechanism, |_, mechanism| Ok(Digest::new(mechanism.digest()?)))
}

/// C_Digest, and C_DigestFinal with no data.
pub fn digest(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    buffer: BufferSize,
) -> Result<Output> {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let digest = operations.digest.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if let Some(answer) = buffer.unless_fits(digest.length_bytes()) {
        return Ok(answer);
    }
    let mut digest = operations.digest.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    digest.update(data);
    Ok(Output::bytes(digest.value()))
}

/// C_DigestUpdate.
pub fn digest_update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    operations.digest.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?.update(data);
    Ok(())
}

/// C_DigestKey: digests the value of a derived secret.
pub fn digest_key(library: &Library, session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let digest = operations.digest.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    match &*session.slot.object(key, CKR_KEY_HANDLE_INVALID)? {
        Object { kind: Kind::Secret(secret), .. } => {
            digest.update(secret.value.expose());
            Ok(())
        }
        _ => fail(CKR_KEY_INDIGESTIBLE),
    }
}

/// Ends a digest after a call with bad arguments.
pub fn digest_abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    library.session(session)?.abandon(DIGEST);
    Ok(())
}

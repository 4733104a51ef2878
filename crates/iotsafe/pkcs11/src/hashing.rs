// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C_Digest (PKCS#11 2.40 section 5.10).

use cryptoki_sys::*;

use crate::digest::Digest;
use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::object::{Kind, Object};
use crate::output::{Output, Room};
use crate::rv::{Result, Rv, fail};
use crate::session::{self, Of};
use crate::slot::Slot;

const OF: Of<Digest> = |active| &mut active.digest;

/// C_DigestInit.
pub fn init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
) -> Result {
    let new = |_: &Slot, mechanism: &Mechanism| Ok(Digest::new(mechanism.digest()?));
    session::begin(library, session, mechanism, OF, new)
}

/// C_Digest, and C_DigestFinal with no data.
pub fn finish(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    room: Room,
) -> Result<Output> {
    let session = library.session(session)?;
    let mut active = session.active();
    let digest = active.digest.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if let Some(answer) = room.unless_fits(digest.length_bytes()) {
        return Ok(answer);
    }
    let mut digest = active.digest.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    digest.update(data);
    Ok(Output::bytes(digest.value()))
}

/// C_DigestUpdate.
pub fn update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    active.digest.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?.update(data);
    Ok(())
}

/// C_DigestKey: a shared secret that may be seen.
pub fn key(library: &Library, session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    let digest = active.digest.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    match &*session.slot.object(key, CKR_KEY_HANDLE_INVALID)? {
        Object { kind: Kind::Secret(secret), .. } => {
            digest.update(secret.value.expose());
            Ok(())
        }
        _ => fail(CKR_KEY_INDIGESTIBLE),
    }
}

/// Ends a digest whose caller gave bad arguments.
pub fn abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    session::abandon(library, session, OF)
}

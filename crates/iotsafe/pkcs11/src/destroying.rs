// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C_DestroyObject (PKCS#11 2.40 section 5.7).

use cryptoki_sys::*;

use crate::library::Library;
use crate::object::Kind;
use crate::rv::{Result, fail};

/// What sessions added goes. IoT SAFE has no command that deletes: a key pair whose place may be
/// generated in is destroyed by a new one that nobody gets a handle of, and the place is free for
/// this process; another finds the new pair there. All else stays, for the card keeps it.
pub fn destroy(library: &Library, session: CK_SESSION_HANDLE, handle: CK_OBJECT_HANDLE) -> Result {
    let session = library.session(session)?;
    let slot = &session.slot;
    let object = slot.object(handle, CKR_OBJECT_HANDLE_INVALID)?;
    if object.session.is_none() && !session.read_write {
        return fail(CKR_SESSION_READ_ONLY);
    }
    match &object.kind {
        _ if object.session.is_some() => {}
        Kind::PrivateKey(key) if key.replaceable => {
            slot.ask(|token, deadline| token.generate(&key.card_id, deadline))?;
            library.end_operations_with(slot, &key.card_id);
            slot.objects().destroyed(key);
        }
        // The half of a pair whose private key is no more.
        Kind::PublicKey(key) if slot.objects().is_destroyed_half(key.card_id.as_deref()) => {}
        _ => return fail(CKR_ACTION_PROHIBITED),
    }
    slot.objects().remove(handle);
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Object management functions (PKCS#11 2.40 section 5.7).

use std::sync::OnceLock;

use cryptoki_sys::*;

use crate::der;
use crate::library::Library;
use crate::object::{Attribute, Kind, Object, PublicKey};
use crate::rv::{Result, Rv, fail};
use crate::template::{PUBLIC_KEY_ATTRIBUTES, Template};

/// C_CreateObject: session objects only, and only public keys, to verify with. A card stores no
/// objects for its users.
pub fn create_object(
    library: &Library,
    session: CK_SESSION_HANDLE,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let session = library.session(session)?;
    let class = template.number(CKA_CLASS)?.ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    let on_token = template.flag(CKA_TOKEN)? == Some(true);
    if on_token && !session.read_write {
        return fail(CKR_SESSION_READ_ONLY);
    }
    if on_token {
        return fail(CKR_TOKEN_WRITE_PROTECTED);
    }
    if class != CKO_PUBLIC_KEY {
        return fail(CKR_TEMPLATE_INCONSISTENT);
    }
    let key_type = template.number(CKA_KEY_TYPE)?.ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    if key_type != CKK_EC {
        return fail(CKR_TEMPLATE_INCONSISTENT);
    }
    for kind in [CKA_ENCRYPT, CKA_VERIFY_RECOVER, CKA_WRAP, CKA_TRUSTED, CKA_LOCAL] {
        if template.flag(kind)? == Some(true) {
            let read_only = matches!(kind, CKA_TRUSTED | CKA_LOCAL);
            let rv = if read_only { CKR_ATTRIBUTE_READ_ONLY } else { CKR_TEMPLATE_INCONSISTENT };
            return fail(rv);
        }
    }
    template.only(&[&PUBLIC_KEY_ATTRIBUTES, &[CKA_LOCAL, CKA_EC_POINT]])?;
    let params = template.get(CKA_EC_PARAMS).ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    let point = template.get(CKA_EC_POINT).ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    let curve = der::curve(params).ok_or(Rv(CKR_CURVE_NOT_SUPPORTED))?;
    let point = der::point(point).filter(|point| curve.point(point).is_some());
    let point = point.ok_or(Rv(CKR_ATTRIBUTE_VALUE_INVALID))?;
    let key = PublicKey {
        card_id: None,
        curve,
        verify: template.flag(CKA_VERIFY)?.unwrap_or(true),
        point: OnceLock::from(point),
    };
    let object = Object {
        kind: Kind::PublicKey(key),
        label: template.get(CKA_LABEL).unwrap_or_default().to_vec(),
        id: template.get(CKA_ID).unwrap_or_default().to_vec(),
        private: template.flag(CKA_PRIVATE)?.unwrap_or(false),
        session: Some(session.handle),
        local: false,
        subject: template.get(CKA_SUBJECT).unwrap_or_default().to_vec(),
    };
    if object.private && !session.slot.is_logged_in() {
        return fail(CKR_USER_NOT_LOGGED_IN);
    }
    Ok(session.slot.objects().add(object))
}

/// C_SetAttributeValue and C_CopyObject: objects are neither modifiable nor copyable.
pub fn refuse_change(
    library: &Library,
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
) -> Result {
    let session = library.session(session)?;
    let object = session.slot.object(object, CKR_OBJECT_HANDLE_INVALID)?;
    if object.session.is_none() && !session.read_write {
        return fail(CKR_SESSION_READ_ONLY);
    }
    fail(CKR_ACTION_PROHIBITED)
}

/// C_DestroyObject. Removes session objects. IoT SAFE has no command that deletes, so a key pair
/// that may be generated anew is destroyed by generating another, to which nobody gets a handle:
/// this process sees the slot as free, another one finds the new pair. Other objects of the token
/// cannot be destroyed.
pub fn destroy_object(
    library: &Library,
    session: CK_SESSION_HANDLE,
    handle: CK_OBJECT_HANDLE,
) -> Result {
    let session = library.session(session)?;
    let slot = &session.slot;
    let object = slot.object(handle, CKR_OBJECT_HANDLE_INVALID)?;
    if object.session.is_none() && !session.read_write {
        return fail(CKR_SESSION_READ_ONLY);
    }
    match &object.kind {
        // A volatile key of the card: its container is free for others.
        Kind::PrivateKey(key) if object.session.is_some() => {
            library.end_signatures_with(slot, &key.card_id);
            slot.give_back(&key.card_id);
        }
        _ if object.session.is_some() => {}
        Kind::PrivateKey(key) if key.replaceable => {
            slot.with_token(|token, deadline| token.generate(&key.card_id, deadline))?;
            library.end_signatures_with(slot, &key.card_id);
            slot.objects().mark_destroyed(key);
        }
        // The public half of a pair whose private key has been destroyed.
        Kind::PublicKey(key) if slot.objects().is_half_of_destroyed(key.card_id.as_deref()) => {}
        _ => return fail(CKR_ACTION_PROHIBITED),
    }
    slot.objects().remove(handle);
    Ok(())
}

/// C_GetObjectSize: an estimate of the size here, since cards do not tell theirs.
pub fn get_object_size(
    library: &Library,
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
) -> Result<usize> {
    let session = library.session(session)?;
    let object = session.slot.object(object, CKR_OBJECT_HANDLE_INVALID)?;
    let content = match &object.kind {
        Kind::Certificate(certificate) => certificate.value.len(),
        Kind::Data(content) => content.len(),
        Kind::Secret(secret) => secret.value.expose().len(),
        Kind::PrivateKey(_) => 32,
        Kind::PublicKey(_) => 65,
    };
    Ok(content + object.label.len() + object.id.len())
}

/// C_GetAttributeValue: the attributes in the order of `kinds`.
pub fn get_attribute_value(
    library: &Library,
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    kinds: &[CK_ATTRIBUTE_TYPE],
) -> Result<Vec<Attribute>> {
    let session = library.session(session)?;
    let object = session.slot.object(object, CKR_OBJECT_HANDLE_INVALID)?;
    kinds
        .iter()
        .map(|kind| {
            session.slot.prepare(&object, *kind)?;
            Ok(object.attribute(*kind))
        })
        .collect()
}

/// C_FindObjectsInit.
pub fn find_objects_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    template: &Template,
) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    if operations.find.is_some() {
        return fail(CKR_OPERATION_ACTIVE);
    }
    operations.find = Some(session.slot.find(template)?);
    Ok(())
}

/// C_FindObjects: the next handles, at most `count_max`.
pub fn find_objects(
    library: &Library,
    session: CK_SESSION_HANDLE,
    count_max: usize,
) -> Result<Vec<CK_OBJECT_HANDLE>> {
    let session = library.session(session)?;
    let mut operations = session.operations();
    let remaining = operations.find.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    Ok(remaining.drain(..count_max.min(remaining.len())).collect())
}

/// C_FindObjectsFinal.
pub fn find_objects_final(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    let session = library.session(session)?;
    let ended = session.operations().find.take();
    ended.map(drop).ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))
}

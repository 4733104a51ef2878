// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Object management (PKCS#11 2.40 section 5.7).

use cryptoki_sys::*;

use super::entries;
use super::memory::{deliver_attributes, not_null, put, raw_attributes, template};
use crate::destroying;
use crate::finding;
use crate::library::current;

entries! {
    /// Adds an object to a session.
    fn C_CreateObject(
        session: CK_SESSION_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        object: *mut CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(object)?;
        not_null(attributes)?;
        // SAFETY: `count` attributes, and room for a handle, by the caller's promise.
        unsafe {
            let template = template(attributes, count)?;
            put(object, finding::create(&library, session, &template)?)
        }
    }

    /// Copies an object: none is copyable.
    fn C_CopyObject(
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        _attributes: *mut CK_ATTRIBUTE,
        _count: CK_ULONG,
        copy: *mut CK_OBJECT_HANDLE,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(copy)?;
        finding::change(&library, session, object)
    }

    /// Takes an object away.
    fn C_DestroyObject(session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) {
        destroying::destroy(&*current()?, session, object)
    }

    /// How large an object is.
    fn C_GetObjectSize(
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        size: *mut CK_ULONG,
    ) {
        let found = finding::size(&*current()?, session, object)?;
        // SAFETY: null or room for it by the caller's promise.
        unsafe { put(size, found as CK_ULONG) }
    }

    /// Attributes of an object.
    fn C_GetAttributeValue(
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(attributes)?;
        // SAFETY: `count` attributes, each with room for its length, by the caller's promise.
        unsafe {
            let kinds: Vec<CK_ATTRIBUTE_TYPE> =
                raw_attributes(attributes, count)?.iter().map(|raw| raw.type_).collect();
            let found = finding::attributes(&library, session, object, &kinds)?;
            deliver_attributes(&found, attributes)
        }
    }

    /// Changes attributes: no object is modifiable.
    fn C_SetAttributeValue(
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        _count: CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(attributes)?;
        finding::change(&library, session, object)
    }

    /// Begins a search.
    fn C_FindObjectsInit(
        session: CK_SESSION_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        // SAFETY: null or `count` attributes by the caller's promise.
        let template = unsafe { template(attributes, count)? };
        finding::init(&library, session, &template)
    }

    /// Goes on with it.
    fn C_FindObjects(
        session: CK_SESSION_HANDLE,
        list: *mut CK_OBJECT_HANDLE,
        most: CK_ULONG,
        count: *mut CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(list)?;
        not_null(count)?;
        let found = finding::next(&library, session, most as usize)?;
        for (at, handle) in found.iter().enumerate() {
            // SAFETY: `at` is below the number of handles that the caller has room for.
            unsafe { put(list.add(at), *handle)? };
        }
        // SAFETY: room for it by the caller's promise.
        unsafe { put(count, found.len() as CK_ULONG) }
    }

    /// Ends it.
    fn C_FindObjectsFinal(session: CK_SESSION_HANDLE) {
        finding::end(&*current()?, session)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Object management functions (PKCS#11 2.40 section 5.7).

use cryptoki_sys::*;

use super::entries;
use super::memory::{deliver_attributes, not_null, put, raw_attributes, template};
use crate::functions::general_purpose::current;
use crate::functions::object_management::{
    create_object, destroy_object, find_objects, find_objects_final, find_objects_init,
    get_attribute_value, get_object_size, refuse_change,
};

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
            put(object, create_object(&library, session, &template)?)
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
        refuse_change(&library, session, object)
    }

    /// Destroys an object.
    fn C_DestroyObject(session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) {
        destroy_object(&*current()?, session, object)
    }

    /// The size of an object.
    fn C_GetObjectSize(
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        size: *mut CK_ULONG,
    ) {
        let found = get_object_size(&*current()?, session, object)?;
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
            let found = get_attribute_value(&library, session, object, &kinds)?;
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
        refuse_change(&library, session, object)
    }

    /// Begins a search for objects.
    fn C_FindObjectsInit(
        session: CK_SESSION_HANDLE,
        attributes: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        // SAFETY: null or `count` attributes by the caller's promise.
        let template = unsafe { template(attributes, count)? };
        find_objects_init(&library, session, &template)
    }

    /// Continues a search for objects.
    fn C_FindObjects(
        session: CK_SESSION_HANDLE,
        list: *mut CK_OBJECT_HANDLE,
        count_max: CK_ULONG,
        count: *mut CK_ULONG,
    ) {
        let library = current()?;
        library.session(session)?;
        not_null(list)?;
        not_null(count)?;
        let found = find_objects(&library, session, count_max as usize)?;
        for (at, handle) in found.iter().enumerate() {
            // SAFETY: `at` is below the number of handles that the caller has room for.
            unsafe { put(list.add(at), *handle)? };
        }
        // SAFETY: room for it by the caller's promise.
        unsafe { put(count, found.len() as CK_ULONG) }
    }

    /// Ends a search for objects.
    fn C_FindObjectsFinal(session: CK_SESSION_HANDLE) {
        find_objects_final(&*current()?, session)
    }
}

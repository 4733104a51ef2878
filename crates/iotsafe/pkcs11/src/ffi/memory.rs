// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading from the caller's memory into types without pointers, and writing to it.

use std::ptr;
use std::slice;

use cryptoki_sys::*;

use crate::mechanism::{Mechanism, Parameter};
use crate::object::Attribute;
use crate::output::{BufferSize, Output};
use crate::rv::{Result, Rv, fail};
use crate::template::Template;

/// The most attributes of a template. The bound keeps a wrong count from reading all memory.
const ATTRIBUTES_MAX: CK_ULONG = 1024;
/// The most bytes of a single value, for the same reason.
const VALUE_MAX_BYTES: CK_ULONG = 1 << 24;

/// The caller's bytes. A null pointer is allowed with length 0.
///
/// # Safety
/// `pointer` is null or points to `length` bytes that stay as they are for `'a`.
pub(super) unsafe fn bytes<'a>(pointer: *const CK_BYTE, length: CK_ULONG) -> Result<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || isize::try_from(length).is_err() {
        return fail(CKR_ARGUMENTS_BAD);
    }
    // SAFETY: not null, `length` bytes by the caller's promise, no more than isize::MAX.
    Ok(unsafe { slice::from_raw_parts(pointer, length as usize) })
}

/// Writes a value to the caller's memory.
///
/// # Safety
/// `place` is null or points to room for a `T`.
pub(super) unsafe fn put<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return fail(CKR_ARGUMENTS_BAD);
    }
    // SAFETY: not null, room for a T by the caller's promise; alignment is not taken for granted.
    unsafe { ptr::write_unaligned(place, value) };
    Ok(())
}

/// Refuses a null pointer, before any work is done.
pub(super) fn not_null<T>(place: *const T) -> Result {
    if place.is_null() { fail(CKR_ARGUMENTS_BAD) } else { Ok(()) }
}

/// The size of the caller's buffer for a result of variable length.
///
/// # Safety
/// `length` is null or points to a CK_ULONG.
pub(super) unsafe fn buffer_size(
    buffer: *const CK_BYTE,
    length: *const CK_ULONG,
) -> Result<BufferSize> {
    not_null(length)?;
    if buffer.is_null() {
        return Ok(BufferSize(None));
    }
    // SAFETY: not null, a CK_ULONG by the caller's promise.
    Ok(BufferSize(Some(unsafe { ptr::read_unaligned(length) } as usize)))
}

/// Returns a result of variable length to the caller whose [`buffer_size`] it was made for.
///
/// # Safety
/// As [`buffer_size`]; `buffer` is null or has as many bytes as `*length` says.
pub(super) unsafe fn deliver(
    output: Output,
    buffer: *mut CK_BYTE,
    length: *mut CK_ULONG,
) -> Result {
    let (bytes, rv) = match &output {
        Output::Length(bytes) => (*bytes, None),
        Output::TooSmall(bytes) => (*bytes, Some(Rv(CKR_BUFFER_TOO_SMALL))),
        Output::Bytes(bytes) => {
            // SAFETY: `BufferSize::unless_fits` has checked that the buffer is not null and long
            // enough; it is the caller's, so it cannot overlap ours.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
            (bytes.len(), None)
        }
    };
    // SAFETY: `buffer_size` found it not null.
    unsafe { put(length, bytes as CK_ULONG)? };
    rv.map_or(Ok(()), Err)
}

/// Returns a list to the caller: its length alone, or its elements too.
///
/// # Safety
/// `list` is null or has room for `*count` elements; `count` is null or points to a CK_ULONG.
pub(super) unsafe fn deliver_list<T: Copy>(
    elements: &[T],
    list: *mut T,
    count: *mut CK_ULONG,
) -> Result {
    not_null(count)?;
    // SAFETY: not null, a CK_ULONG by the caller's promise.
    let room = unsafe { ptr::read_unaligned(count) } as usize;
    // SAFETY: as above.
    unsafe { put(count, elements.len() as CK_ULONG)? };
    if list.is_null() {
        return Ok(());
    }
    if room < elements.len() {
        return fail(CKR_BUFFER_TOO_SMALL);
    }
    for (at, element) in elements.iter().enumerate() {
        // SAFETY: `at` is below the number of elements that the caller has room for.
        unsafe { put(list.add(at), *element)? };
    }
    Ok(())
}

/// A template, copied.
///
/// # Safety
/// `attributes` is null or points to `count` of them, each value to its length.
pub(super) unsafe fn template(
    attributes: *const CK_ATTRIBUTE,
    count: CK_ULONG,
) -> Result<Template> {
    // SAFETY: by the caller's promise.
    let attributes = unsafe { raw_attributes(attributes, count)? };
    let mut copied = Vec::with_capacity(attributes.len());
    for attribute in attributes {
        let CK_ATTRIBUTE { type_, pValue, ulValueLen } = attribute;
        if ulValueLen > VALUE_MAX_BYTES || (pValue.is_null() && ulValueLen > 0) {
            return fail(CKR_ATTRIBUTE_VALUE_INVALID);
        }
        // SAFETY: not null unless empty, `ulValueLen` bytes by the caller's promise.
        let value = unsafe { bytes(pValue.cast(), ulValueLen)? };
        copied.push((type_, value.to_vec()));
    }
    Template::new(copied)
}

/// The attributes themselves: C_GetAttributeValue writes to their values.
///
/// # Safety
/// `attributes` is null or points to `count` of them.
pub(super) unsafe fn raw_attributes(
    attributes: *const CK_ATTRIBUTE,
    count: CK_ULONG,
) -> Result<Vec<CK_ATTRIBUTE>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if attributes.is_null() || count > ATTRIBUTES_MAX {
        return fail(CKR_ARGUMENTS_BAD);
    }
    // SAFETY: not null, `count` of them by the caller's promise; alignment not taken for granted.
    let read = |at| unsafe { ptr::read_unaligned(attributes.add(at)) };
    Ok((0..count as usize).map(read).collect())
}

/// Writes attributes for C_GetAttributeValue. Each is written whether or not another failed; then
/// one of the errors is returned (PKCS#11 2.40 section 5.7).
///
/// # Safety
/// `attributes` points to as many attributes as `found` has, each with room for its length.
pub(super) unsafe fn deliver_attributes(
    found: &[Attribute],
    attributes: *mut CK_ATTRIBUTE,
) -> Result {
    let mut result = Ok(());
    for (at, attribute) in found.iter().enumerate() {
        // SAFETY: `at` is below the number of the caller's attributes.
        let place = unsafe { attributes.add(at) };
        // SAFETY: as above; alignment is not taken for granted.
        let mut raw = unsafe { ptr::read_unaligned(place) };
        let delivered = match attribute {
            Attribute::Sensitive => fail(CKR_ATTRIBUTE_SENSITIVE),
            Attribute::Absent => fail(CKR_ATTRIBUTE_TYPE_INVALID),
            Attribute::Value(value) if raw.pValue.is_null() => Ok(value.len()),
            Attribute::Value(value) if (raw.ulValueLen as usize) < value.len() => {
                fail(CKR_BUFFER_TOO_SMALL)
            }
            Attribute::Value(value) => {
                // SAFETY: the caller's room is at least as long as the value.
                unsafe {
                    ptr::copy_nonoverlapping(value.as_ptr(), raw.pValue.cast(), value.len());
                }
                Ok(value.len())
            }
        };
        raw.ulValueLen = delivered.map_or(CK_UNAVAILABLE_INFORMATION, |length| length as CK_ULONG);
        // SAFETY: as for reading it.
        unsafe { ptr::write_unaligned(place, raw) };
        if let Err(rv) = delivered {
            result = Err(rv);
        }
    }
    result
}

/// A mechanism, copied; None for a null pointer.
///
/// # Safety
/// `mechanism` is null or points to one, its parameter to its length.
pub(super) unsafe fn mechanism(mechanism: *const CK_MECHANISM) -> Result<Option<Mechanism>> {
    if mechanism.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, a CK_MECHANISM by the caller's promise.
    let CK_MECHANISM { mechanism: kind, pParameter, ulParameterLen } =
        unsafe { ptr::read_unaligned(mechanism) };
    let is_ecdh = kind == CKM_ECDH1_DERIVE
        && ulParameterLen as usize == size_of::<CK_ECDH1_DERIVE_PARAMS>()
        && !pParameter.is_null();
    let parameter = if is_ecdh {
        // SAFETY: not null, and as long as the structure.
        let parameters: CK_ECDH1_DERIVE_PARAMS = unsafe { ptr::read_unaligned(pParameter.cast()) };
        let CK_ECDH1_DERIVE_PARAMS {
            kdf,
            ulSharedDataLen,
            pSharedData,
            ulPublicDataLen,
            pPublicData,
        } = parameters;
        if ulSharedDataLen > VALUE_MAX_BYTES || ulPublicDataLen > VALUE_MAX_BYTES {
            return fail(CKR_MECHANISM_PARAM_INVALID);
        }
        let wrong = |_| Rv(CKR_MECHANISM_PARAM_INVALID);
        // SAFETY: both are null or as long as they say, by the caller's promise.
        let (shared, public) = unsafe {
            (
                bytes(pSharedData, ulSharedDataLen).map_err(wrong)?.to_vec(),
                bytes(pPublicData, ulPublicDataLen).map_err(wrong)?.to_vec(),
            )
        };
        Parameter::Ecdh { kdf, shared, public }
    } else if ulParameterLen == 0 {
        // Whatever the pointer: some programs leave a stale one there.
        Parameter::None
    } else {
        Parameter::Other
    };
    Ok(Some(Mechanism { kind, parameter }))
}

/// A mechanism; null is refused.
///
/// # Safety
/// As [`mechanism`].
pub(super) unsafe fn some_mechanism(pointer: *const CK_MECHANISM) -> Result<Mechanism> {
    // SAFETY: by the caller's promise.
    unsafe { mechanism(pointer)? }.ok_or(Rv(CKR_ARGUMENTS_BAD))
}

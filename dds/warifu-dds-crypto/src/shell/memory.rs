// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that passes between Cyclone and the plugin: taken with `malloc`, given back with `free`,
//! which is what `ddsrt_malloc` and `ddsrt_free` do (ddsrt/src/heap/posix/heap.c).

use std::ffi::{CStr, c_char};
use std::{mem, ptr, slice};

use zeroize::Zeroize;

use super::abi::{BinaryProperty, DataHolder, Exception, OctetSeq, Property, Seq};
use crate::error::{Error, Result};
use crate::wire::Sink;

/// A buffer that the core will own.
pub struct Buffer {
    start: *mut u8,
    length: usize,
    capacity: usize,
}

impl Buffer {
    /// Of that capacity, which a sequence of Cyclone's can tell.
    #[inline]
    pub fn new(capacity: usize) -> Result<Self> {
        if u32::try_from(capacity).is_err() {
            return Err(Error::TooLong(capacity));
        }
        // SAFETY: malloc takes any size; of 0 its answer may be no place at all.
        let start = unsafe { libc::malloc(capacity.max(1)) }.cast::<u8>();
        if start.is_null() {
            return Err(Error::TooLong(capacity));
        }
        Ok(Self { start, length: 0, capacity })
    }

    /// Leaves it to the core.
    pub fn into_seq(self) -> OctetSeq {
        // `new` has seen to it that both fit.
        #[expect(clippy::cast_possible_truncation)]
        let (maximum, length) = (self.capacity as u32, self.length as u32);
        let seq = Seq { maximum, length, buffer: self.start };
        mem::forget(self);
        seq
    }
}

impl Sink for Buffer {
    #[inline]
    fn put(&mut self, octets: &[u8]) {
        // What is written has been counted before; an error there must not become one of memory.
        assert!(octets.len() <= self.capacity - self.length, "the buffer is too short");
        // SAFETY: start has capacity octets, of which the first length are in use; a slice from
        // elsewhere does not overlap them.
        unsafe {
            ptr::copy_nonoverlapping(octets.as_ptr(), self.start.add(self.length), octets.len());
        }
        self.length += octets.len();
    }

    #[inline]
    fn octets(&mut self) -> &mut [u8] {
        // SAFETY: the first length octets were written by put, and nobody else has the place.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: start came from malloc, and into_seq forgets the buffer that it gives away.
        unsafe { libc::free(self.start.cast()) }
    }
}

/// The elements of a sequence; none if it is null.
///
/// # Safety
/// `seq` is null or points to a sequence whose buffer has as many elements as it says.
pub unsafe fn elements<'a, T>(seq: *const Seq<T>) -> &'a [T] {
    // SAFETY: null, or a sequence, by the contract.
    let Some(seq) = (unsafe { seq.as_ref() }) else { return &[] };
    if seq.buffer.is_null() || seq.length == 0 {
        return &[];
    }
    // SAFETY: by the contract; lengths of 32 bit fit into usize on all targets of Cyclone.
    unsafe { slice::from_raw_parts(seq.buffer, seq.length as usize) }
}

/// A text of the core's; nothing if it is null or no UTF-8.
///
/// # Safety
/// `text` is null or ends with a zero.
pub unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// The value of a property.
///
/// # Safety
/// As for [`elements`] and [`text`].
pub unsafe fn property<'a>(properties: *const Seq<Property>, name: &str) -> Option<&'a str> {
    // SAFETY: by the contract.
    let mut all = unsafe { elements(properties) }.iter();
    // SAFETY: by the contract.
    let found = all.find(|property| unsafe { text(property.name) } == Some(name))?;
    // SAFETY: by the contract.
    unsafe { text(found.value) }
}

/// A text that the core will free.
pub fn leak(text: &str) -> *mut c_char {
    let Ok(mut buffer) = Buffer::new(text.len() + 1) else { return ptr::null_mut() };
    buffer.put(text.as_bytes());
    buffer.put(&[0]);
    buffer.into_seq().buffer.cast()
}

/// Elements that the core will free; nothing without memory.
pub fn leak_all<T>(elements: Vec<T>) -> Option<Seq<T>> {
    let count = elements.len();
    let length = u32::try_from(count).ok()?;
    if count == 0 {
        return Some(Seq { maximum: 0, length: 0, buffer: ptr::null_mut() });
    }
    // SAFETY: calloc takes any size, and malloc's alignment is enough for all types of the ABI.
    let buffer = unsafe { libc::calloc(count, size_of::<T>()) }.cast::<T>();
    if buffer.is_null() {
        return None;
    }
    for (index, element) in elements.into_iter().enumerate() {
        // SAFETY: within the count elements that were allocated.
        unsafe { buffer.add(index).write(element) }
    }
    Some(Seq { maximum: length, length, buffer })
}

/// Tells the core why.
///
/// # Safety
/// `exception` is null or points to one.
pub unsafe fn raise(exception: *mut Exception, error: &Error) {
    // SAFETY: by the contract.
    if let Some(exception) = unsafe { exception.as_mut() } {
        exception.message = leak(&error.to_string());
        exception.code = error.code();
        exception.minor_code = 0;
    }
}

/// Frees tokens with all that is in them; keys are overwritten first.
///
/// # Safety
/// `tokens` is null or points to a sequence whose parts were allocated with `malloc`.
pub unsafe fn free_tokens(tokens: *mut Seq<DataHolder>) {
    // SAFETY: by the contract, here and below.
    let Some(tokens) = (unsafe { tokens.as_mut() }) else { return };
    // SAFETY: see above.
    for token in unsafe { elements::<DataHolder>(tokens) } {
        // SAFETY: see above.
        unsafe {
            for property in elements::<Property>(&raw const token.properties) {
                libc::free(property.name.cast());
                libc::free(property.value.cast());
            }
            for property in elements::<BinaryProperty>(&raw const token.binary_properties) {
                let value = &property.value;
                if !value.buffer.is_null() {
                    let octets = slice::from_raw_parts_mut(value.buffer, value.length as usize);
                    octets.zeroize();
                }
                libc::free(property.name.cast());
                libc::free(value.buffer.cast());
            }
            libc::free(token.class_id.cast());
            libc::free(token.properties.buffer.cast());
            libc::free(token.binary_properties.buffer.cast());
        }
    }
    // SAFETY: see above.
    unsafe { libc::free(tokens.buffer.cast()) };
    *tokens = Seq { maximum: 0, length: 0, buffer: ptr::null_mut() };
}

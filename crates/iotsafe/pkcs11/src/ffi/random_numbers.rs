// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random number generation functions (PKCS#11 2.40 section 5.15).

use std::ptr;

use cryptoki_sys::*;

use super::entries;
use super::memory::not_null;
use crate::functions::general_purpose::current;
use crate::functions::random_numbers::generate_random;
use crate::rv::fail;

entries! {
    /// Seeds the generator, which that of a card does not support.
    fn C_SeedRandom(session: CK_SESSION_HANDLE, seed: *mut CK_BYTE, _length: CK_ULONG) {
        current()?.session(session)?;
        not_null(seed)?;
        fail(CKR_RANDOM_SEED_NOT_SUPPORTED)
    }

    /// Random bytes from the card.
    fn C_GenerateRandom(session: CK_SESSION_HANDLE, room: *mut CK_BYTE, length: CK_ULONG) {
        let library = current()?;
        library.session(session)?;
        not_null(room)?;
        let bytes = generate_random(&library, session, length as usize)?;
        // SAFETY: `length` bytes of room by the caller's promise, and as many are given.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
        Ok(())
    }
}

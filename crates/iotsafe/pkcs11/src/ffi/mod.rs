// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C shell: takes pointers apart, calls safe functions, puts results where pointers lead.
//!
//! Callers promise what PKCS#11 2.40 section 5 says of its pointers: each is null or leads to as
//! much as its length says, readable, and writable where the function writes. That is what every
//! `unsafe` here relies on; nothing outside this folder sees a pointer of a caller's.

mod crypto;
mod exit;
mod general;
mod keys;
mod list;
mod memory;
mod objects;
mod sessions;
mod unsupported;

pub use crypto::*;
pub use general::*;
pub use keys::*;
pub use list::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};
pub use objects::*;
pub use sessions::*;
pub use unsupported::*;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use cryptoki_sys::*;

use crate::library::current_trace;
use crate::rv::Result;

/// Runs a call: its value, a panic as CKR_GENERAL_ERROR, its line in the trace.
fn guard(name: &'static str, call: impl FnOnce() -> Result) -> CK_RV {
    let start = Instant::now();
    let before = current_trace();
    let value = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(rv)) => rv.0,
        Err(_) => CKR_GENERAL_ERROR,
    };
    // C_Initialize begins the trace, C_Finalize ends it.
    if let Some(trace) = before.or_else(current_trace) {
        trace.call(name, start, value);
    }
    value
}

/// Exported functions: `fn C_Name(argument: type, ...) { body }`, the body giving a Result.
macro_rules! entries {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers are as PKCS#11 2.40 section 5 says: null, or valid for their lengths.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> CK_RV {
            $crate::ffi::guard(stringify!($name), || $body)
        }
    )*};
}
use entries;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C shell: reads arguments from the caller's memory, calls the safe [`functions`], and writes
//! their results back. A file for each chapter, as there.
//!
//! Callers promise what PKCS#11 2.40 section 5 says of its pointers: each is null or points to
//! memory of the length given beside it, readable, and writable where the function writes. Every
//! `unsafe` here relies on that; nothing outside this folder sees a caller's pointer.
//!
//! [`functions`]: crate::functions

mod exit;
mod function_lists;
mod general_purpose;
mod key_management;
mod memory;
mod message_digesting;
mod object_management;
mod operation;
mod parallel_function_management;
mod random_numbers;
mod session_management;
mod signing;
mod slot_token_management;
mod unsupported;
mod verifying;

pub use function_lists::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};
pub use general_purpose::*;
pub use key_management::*;
pub use message_digesting::*;
pub use object_management::*;
pub use parallel_function_management::*;
pub use random_numbers::*;
pub use session_management::*;
pub use signing::*;
pub use slot_token_management::*;
pub use unsupported::*;
pub use verifying::*;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use cryptoki_sys::*;

use crate::functions::general_purpose::current_trace;
use crate::rv::Result;

/// Runs a call: returns its value, or CKR_GENERAL_ERROR after a panic, and traces it.
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

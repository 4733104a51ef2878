// SPDX-License-Identifier: Apache-2.0 OR MIT
//! General-purpose functions (PKCS#11 2.40 section 5.4).

use std::ffi::c_void;
use std::ptr;

use cryptoki_sys::*;

use super::memory::put;
use super::{entries, guard};
use crate::functions::general_purpose::{
    InitialiseArgs, VERSION_2_40, VERSION_3_0, current, finalise, get_info, initialise,
};
use crate::rv::{Result, fail};

entries! {
    /// Initialises the library in this process.
    fn C_Initialize(init_args: CK_VOID_PTR) {
        // SAFETY: null or CK_C_INITIALIZE_ARGS by the caller's promise.
        initialise(unsafe { arguments(init_args)? })
    }

    /// Ends the use of the library by this process.
    fn C_Finalize(reserved: CK_VOID_PTR) {
        if !reserved.is_null() {
            return fail(CKR_ARGUMENTS_BAD);
        }
        finalise()
    }

    /// Information on the library, as of PKCS#11 3.0.
    fn C_GetInfo(info: *mut CK_INFO) {
        // SAFETY: null or room for it by the caller's promise.
        unsafe { put_info(info, VERSION_3_0) }
    }
}

/// C_GetInfo of the function list of PKCS#11 2.40.
pub(super) unsafe extern "C" fn get_info_2_40(info: *mut CK_INFO) -> CK_RV {
    // SAFETY: null or room for it by the caller's promise.
    guard("C_GetInfo", || unsafe { put_info(info, VERSION_2_40) })
}

/// # Safety
/// `info` is null or leads to room for a CK_INFO.
unsafe fn put_info(info: *mut CK_INFO, version: CK_VERSION) -> Result {
    current()?;
    // SAFETY: by the caller's promise.
    unsafe { put(info, get_info(version)) }
}

/// The arguments of C_Initialize (PKCS#11 2.40 section 3.7).
///
/// # Safety
/// `arguments` is null or leads to CK_C_INITIALIZE_ARGS.
unsafe fn arguments(arguments: *const c_void) -> Result<InitialiseArgs> {
    if arguments.is_null() {
        return Ok(InitialiseArgs::default());
    }
    // SAFETY: not null, the structure by the caller's promise.
    let arguments: CK_C_INITIALIZE_ARGS = unsafe { ptr::read_unaligned(arguments.cast()) };
    if !arguments.pReserved.is_null() {
        return fail(CKR_ARGUMENTS_BAD);
    }
    let callbacks = [
        arguments.CreateMutex.is_some(),
        arguments.DestroyMutex.is_some(),
        arguments.LockMutex.is_some(),
        arguments.UnlockMutex.is_some(),
    ];
    let given = callbacks.iter().filter(|given| **given).count();
    if !matches!(given, 0 | 4) {
        return fail(CKR_ARGUMENTS_BAD);
    }
    // The module locks with the system's primitives only.
    if given == 4 && arguments.flags & CKF_OS_LOCKING_OK == 0 {
        return fail(CKR_CANT_LOCK);
    }
    let no_threads = arguments.flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS != 0;
    Ok(InitialiseArgs { no_threads })
}

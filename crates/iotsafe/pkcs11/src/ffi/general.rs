// SPDX-License-Identifier: Apache-2.0 OR MIT
//! General purpose, slot and token management (PKCS#11 2.40 sections 5.4 and 5.5).

use std::ffi::c_void;
use std::ptr;

use cryptoki_sys::*;

use super::memory::{deliver_list, not_null, put};
use super::{entries, guard};
use crate::info::{self, VERSION_2_40, VERSION_3_0};
use crate::library::{self, InitialiseArgs, current};
use crate::mechanism;
use crate::rv::{Result, fail};

entries! {
    /// Begins the use of the library by this process.
    fn C_Initialize(init_args: CK_VOID_PTR) {
        // SAFETY: null or CK_C_INITIALIZE_ARGS by the caller's promise.
        library::initialise(unsafe { arguments(init_args)? })
    }

    /// Ends it.
    fn C_Finalize(reserved: CK_VOID_PTR) {
        if !reserved.is_null() {
            return fail(CKR_ARGUMENTS_BAD);
        }
        library::finalise()
    }

    /// What the library says of itself, as of PKCS#11 3.0.
    fn C_GetInfo(info: *mut CK_INFO) {
        // SAFETY: null or room for it by the caller's promise.
        unsafe { get_info(info, VERSION_3_0) }
    }

    /// The slots, or those with a token.
    fn C_GetSlotList(token_present: CK_BBOOL, list: *mut CK_SLOT_ID, count: *mut CK_ULONG) {
        let library = current()?;
        not_null(count)?;
        let slots = info::slots(&library, token_present != CK_FALSE);
        // SAFETY: null or as long as the count says by the caller's promise.
        unsafe { deliver_list(&slots, list, count) }
    }

    /// What a slot is.
    fn C_GetSlotInfo(slot: CK_SLOT_ID, place: *mut CK_SLOT_INFO) {
        let library = current()?;
        not_null(place)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(place, info::slot(&library, slot)?) }
    }

    /// What the token in a slot is.
    fn C_GetTokenInfo(slot: CK_SLOT_ID, place: *mut CK_TOKEN_INFO) {
        let library = current()?;
        not_null(place)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(place, info::token(&library, slot)?) }
    }

    /// Whether a slot has had a card put in or taken out: nobody tells the module.
    fn C_WaitForSlotEvent(flags: CK_FLAGS, slot: *mut CK_SLOT_ID, reserved: CK_VOID_PTR) {
        current()?;
        not_null(slot)?;
        if !reserved.is_null() {
            return fail(CKR_ARGUMENTS_BAD);
        }
        let rv = if flags & CKF_DONT_BLOCK != 0 { CKR_NO_EVENT } else { CKR_FUNCTION_NOT_SUPPORTED };
        fail(rv)
    }

    /// The mechanisms of a token.
    fn C_GetMechanismList(
        slot: CK_SLOT_ID,
        list: *mut CK_MECHANISM_TYPE,
        count: *mut CK_ULONG,
    ) {
        let library = current()?;
        not_null(count)?;
        library.slot(slot)?.info()?;
        let mechanisms: Vec<CK_MECHANISM_TYPE> = mechanism::list().collect();
        // SAFETY: null or as long as the count says by the caller's promise.
        unsafe { deliver_list(&mechanisms, list, count) }
    }

    /// What a mechanism can do.
    fn C_GetMechanismInfo(
        slot: CK_SLOT_ID,
        kind: CK_MECHANISM_TYPE,
        place: *mut CK_MECHANISM_INFO,
    ) {
        let library = current()?;
        not_null(place)?;
        library.slot(slot)?.info()?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(place, mechanism::info(kind)?) }
    }
}

/// C_GetInfo of the function list of PKCS#11 2.40.
pub(super) unsafe extern "C" fn get_info_2_40(info: *mut CK_INFO) -> CK_RV {
    // SAFETY: null or room for it by the caller's promise.
    guard("C_GetInfo", || unsafe { get_info(info, VERSION_2_40) })
}

/// # Safety
/// `info` is null or leads to room for a CK_INFO.
unsafe fn get_info(info: *mut CK_INFO, version: CK_VERSION) -> Result {
    current()?;
    // SAFETY: by the caller's promise.
    unsafe { put(info, info::library(version)) }
}

/// What C_Initialize is told (PKCS#11 2.40 section 3.7).
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

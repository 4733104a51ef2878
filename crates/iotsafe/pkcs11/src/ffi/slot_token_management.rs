// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot and token management functions (PKCS#11 2.40 section 5.5).

use cryptoki_sys::*;

use super::entries;
use super::memory::{deliver_list, not_null, put};
use crate::functions::general_purpose::current;
use crate::functions::slot_token_management::{
    get_mechanism_info, get_mechanism_list, get_slot_info, get_slot_list, get_token_info,
};
use crate::rv::fail;

entries! {
    /// The slots, or those with a token.
    fn C_GetSlotList(token_present: CK_BBOOL, list: *mut CK_SLOT_ID, count: *mut CK_ULONG) {
        let library = current()?;
        not_null(count)?;
        let slots = get_slot_list(&library, token_present != CK_FALSE);
        // SAFETY: null or as long as the count says by the caller's promise.
        unsafe { deliver_list(&slots, list, count) }
    }

    /// Information on a slot.
    fn C_GetSlotInfo(slot: CK_SLOT_ID, info: *mut CK_SLOT_INFO) {
        let library = current()?;
        not_null(info)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(info, get_slot_info(&library, slot)?) }
    }

    /// Information on the token in a slot.
    fn C_GetTokenInfo(slot: CK_SLOT_ID, info: *mut CK_TOKEN_INFO) {
        let library = current()?;
        not_null(info)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(info, get_token_info(&library, slot)?) }
    }

    /// Waits for a card to be inserted or removed: the module has no such events.
    fn C_WaitForSlotEvent(flags: CK_FLAGS, slot: *mut CK_SLOT_ID, reserved: CK_VOID_PTR) {
        current()?;
        not_null(slot)?;
        if !reserved.is_null() {
            return fail(CKR_ARGUMENTS_BAD);
        }
        if flags & CKF_DONT_BLOCK != 0 {
            return fail(CKR_NO_EVENT);
        }
        fail(CKR_FUNCTION_NOT_SUPPORTED)
    }

    /// The mechanisms of a token.
    fn C_GetMechanismList(
        slot: CK_SLOT_ID,
        list: *mut CK_MECHANISM_TYPE,
        count: *mut CK_ULONG,
    ) {
        let library = current()?;
        not_null(count)?;
        let mechanisms = get_mechanism_list(&library, slot)?;
        // SAFETY: null or as long as the count says by the caller's promise.
        unsafe { deliver_list(&mechanisms, list, count) }
    }

    /// Information on a mechanism.
    fn C_GetMechanismInfo(
        slot: CK_SLOT_ID,
        kind: CK_MECHANISM_TYPE,
        info: *mut CK_MECHANISM_INFO,
    ) {
        let library = current()?;
        not_null(info)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(info, get_mechanism_info(&library, slot, kind)?) }
    }
}

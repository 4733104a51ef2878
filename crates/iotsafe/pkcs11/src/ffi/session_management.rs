// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session management functions (PKCS#11 2.40 section 5.6, 3.0 section 5.6).

use cryptoki_sys::*;

use super::entries;
use super::memory::{bytes, not_null, put};
use crate::functions::general_purpose::current;
use crate::functions::session_management::{
    close_all_sessions, close_session, get_session_info, login, logout, open_session,
    session_cancel,
};
use crate::rv::fail;

entries! {
    /// Opens a session.
    fn C_OpenSession(
        slot: CK_SLOT_ID,
        flags: CK_FLAGS,
        _application: CK_VOID_PTR,
        _notify: CK_NOTIFY,
        handle: *mut CK_SESSION_HANDLE,
    ) {
        let library = current()?;
        not_null(handle)?;
        // SAFETY: room for it by the caller's promise.
        unsafe { put(handle, open_session(&library, slot, flags)?) }
    }

    /// Closes a session.
    fn C_CloseSession(session: CK_SESSION_HANDLE) {
        close_session(&*current()?, session)
    }

    /// Closes all sessions with the token in a slot.
    fn C_CloseAllSessions(slot: CK_SLOT_ID) {
        close_all_sessions(&*current()?, slot)
    }

    /// Information on a session.
    fn C_GetSessionInfo(session: CK_SESSION_HANDLE, info: *mut CK_SESSION_INFO) {
        let library = current()?;
        let found = get_session_info(&library, session)?;
        // SAFETY: null or room for it by the caller's promise.
        unsafe { put(info, found) }
    }

    /// Logs in, in all sessions of the application with this token.
    fn C_Login(
        session: CK_SESSION_HANDLE,
        user: CK_USER_TYPE,
        pin: *mut CK_UTF8CHAR,
        pin_length: CK_ULONG,
    ) {
        let library = current()?;
        // SAFETY: null or as long as it says by the caller's promise.
        let pin = unsafe { (!pin.is_null()).then(|| bytes(pin, pin_length)).transpose()? };
        login(&library, session, user, pin)
    }

    /// Logs in by name: the one user of a token has none.
    fn C_LoginUser(
        session: CK_SESSION_HANDLE,
        user: CK_USER_TYPE,
        pin: *mut CK_UTF8CHAR,
        pin_length: CK_ULONG,
        _username: *mut CK_UTF8CHAR,
        username_length: CK_ULONG,
    ) {
        let library = current()?;
        if username_length != 0 {
            library.session(session)?;
            return fail(CKR_USER_TYPE_INVALID);
        }
        // SAFETY: null or as long as it says by the caller's promise.
        let pin = unsafe { (!pin.is_null()).then(|| bytes(pin, pin_length)).transpose()? };
        login(&library, session, user, pin)
    }

    /// Logs out.
    fn C_Logout(session: CK_SESSION_HANDLE) {
        logout(&*current()?, session)
    }

    /// Ends operations under way.
    fn C_SessionCancel(session: CK_SESSION_HANDLE, flags: CK_FLAGS) {
        session_cancel(&*current()?, session, flags)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session management (PKCS#11 2.40 section 5.6).

use cryptoki_sys::*;
use warifu_iotsafe_client::PinState;

use crate::library::Library;
use crate::rv::{Result, fail};

/// C_OpenSession (PKCS#11 2.40 section 5.6).
///
/// Where the card cannot be reached, a program that has used it before still gets a session, and
/// the error from the call that needs the card. libp11 up to 0.4.12 (pkcs11_get_session) takes any
/// error of this one for a lack of sessions and waits until another is given back, of which a
/// worker of nginx has none: it answered nobody any more.
///
/// # Errors
/// CKR_SLOT_ID_INVALID, CKR_SESSION_PARALLEL_NOT_SUPPORTED, those of [`Slot::info`].
///
/// [`Slot::info`]: crate::slot::Slot::info
pub fn open_session(
    library: &Library,
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
) -> Result<CK_SESSION_HANDLE> {
    let slot = library.slot(slot)?;
    if flags & CKF_SERIAL_SESSION == 0 {
        return fail(CKR_SESSION_PARALLEL_NOT_SUPPORTED);
    }
    match slot.info() {
        Ok(_) => slot.mark_used(),
        Err(_) if slot.was_used() => {}
        Err(rv) => return Err(rv),
    }
    Ok(library.add_session(slot, flags & CKF_RW_SESSION != 0))
}

/// C_CloseSession.
///
/// # Errors
/// CKR_SESSION_HANDLE_INVALID.
pub fn close_session(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    library.close_session(session)
}

/// C_CloseAllSessions.
///
/// # Errors
/// CKR_SLOT_ID_INVALID.
pub fn close_all_sessions(library: &Library, slot: CK_SLOT_ID) -> Result {
    for session in library.sessions_of(library.slot(slot)?) {
        // Another thread may have closed it meanwhile.
        let _ = library.close_session(session.handle);
    }
    Ok(())
}

/// C_GetSessionInfo.
pub fn get_session_info(library: &Library, session: CK_SESSION_HANDLE) -> Result<CK_SESSION_INFO> {
    let session = library.session(session)?;
    let read_write = if session.read_write { CKF_RW_SESSION } else { 0 };
    Ok(CK_SESSION_INFO {
        slotID: session.slot.id,
        state: session.state(),
        flags: CKF_SERIAL_SESSION | read_write,
        ulDeviceError: 0,
    })
}

/// C_Login. The card decides what it protects: a PIN is sent to the card once; a card without a PIN
/// accepts every login.
pub fn login(
    library: &Library,
    session: CK_SESSION_HANDLE,
    user: CK_USER_TYPE,
    pin: Option<&[u8]>,
) -> Result {
    let session = library.session(session)?;
    match user {
        CKU_USER => {}
        // No key asks for a login per operation: CKA_ALWAYS_AUTHENTICATE is false.
        CKU_CONTEXT_SPECIFIC => return fail(CKR_OPERATION_NOT_INITIALIZED),
        // IoT SAFE has no PIN of a security officer.
        _ => return fail(CKR_USER_TYPE_INVALID),
    }
    match pin {
        Some(pin) => session.slot.log_in(pin),
        // A null PIN is for tokens with a PIN pad (section 5.6), which ours are not.
        None if session.slot.pin_state()? == PinState::Absent => session.slot.log_in(&[]),
        None => fail(CKR_ARGUMENTS_BAD),
    }
}

/// C_Logout.
pub fn logout(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    let session = library.session(session)?;
    if !session.slot.is_logged_in() {
        return fail(CKR_USER_NOT_LOGGED_IN);
    }
    library.end_private_operations(&session.slot);
    session.slot.log_out();
    Ok(())
}

/// C_SessionCancel (PKCS#11 3.0 section 5.6.10).
pub fn session_cancel(library: &Library, session: CK_SESSION_HANDLE, flags: CK_FLAGS) -> Result {
    let session = library.session(session)?;
    let mut operations = session.operations();
    if flags & CKF_FIND_OBJECTS != 0 {
        operations.find = None;
    }
    if flags & CKF_DIGEST != 0 {
        operations.digest = None;
    }
    if flags & CKF_SIGN != 0 {
        operations.sign = None;
    }
    if flags & CKF_VERIFY != 0 {
        operations.verify = None;
    }
    Ok(())
}

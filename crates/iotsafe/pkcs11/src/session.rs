// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions: opening, closing, logging in; the operations that each has under way.

use std::sync::{Arc, Mutex, MutexGuard};

use cryptoki_sys::*;
use warifu_iotsafe_client::PinState;

use crate::digest::Digest;
use crate::library::Library;
use crate::mechanism::Mechanism;
use crate::rv::{Result, Rv, fail};
use crate::signing::{SignOperation, VerifyOperation};
use crate::slot::{Slot, lock};

/// A session.
pub struct Session {
    /// Its handle.
    pub handle: CK_SESSION_HANDLE,
    /// Its slot.
    pub slot: Arc<Slot>,
    /// Whether it may change objects of the token.
    pub read_write: bool,
    active: Mutex<Active>,
}

/// The operations under way, one of each kind at most.
#[derive(Default)]
pub struct Active {
    /// C_FindObjects: what is still to be given.
    pub find: Option<Vec<CK_OBJECT_HANDLE>>,
    /// C_Digest.
    pub digest: Option<Digest>,
    /// C_Sign.
    pub sign: Option<SignOperation>,
    /// C_Verify.
    pub verify: Option<VerifyOperation>,
}

impl Session {
    pub(crate) fn new(handle: CK_SESSION_HANDLE, slot: Arc<Slot>, read_write: bool) -> Session {
        Session { handle, slot, read_write, active: Mutex::default() }
    }

    /// The operations under way; a second thread in the same session waits here.
    pub fn active(&self) -> MutexGuard<'_, Active> {
        lock(&self.active)
    }

    /// C_GetSessionInfo's state.
    #[must_use]
    pub fn state(&self) -> CK_STATE {
        match (self.read_write, self.slot.is_logged_in()) {
            (false, false) => CKS_RO_PUBLIC_SESSION,
            (false, true) => CKS_RO_USER_FUNCTIONS,
            (true, false) => CKS_RW_PUBLIC_SESSION,
            (true, true) => CKS_RW_USER_FUNCTIONS,
        }
    }
}

/// The place of one kind of operation among those under way.
pub(crate) type Of<T> = fn(&mut Active) -> &mut Option<T>;

/// C_DigestInit, C_SignInit and C_VerifyInit: begins an operation. Without a mechanism it ends the one
/// under way (PKCS#11 3.0 section 5.13.1).
pub(crate) fn begin<T>(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
    of: Of<T>,
    new: impl FnOnce(&Slot, &Mechanism) -> Result<T>,
) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    let operation = of(&mut active);
    let Some(mechanism) = mechanism else {
        return operation.take().map(drop).ok_or(Rv(CKR_ARGUMENTS_BAD));
    };
    if operation.is_some() {
        return fail(CKR_OPERATION_ACTIVE);
    }
    *operation = Some(new(&session.slot, mechanism)?);
    Ok(())
}

/// Ends an operation whose caller gave bad arguments (PKCS#11 2.40 sections 5.10 to 5.12: every call
/// but those that ask for the length ends it).
pub(crate) fn abandon<T>(library: &Library, session: CK_SESSION_HANDLE, of: Of<T>) -> Result {
    of(&mut library.session(session)?.active()).take();
    Ok(())
}

/// C_OpenSession (PKCS#11 2.40 section 5.6).
pub fn open(library: &Library, slot: CK_SLOT_ID, flags: CK_FLAGS) -> Result<CK_SESSION_HANDLE> {
    let slot = library.slot(slot)?;
    if flags & CKF_SERIAL_SESSION == 0 {
        return fail(CKR_SESSION_PARALLEL_NOT_SUPPORTED);
    }
    slot.info()?;
    Ok(library.add_session(slot, flags & CKF_RW_SESSION != 0))
}

/// C_GetSessionInfo.
pub fn info(library: &Library, session: CK_SESSION_HANDLE) -> Result<CK_SESSION_INFO> {
    let session = library.session(session)?;
    let read_write = if session.read_write { CKF_RW_SESSION } else { 0 };
    Ok(CK_SESSION_INFO {
        slotID: session.slot.id,
        state: session.state(),
        flags: CKF_SERIAL_SESSION | read_write,
        ulDeviceError: 0,
    })
}

/// C_Login. What it means is the card's policy: with a PIN it is given to the card, once; a card
/// without one lets everybody in.
pub fn log_in(
    library: &Library,
    session: CK_SESSION_HANDLE,
    user: CK_USER_TYPE,
    pin: Option<&[u8]>,
) -> Result {
    let session = library.session(session)?;
    match user {
        CKU_USER => {}
        // No operation wants its user again: CKA_ALWAYS_AUTHENTICATE is false.
        CKU_CONTEXT_SPECIFIC => return fail(CKR_OPERATION_NOT_INITIALIZED),
        // Cards have no security officer's PIN that IoT SAFE knows.
        _ => return fail(CKR_USER_TYPE_INVALID),
    }
    match pin {
        Some(pin) => session.slot.log_in(pin),
        // No PIN at all stands for a token that asks for it by itself (section 5.6): ours do not.
        None if session.slot.pin_state()? == PinState::Absent => session.slot.log_in(&[]),
        None => fail(CKR_ARGUMENTS_BAD),
    }
}

/// C_Logout.
pub fn log_out(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    let session = library.session(session)?;
    if !session.slot.is_logged_in() {
        return fail(CKR_USER_NOT_LOGGED_IN);
    }
    library.end_private_operations(&session.slot);
    session.slot.log_out();
    Ok(())
}

/// C_SessionCancel (PKCS#11 3.0 section 5.6.10).
pub fn cancel(library: &Library, session: CK_SESSION_HANDLE, flags: CK_FLAGS) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    if flags & CKF_FIND_OBJECTS != 0 {
        active.find = None;
    }
    if flags & CKF_DIGEST != 0 {
        active.digest = None;
    }
    if flags & CKF_SIGN != 0 {
        active.sign = None;
    }
    if flags & CKF_VERIFY != 0 {
        active.verify = None;
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session, and the operations that it has under way.

use std::sync::{Arc, Mutex, MutexGuard};

use cryptoki_sys::*;

use crate::digest::Digest;
use crate::mechanism::Mechanism;
use crate::operation::{SignOperation, VerifyOperation};
use crate::rv::{Result, Rv, fail};
use crate::slot::{Slot, lock};

/// A session.
pub struct Session {
    /// Its handle.
    pub handle: CK_SESSION_HANDLE,
    /// Its slot.
    pub slot: Arc<Slot>,
    /// Whether it may change objects of the token.
    pub read_write: bool,
    operations: Mutex<Operations>,
}

/// The operations under way, at most one of each kind.
#[derive(Default)]
pub struct Operations {
    /// C_FindObjects: the handles that have not been returned yet.
    pub find: Option<Vec<CK_OBJECT_HANDLE>>,
    /// C_Digest.
    pub digest: Option<Digest>,
    /// C_Sign.
    pub sign: Option<SignOperation>,
    /// C_Verify.
    pub verify: Option<VerifyOperation>,
}

/// Selects the operation of one kind.
pub(crate) type Select<T> = fn(&mut Operations) -> &mut Option<T>;

impl Session {
    pub(crate) fn new(handle: CK_SESSION_HANDLE, slot: Arc<Slot>, read_write: bool) -> Session {
        Session { handle, slot, read_write, operations: Mutex::default() }
    }

    /// The operations under way; a second thread in the same session waits here.
    pub fn operations(&self) -> MutexGuard<'_, Operations> {
        lock(&self.operations)
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

    /// C_DigestInit, C_SignInit and C_VerifyInit: begins an operation. Without a mechanism it ends
    /// the one under way (PKCS#11 3.0 section 5.13.1).
    pub(crate) fn begin<T>(
        &self,
        select: Select<T>,
        mechanism: Option<&Mechanism>,
        new: impl FnOnce(&Slot, &Mechanism) -> Result<T>,
    ) -> Result {
        let mut operations = self.operations();
        let operation = select(&mut operations);
        let Some(mechanism) = mechanism else {
            return operation.take().map(drop).ok_or(Rv(CKR_ARGUMENTS_BAD));
        };
        if operation.is_some() {
            return fail(CKR_OPERATION_ACTIVE);
        }
        *operation = Some(new(&self.slot, mechanism)?);
        Ok(())
    }

    /// Ends an operation after a call with bad arguments (PKCS#11 2.40 sections 5.10 to 5.12: every
    /// call ends it but one that asks for the length).
    pub(crate) fn abandon<T>(&self, select: Select<T>) {
        select(&mut self.operations()).take();
    }
}

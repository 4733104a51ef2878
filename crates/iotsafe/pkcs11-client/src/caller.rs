// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The five calls of a signature.

use std::time::{Duration, Instant};

use cryptoki_sys::*;
use warifu_os::Clock;
use zeroize::Zeroizing;

use crate::choice::{KeyFound, TokenFound, Wanted};
use crate::error::CallerError;
use crate::module::Module;

/// What calls took.
pub type CallTimes = Vec<(Call, Duration)>;

/// The calls that are timed, by the names that profiles give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// C_OpenSession.
    OpenSession,
    /// C_Login.
    Login,
    /// C_FindObjectsInit, C_FindObjects, C_FindObjectsFinal.
    FindObjects,
    /// C_SignInit.
    SignInit,
    /// C_Sign.
    Sign,
}

/// What opening a session takes.
pub const OPENING_CALLS: [Call; 3] = [Call::OpenSession, Call::Login, Call::FindObjects];
/// What a signature takes in a session that is kept.
pub const KEPT_CALLS: [Call; 2] = [Call::SignInit, Call::Sign];

impl Call {
    /// As PKCS#11 has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Call::OpenSession => "C_OpenSession",
            Call::Login => "C_Login",
            Call::FindObjects => "C_FindObjects",
            Call::SignInit => "C_SignInit",
            Call::Sign => "C_Sign",
        }
    }
}

/// A program that signs with one key of one token.
pub struct Caller {
    module: Module,
    token: TokenFound,
    key: KeyFound,
    pin: Option<Zeroizing<Vec<u8>>>,
    template: Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>,
    open: Option<(CK_SESSION_HANDLE, CK_OBJECT_HANDLE)>,
}

impl Caller {
    /// Finds token and key, and logs in once, so that a wrong PIN costs one try and no more. No
    /// session is open then.
    ///
    /// # Errors
    /// [`CallerError`], in one line.
    pub fn prepare(module: Module, wanted: &Wanted) -> Result<Caller, CallerError> {
        let token = wanted.token(&module)?;
        let label = token.info.label.clone();
        let pin = match (&wanted.pin, token.info.wants_login) {
            (Some(pin), _) => Some(Zeroizing::new(pin.as_bytes().to_vec())),
            (None, false) => None,
            (None, true) => return Err(CallerError::PinNeeded(label)),
        };
        let session = module.open_session(token.id)?;
        if let Some(pin) = &pin {
            module.log_in(session, pin).map_err(|error| match error {
                CallerError::Refused { rv, .. } if is_about_pin(rv) => {
                    CallerError::PinRefused { token: label.clone(), rv }
                }
                other => other,
            })?;
        }
        let key = wanted.key(&module, &label, session)?;
        module.close_session(session)?;
        let template = key.template();
        Ok(Caller { module, token, key, pin, template, open: None })
    }

    /// A program that knows its key by label and so looks for nothing but its token: no session
    /// is opened and no PIN given before [`Caller::open`].
    ///
    /// # Errors
    /// The token is not there, or the key's label is not given.
    pub fn known(module: Module, wanted: &Wanted) -> Result<Caller, CallerError> {
        let token = wanted.token(&module)?;
        let label = wanted.key.clone().unwrap_or_default();
        let key = KeyFound { label, id: Vec::new(), point: None };
        let pin = wanted.pin.as_ref().map(|pin| Zeroizing::new(pin.as_bytes().to_vec()));
        let template = key.template();
        Ok(Caller { module, token, key, pin, template, open: None })
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &TokenFound {
        &self.token
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &KeyFound {
        &self.key
    }

    /// Whether a session is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// C_OpenSession, C_Login, C_FindObjects: what [`OPENING_CALLS`] took. A token without PIN is
    /// not logged in to; C_Login then took nothing.
    ///
    /// # Errors
    /// A call failed; the session is closed then.
    pub fn open(&mut self, clock: &dyn Clock) -> Result<CallTimes, CallerError> {
        self.close()?;
        let begin = clock.now();
        let session = self.module.open_session(self.token.id)?;
        let opened = clock.now();
        let found = self.log_in_and_find(session, clock);
        let (logged_in, key) = match found {
            Ok(found) => found,
            Err(error) => {
                // What went wrong first is told.
                let _ = self.module.close_session(session);
                return Err(error);
            }
        };
        let end = clock.now();
        self.open = Some((session, key));
        let times = [opened - begin, logged_in - opened, end - logged_in];
        Ok(OPENING_CALLS.into_iter().zip(times).collect())
    }

    fn log_in_and_find(
        &mut self,
        session: CK_SESSION_HANDLE,
        clock: &dyn Clock,
    ) -> Result<(Instant, CK_OBJECT_HANDLE), CallerError> {
        if let Some(pin) = &self.pin {
            self.module.log_in(session, pin)?;
        }
        let logged_in = clock.now();
        let found = self.module.find(session, &mut self.template)?;
        let key = found
            .first()
            .copied()
            .ok_or(CallerError::Refused { call: "C_FindObjects", rv: CKR_OBJECT_HANDLE_INVALID })?;
        Ok((logged_in, key))
    }

    /// C_SignInit and C_Sign of a hash, in the open session: r and s, and what [`KEPT_CALLS`]
    /// took.
    ///
    /// # Errors
    /// A call failed, or no session is open.
    pub fn sign(
        &self,
        hash: &[u8],
        clock: &dyn Clock,
    ) -> Result<(Vec<u8>, CallTimes), CallerError> {
        let (session, key) = self
            .open
            .ok_or(CallerError::Refused { call: "C_SignInit", rv: CKR_SESSION_HANDLE_INVALID })?;
        let begin = clock.now();
        self.module.sign_init(session, key)?;
        let initialised = clock.now();
        let signature = self.module.sign(session, hash)?;
        let end = clock.now();
        let times = [initialised - begin, end - initialised];
        Ok((signature, KEPT_CALLS.into_iter().zip(times).collect()))
    }

    /// Closes the session, if one is open. With the last session of a program its login ends
    /// (PKCS#11 2.40 section 5.6).
    ///
    /// # Errors
    /// The call failed.
    pub fn close(&mut self) -> Result<(), CallerError> {
        match self.open.take() {
            Some((session, _)) => self.module.close_session(session),
            None => Ok(()),
        }
    }
}

fn is_about_pin(rv: CK_RV) -> bool {
    matches!(
        rv,
        CKR_PIN_INCORRECT
            | CKR_PIN_INVALID
            | CKR_PIN_LEN_RANGE
            | CKR_PIN_EXPIRED
            | CKR_PIN_LOCKED
            | CKR_USER_PIN_NOT_INITIALIZED
    )
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's private key in a token: libssl asks for its signature, a PKCS#11 module makes it.
//!
//! The module's calls stand where the model has them: all five in CertificateVerify where no
//! session is kept, C_SignInit and C_Sign alone where one is. OpenSSL's pkcs11 engine is what real
//! programs use, and it makes other calls besides, at other times: it lists slots, objects and
//! certificates when it loads a key, before there is a connection. A case of a study says how a
//! connection uses its key store, not how one engine does; so the calls are made here.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use serde::Deserialize;
use warifu_os::SystemClock;
use warifu_pkcs11_client::{Caller, CallerError, Module, Wanted};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::ffi::{self, Signer};

/// A token that holds the client's private key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyStoreConfig {
    /// Its PKCS#11 module.
    pub module: PathBuf,
    /// Its label; any, if there is one alone.
    #[serde(default)]
    pub token: Option<String>,
    /// The key's label; any on P-256, if there is one alone.
    #[serde(default)]
    pub key: Option<String>,
    /// The user's PIN.
    #[serde(default)]
    pub pin: Option<Zeroizing<String>>,
    /// The program's session outlives the connection; else every signature opens one, logs in and
    /// finds the key.
    pub session_open: bool,
}

/// A token with the client's key.
pub struct KeyStore {
    session_open: bool,
    state: Mutex<State>,
}

struct State {
    caller: Caller,
    /// Why the last signature was not made; libssl has no words for it.
    failure: Option<CallerError>,
}

impl KeyStore {
    /// Loads the module and finds the key; opens the session if it is to be kept.
    ///
    /// # Errors
    /// [`Error::KeyStore`], in one line.
    pub fn new(config: &KeyStoreConfig) -> Result<Arc<KeyStore>, Error> {
        let KeyStoreConfig { module, token, key, pin, session_open } = config.clone();
        let mut caller = Caller::prepare(Module::load(&module)?, &Wanted { token, key, pin })?;
        if session_open {
            caller.open(&SystemClock)?;
        }
        let state = Mutex::new(State { caller, failure: None });
        Ok(Arc::new(KeyStore { session_open, state }))
    }

    /// A key for libssl whose public half is the certificate's, and whose signatures come from the
    /// token.
    ///
    /// # Errors
    /// The certificate is not of the token's key.
    pub fn key_of(self: &Arc<Self>, certificate: &X509) -> Result<PKey<Private>, Error> {
        let public = certificate.public_key()?.ec_key()?;
        let point = self.state().caller.key().point.clone();
        let mut context = openssl::bn::BigNumContext::new()?;
        let form = openssl::ec::PointConversionForm::UNCOMPRESSED;
        let certified = public.public_key().to_bytes(public.group(), form, &mut context)?;
        if point.is_some_and(|point| point != certified) {
            return Err(Error::Config(
                "pki: client-chain.pem is of another key than the token's: import its client.key \
                 with `warifu card import --key`, or have the token's key certified"
                    .into(),
            ));
        }
        Ok(ffi::signing_key(&public, self.clone())?)
    }

    /// A connection has ended: what it opened is closed, while nobody waits.
    ///
    /// # Errors
    /// Its signature failed, or closing does.
    pub fn end_of_connection(&self) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(failure) = state.failure.take() {
            return Err(failure.into());
        }
        if !self.session_open {
            state.caller.close()?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn sign(&mut self, hash: &[u8]) -> Result<Vec<u8>, CallerError> {
        if !self.caller.is_open() {
            self.caller.open(&SystemClock)?;
        }
        Ok(self.caller.sign(hash, &SystemClock)?.0)
    }
}

impl Signer for KeyStore {
    fn sign(&self, hash: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.state();
        let made = state.sign(hash);
        made.map_err(|error| state.failure = Some(error)).ok()
    }
}

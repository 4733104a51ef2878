// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors, each one line with a hint how to fix it.

use std::path::PathBuf;

use cryptoki_sys::*;

/// Why a module cannot be used, or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallerError {
    /// The shared library cannot be loaded.
    #[error("{path}: {why}: name the token's PKCS#11 module with --module", path = .path.display())]
    NotLoaded {
        /// The library.
        path: PathBuf,
        /// The error of the loader.
        why: String,
    },
    /// The library has no function list.
    #[error(
        "{path}: not a PKCS#11 module (it has no {missing}): name another with --module",
        path = .path.display()
    )]
    NoModule {
        /// The library.
        path: PathBuf,
        /// The missing function.
        missing: &'static str,
    },
    /// No slot has a token.
    #[error(
        "the module has no token: insert one, start the card, or initialise it: pkcs11-tool \
         --module FILE.so --init-token --label NAME"
    )]
    NoToken,
    /// No token has the requested label, or several match.
    #[error("{which}: choose one of these with --token: {labels}")]
    WhichToken {
        /// Why none was chosen.
        which: String,
        /// The labels there are.
        labels: String,
    },
    /// The token needs a PIN.
    #[error("token {0} needs a PIN: use --pin-file or --pin")]
    PinNeeded(String),
    /// The PIN was refused. It is sent once only.
    #[error("token {token} refused the PIN ({}): {}", name(*.rv), pin_hint(*.rv))]
    PinRefused {
        /// The token.
        token: String,
        /// What C_Login returned.
        rv: CK_RV,
    },
    /// No private key on P-256 can sign.
    #[error(
        "token {token} has no private key on P-256{asked}: {found}; choose another with --key, or \
         generate one: pkcs11-tool --module FILE.so --login --keypairgen --key-type EC:prime256v1 \
         --label NAME"
    )]
    NoKey {
        /// The token.
        token: String,
        /// ` with label x`, if one was asked for.
        asked: String,
        /// The keys there are.
        found: String,
    },
    /// Several keys fit.
    #[error("token {token} has several keys on P-256: choose one with --key: {found}")]
    WhichKey {
        /// The token.
        token: String,
        /// Their labels.
        found: String,
    },
    /// The module lacks a function.
    #[error("the module has no {0}: it cannot make signatures")]
    NoFunction(&'static str),
    /// A call failed.
    #[error("{call} returned {}{}", name(*.rv), hint(*.rv))]
    Refused {
        /// The call.
        call: &'static str,
        /// What it returned.
        rv: CK_RV,
    },
}

/// The name of a return value, or its number.
fn name(rv: CK_RV) -> String {
    macro_rules! names {
        ($($name:ident)*) => {
            match rv {
                $($name => stringify!($name).to_owned(),)*
                other => format!("{other:#x}"),
            }
        };
    }
    names! {
        CKR_HOST_MEMORY CKR_SLOT_ID_INVALID CKR_GENERAL_ERROR CKR_FUNCTION_FAILED CKR_ARGUMENTS_BAD
        CKR_NEED_TO_CREATE_THREADS CKR_CANT_LOCK CKR_DEVICE_ERROR CKR_DEVICE_MEMORY
        CKR_DEVICE_REMOVED CKR_FUNCTION_NOT_SUPPORTED CKR_KEY_HANDLE_INVALID
        CKR_KEY_TYPE_INCONSISTENT CKR_KEY_FUNCTION_NOT_PERMITTED CKR_MECHANISM_INVALID
        CKR_OBJECT_HANDLE_INVALID CKR_OPERATION_ACTIVE CKR_OPERATION_NOT_INITIALIZED
        CKR_PIN_INCORRECT CKR_PIN_INVALID CKR_PIN_LEN_RANGE CKR_PIN_EXPIRED CKR_PIN_LOCKED
        CKR_SESSION_COUNT CKR_SESSION_HANDLE_INVALID CKR_TOKEN_NOT_PRESENT
        CKR_TOKEN_NOT_RECOGNIZED CKR_USER_ALREADY_LOGGED_IN CKR_USER_NOT_LOGGED_IN
        CKR_USER_PIN_NOT_INITIALIZED CKR_BUFFER_TOO_SMALL CKR_CRYPTOKI_NOT_INITIALIZED
        CKR_CRYPTOKI_ALREADY_INITIALIZED
    }
}

fn pin_hint(rv: CK_RV) -> &'static str {
    match rv {
        CKR_PIN_LOCKED => "too many were wrong; unlock it with the token's PUK or SO PIN",
        CKR_PIN_EXPIRED => "its time is over; give the token a new one",
        CKR_USER_PIN_NOT_INITIALIZED => {
            "it has none yet; set one: pkcs11-tool --module FILE.so --login --login-type so \
             --init-pin"
        }
        _ => "it was tried once; check it before the token locks",
    }
}

fn hint(rv: CK_RV) -> &'static str {
    match rv {
        CKR_TOKEN_NOT_PRESENT | CKR_DEVICE_REMOVED => {
            ": the token is gone; insert it, or start the card, and run the same command again"
        }
        CKR_DEVICE_ERROR => {
            ": the token did not answer as it should; `warifu doctor` goes the way to a card"
        }
        CKR_MECHANISM_INVALID => {
            ": the token does not sign hashes (CKM_ECDSA); nothing can be timed"
        }
        CKR_USER_NOT_LOGGED_IN => ": the key wants a login; give the PIN with --pin-file or --pin",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_with_value_and_fix() {
        let refused = CallerError::PinRefused { token: "sim".into(), rv: CKR_PIN_INCORRECT };
        let said = refused.to_string();
        assert!(said.contains("CKR_PIN_INCORRECT") && said.contains("tried once"), "{said}");
        let locked = CallerError::PinRefused { token: "sim".into(), rv: CKR_PIN_LOCKED };
        assert!(locked.to_string().ends_with("PUK or SO PIN"), "{locked}");
        let gone = CallerError::Refused { call: "C_Sign", rv: CKR_DEVICE_REMOVED }.to_string();
        assert_eq!(gone.lines().count(), 1);
        assert!(gone.starts_with("C_Sign returned CKR_DEVICE_REMOVED: the token is gone"));
        assert_eq!(name(0x8000_0001), "0x80000001");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Return values (PKCS#11 2.40 section 5.1), and those for the errors of a token.

use cryptoki_sys::*;
use warifu_card::StatusWord;
use warifu_iotsafe_client::{TokenError, TransportError};

/// A return value other than CKR_OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rv(pub CK_RV);

/// The result of a function.
pub type Result<T = ()> = std::result::Result<T, Rv>;

/// An error with this return value.
pub fn fail<T>(rv: CK_RV) -> Result<T> {
    Err(Rv(rv))
}

impl From<TokenError> for Rv {
    fn from(error: TokenError) -> Rv {
        Rv(match error {
            TokenError::Transport(TransportError::Gone(_)) => CKR_DEVICE_REMOVED,
            TokenError::Transport(_) | TokenError::Answer { .. } => CKR_DEVICE_ERROR,
            TokenError::NoApplet { .. } => CKR_TOKEN_NOT_RECOGNIZED,
            TokenError::NoChannel | TokenError::NoPeerContainer | TokenError::ContainerInUse => {
                CKR_DEVICE_MEMORY
            }
            TokenError::KeyLost => CKR_KEY_HANDLE_INVALID,
            TokenError::Denied(_) => CKR_KEY_FUNCTION_NOT_PERMITTED,
            TokenError::PeerNotOnCurve => CKR_MECHANISM_PARAM_INVALID,
            TokenError::PinWrong { .. } => CKR_PIN_INCORRECT,
            TokenError::PinLocked => CKR_PIN_LOCKED,
            TokenError::PinNeeded => CKR_USER_NOT_LOGGED_IN,
            TokenError::NoPin => CKR_USER_PIN_NOT_INITIALIZED,
            TokenError::Status { sw, .. } => status_rv(sw),
        })
    }
}

fn status_rv(sw: StatusWord) -> CK_RV {
    match sw {
        StatusWord::SECURITY_STATUS => CKR_USER_NOT_LOGGED_IN,
        StatusWord::PIN_LOCKED => CKR_PIN_LOCKED,
        StatusWord::CONDITIONS | StatusWord::INCOMPATIBLE_OBJECT => CKR_KEY_FUNCTION_NOT_PERMITTED,
        StatusWord::MEMORY | StatusWord::CAPACITY => CKR_DEVICE_MEMORY,
        StatusWord::BAD_SIGNATURE => CKR_SIGNATURE_INVALID,
        StatusWord::INSTRUCTION => CKR_FUNCTION_NOT_SUPPORTED,
        _ => CKR_DEVICE_ERROR,
    }
}

/// The name of a return value, for the trace.
#[must_use]
pub fn name(rv: CK_RV) -> &'static str {
    macro_rules! names {
        ($($name:ident)*) => {
            match rv {
                $($name => stringify!($name),)*
                _ => "CKR_?",
            }
        };
    }
    names! {
        CKR_OK CKR_SLOT_ID_INVALID CKR_GENERAL_ERROR CKR_FUNCTION_FAILED CKR_ARGUMENTS_BAD
        CKR_NO_EVENT CKR_NEED_TO_CREATE_THREADS CKR_CANT_LOCK CKR_ATTRIBUTE_READ_ONLY
        CKR_ATTRIBUTE_SENSITIVE CKR_ATTRIBUTE_TYPE_INVALID CKR_ATTRIBUTE_VALUE_INVALID
        CKR_ACTION_PROHIBITED CKR_DATA_LEN_RANGE CKR_DEVICE_ERROR CKR_DEVICE_MEMORY
        CKR_DEVICE_REMOVED CKR_FUNCTION_NOT_SUPPORTED CKR_FUNCTION_NOT_PARALLEL
        CKR_KEY_HANDLE_INVALID CKR_KEY_TYPE_INCONSISTENT CKR_KEY_FUNCTION_NOT_PERMITTED
        CKR_KEY_INDIGESTIBLE CKR_MECHANISM_INVALID CKR_MECHANISM_PARAM_INVALID
        CKR_OBJECT_HANDLE_INVALID CKR_OPERATION_ACTIVE CKR_OPERATION_NOT_INITIALIZED
        CKR_PIN_INCORRECT CKR_PIN_LOCKED CKR_SESSION_HANDLE_INVALID
        CKR_SESSION_PARALLEL_NOT_SUPPORTED CKR_SESSION_READ_ONLY CKR_SIGNATURE_INVALID
        CKR_SIGNATURE_LEN_RANGE CKR_TEMPLATE_INCOMPLETE CKR_TEMPLATE_INCONSISTENT
        CKR_TOKEN_NOT_PRESENT CKR_TOKEN_NOT_RECOGNIZED CKR_TOKEN_WRITE_PROTECTED
        CKR_USER_ALREADY_LOGGED_IN CKR_USER_NOT_LOGGED_IN CKR_USER_PIN_NOT_INITIALIZED
        CKR_USER_TYPE_INVALID CKR_RANDOM_SEED_NOT_SUPPORTED CKR_CURVE_NOT_SUPPORTED
        CKR_DOMAIN_PARAMS_INVALID CKR_PUBLIC_KEY_INVALID CKR_BUFFER_TOO_SMALL
        CKR_CRYPTOKI_NOT_INITIALIZED CKR_CRYPTOKI_ALREADY_INITIALIZED CKR_HOST_MEMORY
    }
}

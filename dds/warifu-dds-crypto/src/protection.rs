// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of a message is protected: ProtectionKind of governance documents (DDS Security 1.1,
//! section 9.4.1.2.4), as the access control plugin passes it on.

use crate::algorithm::Mode;

/// NONE, SIGN, ENCRYPT and their forms with origin authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Protection {
    /// Nothing for NONE.
    pub mode: Option<Mode>,
    /// Each receiver checks a tag of its own, with a key that the other receivers do not have.
    pub origin_authentication: bool,
}

impl Protection {
    /// From the flags of an entity's security attributes.
    pub const fn new(is_protected: bool, is_encrypted: bool, is_authenticated: bool) -> Self {
        if !is_protected {
            return Self { mode: None, origin_authentication: false };
        }
        let mode = if is_encrypted { Mode::Encrypt } else { Mode::Sign };
        Self { mode: Some(mode), origin_authentication: is_authenticated }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mechanisms.

use cryptoki_sys::*;
use warifu_iotsafe_client::Hash;

use crate::rv::{Result, Rv, fail};

/// A mechanism as a caller names it, its parameter copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Which.
    pub kind: CK_MECHANISM_TYPE,
    /// Its parameter.
    pub parameter: Parameter,
}

/// What a mechanism may carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Nothing.
    None,
    /// CK_ECDH1_DERIVE_PARAMS.
    Ecdh {
        /// The key derivation function.
        kdf: CK_EC_KDF_TYPE,
        /// Shared data for that function.
        shared: Vec<u8>,
        /// The peer's public key.
        public: Vec<u8>,
    },
    /// Something else.
    Other,
}

/// The input of a signature mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureInput {
    /// A digest.
    Digest,
    /// A message, to be hashed with SHA-1.
    Sha1,
    /// A message, to be hashed with a hash that cards know.
    Message(Hash),
}

/// The size of every key here, bits.
const KEY_BITS: CK_ULONG = 256;

/// All mechanisms with their flags. The card signs (CKF_HW); verifying and hashing need no secret
/// and are done here.
const TABLE: [(CK_MECHANISM_TYPE, CK_FLAGS); 10] = [
    (CKM_EC_KEY_PAIR_GEN, CKF_HW | CKF_GENERATE_KEY_PAIR | CURVES),
    (CKM_ECDSA, CKF_HW | CKF_SIGN | CKF_VERIFY | CURVES),
    (CKM_ECDSA_SHA1, CKF_HW | CKF_SIGN | CKF_VERIFY | CURVES),
    (CKM_ECDSA_SHA256, CKF_HW | CKF_SIGN | CKF_VERIFY | CURVES),
    (CKM_ECDSA_SHA384, CKF_HW | CKF_SIGN | CKF_VERIFY | CURVES),
    (CKM_ECDSA_SHA512, CKF_HW | CKF_SIGN | CKF_VERIFY | CURVES),
    (CKM_ECDH1_DERIVE, CKF_HW | CKF_DERIVE | CURVES),
    (CKM_SHA256, CKF_DIGEST),
    (CKM_SHA384, CKF_DIGEST),
    (CKM_SHA512, CKF_DIGEST),
];
const CURVES: CK_FLAGS = CKF_EC_F_P | CKF_EC_OID | CKF_EC_UNCOMPRESS;

/// The mechanisms of every token.
pub fn list() -> impl ExactSizeIterator<Item = CK_MECHANISM_TYPE> {
    TABLE.iter().map(|(kind, _)| *kind)
}

/// The information on a mechanism.
///
/// # Errors
/// CKR_MECHANISM_INVALID for one that no token has.
pub fn info(kind: CK_MECHANISM_TYPE) -> Result<CK_MECHANISM_INFO> {
    let flags = TABLE.iter().find(|(known, _)| *known == kind).map(|(_, flags)| *flags);
    let flags = flags.ok_or(Rv(CKR_MECHANISM_INVALID))?;
    let bits = if flags & CKF_DIGEST == 0 { KEY_BITS } else { 0 };
    Ok(CK_MECHANISM_INFO { ulMinKeySize: bits, ulMaxKeySize: bits, flags })
}

impl Mechanism {
    /// What an ECDSA mechanism signs.
    ///
    /// # Errors
    /// CKR_MECHANISM_INVALID for another mechanism, CKR_MECHANISM_PARAM_INVALID for a parameter.
    pub fn ecdsa(&self) -> Result<SignatureInput> {
        let signed = match self.kind {
            CKM_ECDSA => SignatureInput::Digest,
            CKM_ECDSA_SHA1 => SignatureInput::Sha1,
            CKM_ECDSA_SHA256 => SignatureInput::Message(Hash::Sha256),
            CKM_ECDSA_SHA384 => SignatureInput::Message(Hash::Sha384),
            CKM_ECDSA_SHA512 => SignatureInput::Message(Hash::Sha512),
            _ => return fail(CKR_MECHANISM_INVALID),
        };
        self.no_parameter()?;
        Ok(signed)
    }

    /// The hash of a digest mechanism.
    ///
    /// # Errors
    /// As [`Mechanism::ecdsa`].
    pub fn digest(&self) -> Result<Hash> {
        let hash = match self.kind {
            CKM_SHA256 => Hash::Sha256,
            CKM_SHA384 => Hash::Sha384,
            CKM_SHA512 => Hash::Sha512,
            _ => return fail(CKR_MECHANISM_INVALID),
        };
        self.no_parameter()?;
        Ok(hash)
    }

    /// Refuses a parameter.
    ///
    /// # Errors
    /// CKR_MECHANISM_PARAM_INVALID.
    pub fn no_parameter(&self) -> Result {
        if self.parameter == Parameter::None { Ok(()) } else { fail(CKR_MECHANISM_PARAM_INVALID) }
    }
}

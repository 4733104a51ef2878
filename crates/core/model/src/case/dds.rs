// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DDS as a protocol of a stack.

use serde::{Deserialize, Serialize};

/// DDS over RTPS over UDP, with DDS Security 1.1 or without: one sample, and its answer on another
/// topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dds {
    /// Both ends' cryptographic plugin.
    pub crypto: DdsCrypto,
    /// What it encrypts with.
    pub aead: DdsAead,
    /// `data_protection_kind` of the governance: payloads.
    pub data_protection: DdsProtection,
    /// `metadata_protection_kind`: submessages.
    pub metadata_protection: DdsProtection,
    /// `rtps_protection_kind`: RTPS messages.
    pub rtps_protection: DdsProtection,
    /// `discovery_protection_kind` and `liveliness_protection_kind`: announcements, signs of life.
    pub discovery_protection: DdsProtection,
    /// Both ends' middleware. Not part of the canonical form where it is Cyclone DDS.
    #[serde(default, skip_serializing_if = "DdsMiddleware::is_cyclone")]
    #[cfg_attr(test, schemars(extend("default" = "cyclonedds")))]
    pub middleware: DdsMiddleware,
}

/// An implementation of DDS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DdsMiddleware {
    /// Cyclone DDS 0.10.
    #[default]
    CycloneDds,
    /// Fast DDS 2.9, which has no plugin but its own.
    FastDds,
}

/// A cryptographic plugin of DDS Security.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DdsCrypto {
    /// No DDS Security at all.
    None,
    /// The middleware's own.
    Builtin,
    /// `dds/warifu-dds-crypto`.
    Warifu,
}

/// An AEAD of DDS Security's, or of Warifu's plugin (docs/reference/dds.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum DdsAead {
    /// Standard.
    #[serde(rename = "AES-128-GCM")]
    Aes128Gcm,
    /// Standard.
    #[serde(rename = "AES-256-GCM")]
    Aes256Gcm,
    /// An experiment, as those below.
    #[serde(rename = "AEGIS-128L")]
    Aegis128L,
    /// See [`DdsAead::Aegis128L`].
    #[serde(rename = "AEGIS-256")]
    Aegis256,
    /// NIST SP 800-232.
    #[serde(rename = "Ascon-AEAD128")]
    AsconAead128,
    /// See [`DdsAead::Aegis128L`].
    #[serde(rename = "Deoxys-II-128-128")]
    DeoxysII128,
    /// RFC 8439.
    #[serde(rename = "ChaCha20-Poly1305")]
    ChaCha20Poly1305,
}

/// A kind of protection, by its name in governance documents (DDS Security 1.1, section 9.4.1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DdsProtection {
    /// As it is.
    None,
    /// With a tag.
    Sign,
    /// Encrypted, with a tag.
    Encrypt,
    /// With a tag, and one for each receiver.
    SignWithOriginAuthentication,
    /// Encrypted, with a tag, and one for each receiver.
    EncryptWithOriginAuthentication,
}

impl DdsMiddleware {
    /// Whether it is Cyclone DDS, which a case has where it names none.
    pub const fn is_cyclone(&self) -> bool {
        matches!(self, DdsMiddleware::CycloneDds)
    }
}

impl DdsAead {
    /// Whether DDS Security 1.1 has it (section 9.5.2.1.1).
    pub const fn is_standard(self) -> bool {
        matches!(self, DdsAead::Aes128Gcm | DdsAead::Aes256Gcm)
    }

    /// Length of its nonce, B.
    pub const fn nonce_bytes(self) -> u32 {
        match self {
            DdsAead::Aes128Gcm | DdsAead::Aes256Gcm | DdsAead::ChaCha20Poly1305 => 12,
            DdsAead::DeoxysII128 => 15,
            DdsAead::Aegis128L | DdsAead::AsconAead128 => 16,
            DdsAead::Aegis256 => 32,
        }
    }
}

impl DdsProtection {
    /// Whether the content is encrypted; where not, it may still be signed.
    pub const fn encrypts(self) -> bool {
        matches!(self, DdsProtection::Encrypt | DdsProtection::EncryptWithOriginAuthentication)
    }

    /// Whether each receiver has a tag of its own.
    pub const fn authenticates_origin(self) -> bool {
        matches!(
            self,
            DdsProtection::SignWithOriginAuthentication
                | DdsProtection::EncryptWithOriginAuthentication
        )
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The vocabulary of a TLS connection, as studies write it.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Every TLS choice that a study can make for one connection.
///
/// [`Variant::check`] tells whether the choices go together; everything in
/// this crate that takes a variant calls it first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Protocol version; both ends offer this one alone.
    pub tls: Tls,
    /// How the connection begins: in full, or from an earlier one.
    pub session: Session,
    /// Who shows a certificate.
    pub authentication: Authentication,
    /// The (EC)DHE group; both ends offer this one alone (but see [`Session::PskKe`]).
    pub group: Group,
    /// Type of every key and signature in the certificates.
    pub certificate: CertificateType,
    /// Certificates sent by each authenticated end, 1 to 3: the leaf and its
    /// intermediates. The root is never sent.
    pub chain_length: u8,
    /// IANA name of the cipher suite; both ends offer this one alone.
    pub cipher_suite: CipherSuite,
    /// Whether the client's key pair is made after or before the connection opens.
    #[serde(default)]
    pub key_share: KeyShare,
    /// Whether Nagle's algorithm stays on at the client's socket.
    #[serde(default)]
    pub nagle: bool,
    /// Server name indication (RFC 6066 section 3); none is sent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value, in the order of the vocabulary.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word that studies and results use.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|value| value.as_str()).collect();
                    Error::Config(format!("`{text}`: expected one of {}", known.join(", ")))
                })
            }
        }
    };
}

vocabulary! {
    /// Protocol version.
    Tls {
        /// RFC 5246.
        V1_2 = "1.2",
        /// RFC 8446.
        V1_3 = "1.3",
    }
}

vocabulary! {
    /// How a connection begins.
    Session {
        /// Nothing is remembered.
        Full = "full",
        /// TLS 1.2 with a session ticket (RFC 5077).
        Ticket = "ticket",
        /// TLS 1.3 PSK with (EC)DHE (RFC 8446 section 4.2.9).
        PskDheKe = "psk_dhe_ke",
        /// TLS 1.3 PSK alone. OpenSSL 3.0's client always offers `psk_dhe_ke` as
        /// well and its server prefers that; PSK alone is reached only where
        /// both allow it (`SSL_OP_ALLOW_NO_DHE_KEX`) and share no group on the
        /// resumption. So the first connection uses [`Variant::group`], and the
        /// resumption offers the other group of the vocabulary, which the server lacks.
        PskKe = "psk_ke",
        /// TLS 1.3 PSK with (EC)DHE, the request sent as early data.
        ZeroRtt = "0-rtt",
    }
}

vocabulary! {
    /// Who shows a certificate.
    Authentication {
        /// The server alone.
        Server = "server",
        /// Both ends.
        Mutual = "mutual",
    }
}

vocabulary! {
    /// Key-exchange group.
    Group {
        /// NIST P-256.
        Secp256r1 = "secp256r1",
        /// Curve25519.
        X25519 = "x25519",
    }
}

vocabulary! {
    /// Type of the keys and signatures in a certificate chain.
    CertificateType {
        /// ECDSA over P-256 with SHA-256.
        EcdsaSecp256r1 = "ecdsa_secp256r1",
        /// RSA with a modulus of 2048 bits.
        Rsa2048 = "rsa-2048",
    }
}

vocabulary! {
    /// When the client makes its (EC)DHE key pair.
    #[derive(Default)]
    KeyShare {
        /// After the connection is open, as libraries do.
        #[default]
        Fresh = "fresh",
        /// Before the connection opens: the whole ClientHello lies ready.
        Prepared = "prepared",
    }
}

vocabulary! {
    /// Cipher suites, by their IANA names.
    #[allow(missing_docs, reason = "the names are the registry's and explain themselves")]
    CipherSuite {
        Aes128Gcm = "TLS_AES_128_GCM_SHA256",
        Aes256Gcm = "TLS_AES_256_GCM_SHA384",
        ChaCha20Poly1305 = "TLS_CHACHA20_POLY1305_SHA256",
        EcdheEcdsaAes128Gcm = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        EcdheEcdsaAes256Gcm = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        EcdheEcdsaChaCha20Poly1305 = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        EcdheRsaAes128Gcm = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        EcdheRsaAes256Gcm = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        EcdheRsaChaCha20Poly1305 = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    }
}

impl CipherSuite {
    /// The version that the suite belongs to.
    pub const fn tls(self) -> Tls {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm | Self::ChaCha20Poly1305 => Tls::V1_3,
            _ => Tls::V1_2,
        }
    }

    /// The certificate type that a TLS 1.2 suite needs; TLS 1.3 leaves it open.
    pub const fn certificate(self) -> Option<CertificateType> {
        match self {
            Self::EcdheEcdsaAes128Gcm
            | Self::EcdheEcdsaAes256Gcm
            | Self::EcdheEcdsaChaCha20Poly1305 => Some(CertificateType::EcdsaSecp256r1),
            Self::EcdheRsaAes128Gcm | Self::EcdheRsaAes256Gcm | Self::EcdheRsaChaCha20Poly1305 => {
                Some(CertificateType::Rsa2048)
            }
            _ => None,
        }
    }
}

impl Group {
    /// The name that OpenSSL's group lists know.
    pub const fn openssl_name(self) -> &'static str {
        match self {
            Self::Secp256r1 => "P-256",
            Self::X25519 => "X25519",
        }
    }

    /// The other group of the vocabulary.
    pub const fn other(self) -> Self {
        match self {
            Self::Secp256r1 => Self::X25519,
            Self::X25519 => Self::Secp256r1,
        }
    }
}

impl Session {
    /// Whether an earlier connection must have been made.
    pub const fn is_resumed(self) -> bool {
        !matches!(self, Self::Full)
    }
}

impl Variant {
    /// Refuses choices that do not go together, naming the key and the mend.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        if !(1..=3).contains(&self.chain_length) {
            return refuse(format!("chain_length is {}: expected 1, 2 or 3", self.chain_length));
        }
        if self.cipher_suite.tls() != self.tls {
            return refuse(format!(
                "cipher_suite is {}: TLS {} lacks it; choose one of {}",
                self.cipher_suite,
                self.tls,
                suites(self).join(", ")
            ));
        }
        if self.cipher_suite.certificate().is_some_and(|needed| needed != self.certificate) {
            return refuse(format!(
                "cipher_suite is {}: certificate {} cannot serve it; choose one of {}",
                self.cipher_suite,
                self.certificate,
                suites(self).join(", ")
            ));
        }
        match (self.tls, self.session) {
            (Tls::V1_2, Session::Full | Session::Ticket) => {}
            (Tls::V1_2, other) => {
                return refuse(format!("session is {other}: TLS 1.2 knows full and ticket"));
            }
            (Tls::V1_3, Session::Ticket) => {
                return refuse(
                    "session is ticket: TLS 1.3 resumes by psk_dhe_ke, psk_ke or 0-rtt".into(),
                );
            }
            (Tls::V1_3, _) => {}
        }
        if self.tls == Tls::V1_2 && self.key_share == KeyShare::Prepared {
            return refuse(
                "key_share is prepared: a TLS 1.2 ClientHello has no key share; use fresh".into(),
            );
        }
        match self.server_name.as_deref() {
            // RFC 6066 section 3: a host name, no address, at most 255 bytes.
            Some(name) if name.is_empty() || name.len() > 255 || name.contains('\0') => {
                refuse("server_name: expected a host name of 1 to 255 characters".into())
            }
            _ => Ok(()),
        }
    }
}

fn suites(variant: &Variant) -> Vec<&'static str> {
    CipherSuite::ALL
        .iter()
        .filter(|suite| suite.tls() == variant.tls)
        .filter(|suite| suite.certificate().is_none_or(|needed| needed == variant.certificate))
        .map(|suite| suite.as_str())
        .collect()
}

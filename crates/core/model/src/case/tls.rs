// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS as a layer of a stack: versions, sessions, certificates, cipher suites.

use serde::{Deserialize, Serialize};

use crate::keyword::Keyword;

/// TLS over a byte stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The version.
    pub version: TlsVersion,
    /// Full handshake or the way of resumption.
    pub session: Session,
    /// Who shows a certificate.
    pub authentication: Authentication,
    /// The (EC)DHE group.
    pub group: Group,
    /// The key type of the leaf certificates and of their issuers, on both sides.
    pub certificate: CertificateType,
    /// How many certificates each authenticated side sends, 1 to 3; the root is not sent.
    pub chain_length: u8,
    /// DER sizes of the server's chain as sent, leaf first, B.
    pub server_certificate_bytes: Vec<u16>,
    /// DER sizes of the client's chain as sent, leaf first, B; empty without client certificate.
    pub client_certificate_bytes: Vec<u16>,
    /// The cipher suite, by IANA name.
    pub cipher_suite: CipherSuite,
    /// Whether the client's key share is made during the handshake or beforehand.
    pub key_share: KeyShare,
    /// Server name indication (RFC 6066 section 3); `None` sends none.
    pub server_name: Option<String>,
    /// The pre-shared key from outside, where both ends prove to have one. Not part of the
    /// canonical form where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psk: Option<Psk>,
}

/// A pre-shared key that both ends were given beforehand: no ticket of an earlier connection
/// (RFC 8446 section 2.2, RFC 4279).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Psk {
    /// Whether keys are agreed on beside it.
    pub mode: PskMode,
    /// Length of the identity by which the device names its key, B.
    pub identity_bytes: u16,
}

/// How a connection by a key from outside comes to its keys: the words of TLS 1.3, whose
/// counterparts TLS 1.2 has as cipher suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PskMode {
    /// With (EC)DHE: RFC 8446 section 4.2.9; ECDHE_PSK suites with TLS 1.2 (RFC 5489, RFC 7905).
    #[serde(rename = "psk_dhe_ke")]
    PskDheKe,
    /// From the key alone, without forward secrecy; PSK suites with TLS 1.2 (RFC 4279, RFC 5487).
    #[serde(rename = "psk_ke")]
    PskKe,
}

/// The TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

/// Full handshake or the way of resumption. A study may also say `resumed`, which stands for
/// `ticket` with TLS 1.2 and `psk_dhe_ke` with TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Session {
    /// A full handshake.
    #[serde(rename = "full")]
    Full,
    /// TLS 1.2 with a session ticket (RFC 5077).
    #[serde(rename = "ticket")]
    Ticket,
    /// TLS 1.3 PSK with (EC)DHE (RFC 8446 section 4.2.9).
    #[serde(rename = "psk_dhe_ke")]
    PskDheKe,
    /// TLS 1.3 PSK alone (RFC 8446 section 4.2.9).
    #[serde(rename = "psk_ke")]
    PskKe,
    /// TLS 1.3 PSK with (EC)DHE and the request as early data (RFC 8446 section 2.3).
    #[serde(rename = "0-rtt")]
    EarlyData,
}

/// Who shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// The server alone.
    Server,
    /// Both ends.
    Mutual,
    /// Nobody: both ends prove that they have the same key, which came from outside.
    Psk,
}

/// An (EC)DHE group, by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// NIST P-256.
    Secp256r1,
    /// RFC 7748.
    X25519,
}

/// The key type of the certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum CertificateType {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ecdsa_secp256r1")]
    EcdsaSecp256r1,
    /// RSA with a 2048-bit modulus.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
}

/// The AEAD of a cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Aead {
    /// AES-128 in Galois/Counter Mode.
    #[serde(rename = "AES_128_GCM")]
    Aes128Gcm,
    /// AES-256 in Galois/Counter Mode.
    #[serde(rename = "AES_256_GCM")]
    Aes256Gcm,
    /// RFC 8439.
    #[serde(rename = "CHACHA20_POLY1305")]
    ChaCha20Poly1305,
}

/// Cipher suites by their IANA names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum CipherSuite {
    #[serde(rename = "TLS_AES_128_GCM_SHA256")]
    TlsAes128GcmSha256,
    #[serde(rename = "TLS_AES_256_GCM_SHA384")]
    TlsAes256GcmSha384,
    #[serde(rename = "TLS_CHACHA20_POLY1305_SHA256")]
    TlsChacha20Poly1305Sha256,
    #[serde(rename = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")]
    TlsEcdheEcdsaWithAes128GcmSha256,
    #[serde(rename = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")]
    TlsEcdheEcdsaWithAes256GcmSha384,
    #[serde(rename = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")]
    TlsEcdheEcdsaWithChacha20Poly1305Sha256,
    #[serde(rename = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")]
    TlsEcdheRsaWithAes128GcmSha256,
    #[serde(rename = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")]
    TlsEcdheRsaWithAes256GcmSha384,
    #[serde(rename = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")]
    TlsEcdheRsaWithChacha20Poly1305Sha256,
    #[serde(rename = "TLS_PSK_WITH_AES_128_GCM_SHA256")]
    TlsPskWithAes128GcmSha256,
    #[serde(rename = "TLS_PSK_WITH_AES_256_GCM_SHA384")]
    TlsPskWithAes256GcmSha384,
    #[serde(rename = "TLS_PSK_WITH_CHACHA20_POLY1305_SHA256")]
    TlsPskWithChacha20Poly1305Sha256,
    #[serde(rename = "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256")]
    TlsEcdhePskWithChacha20Poly1305Sha256,
}

/// When the client's key share is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyShare {
    /// During the handshake.
    #[default]
    Fresh,
    /// Before connect(), so that ClientHello waits ready (papers/2 section 5.2).
    Prepared,
}

impl Tls {
    /// Whether a full handshake agrees on keys by (EC)DHE.
    pub fn has_key_exchange(&self) -> bool {
        self.psk.is_none_or(|psk| psk.mode == PskMode::PskDheKe)
    }
}

impl Session {
    /// Whether connections of this version can begin so. A resumption takes up what an earlier
    /// connection of the same version has left: a ticket with TLS 1.2 (RFC 5077), a PSK with
    /// TLS 1.3 (RFC 8446 section 2.2).
    pub const fn fits(self, tls: TlsVersion) -> bool {
        match self {
            Session::Full => true,
            Session::Ticket => matches!(tls, TlsVersion::Tls12),
            Session::PskDheKe | Session::PskKe | Session::EarlyData => {
                matches!(tls, TlsVersion::Tls13)
            }
        }
    }

    /// The usual resumption of a version, which a study calls `resumed`.
    pub const fn resumed(tls: TlsVersion) -> Session {
        match tls {
            TlsVersion::Tls12 => Session::Ticket,
            TlsVersion::Tls13 => Session::PskDheKe,
        }
    }

    /// The resumptions of a version, in words: `psk_dhe_ke, psk_ke or 0-rtt`.
    pub fn ways_of_resumption(tls: TlsVersion) -> String {
        let ways = Session::ALL.iter().filter(|session| session.is_resumed() && session.fits(tls));
        let names: Vec<&str> = ways.map(|session| session.name()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).into(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Whether the handshake has an (EC)DHE key exchange.
    pub const fn has_key_exchange(self) -> bool {
        match self {
            Session::Full | Session::PskDheKe | Session::EarlyData => true,
            Session::Ticket | Session::PskKe => false,
        }
    }

    /// Whether an earlier connection must have been made.
    pub const fn is_resumed(self) -> bool {
        !matches!(self, Session::Full)
    }
}

impl CipherSuite {
    /// The suite of a version, certificate type and AEAD.
    pub const fn of(tls: TlsVersion, certificate: CertificateType, aead: Aead) -> CipherSuite {
        use CipherSuite::*;
        match (tls, certificate, aead) {
            (TlsVersion::Tls13, _, Aead::Aes128Gcm) => TlsAes128GcmSha256,
            (TlsVersion::Tls13, _, Aead::Aes256Gcm) => TlsAes256GcmSha384,
            (TlsVersion::Tls13, _, Aead::ChaCha20Poly1305) => TlsChacha20Poly1305Sha256,
            (TlsVersion::Tls12, CertificateType::EcdsaSecp256r1, Aead::Aes128Gcm) => {
                TlsEcdheEcdsaWithAes128GcmSha256
            }
            (TlsVersion::Tls12, CertificateType::EcdsaSecp256r1, Aead::Aes256Gcm) => {
                TlsEcdheEcdsaWithAes256GcmSha384
            }
            (TlsVersion::Tls12, CertificateType::EcdsaSecp256r1, Aead::ChaCha20Poly1305) => {
                TlsEcdheEcdsaWithChacha20Poly1305Sha256
            }
            (TlsVersion::Tls12, CertificateType::Rsa2048, Aead::Aes128Gcm) => {
                TlsEcdheRsaWithAes128GcmSha256
            }
            (TlsVersion::Tls12, CertificateType::Rsa2048, Aead::Aes256Gcm) => {
                TlsEcdheRsaWithAes256GcmSha384
            }
            (TlsVersion::Tls12, CertificateType::Rsa2048, Aead::ChaCha20Poly1305) => {
                TlsEcdheRsaWithChacha20Poly1305Sha256
            }
        }
    }

    /// The suite of a connection by a key from outside; `None` where OpenSSL 3.0 has none. TLS 1.3
    /// suites leave the key open, but the hash is the key's: SHA-256 where nothing else was agreed
    /// on with it (RFC 8446 section 4.2.11). Of TLS 1.2's ECDHE_PSK suites with an AEAD OpenSSL
    /// has one (RFC 7905), and none of RFC 8442.
    pub const fn of_psk(tls: TlsVersion, mode: PskMode, aead: Aead) -> Option<CipherSuite> {
        use CipherSuite::*;
        match (tls, mode, aead) {
            (TlsVersion::Tls13, _, Aead::Aes128Gcm) => Some(TlsAes128GcmSha256),
            (TlsVersion::Tls13, _, Aead::ChaCha20Poly1305) => Some(TlsChacha20Poly1305Sha256),
            (TlsVersion::Tls13, _, Aead::Aes256Gcm) => None,
            (TlsVersion::Tls12, PskMode::PskKe, Aead::Aes128Gcm) => Some(TlsPskWithAes128GcmSha256),
            (TlsVersion::Tls12, PskMode::PskKe, Aead::Aes256Gcm) => Some(TlsPskWithAes256GcmSha384),
            (TlsVersion::Tls12, PskMode::PskKe, Aead::ChaCha20Poly1305) => {
                Some(TlsPskWithChacha20Poly1305Sha256)
            }
            (TlsVersion::Tls12, PskMode::PskDheKe, Aead::ChaCha20Poly1305) => {
                Some(TlsEcdhePskWithChacha20Poly1305Sha256)
            }
            (TlsVersion::Tls12, PskMode::PskDheKe, _) => None,
        }
    }

    /// The suite of these choices, with or without a key from outside.
    pub const fn of_choices(
        tls: TlsVersion,
        certificate: CertificateType,
        psk: Option<Psk>,
        aead: Aead,
    ) -> Option<CipherSuite> {
        match psk {
            None => Some(CipherSuite::of(tls, certificate, aead)),
            Some(psk) => CipherSuite::of_psk(tls, psk.mode, aead),
        }
    }

    /// Its AEAD.
    pub const fn aead(self) -> Aead {
        use CipherSuite::*;
        match self {
            TlsAes128GcmSha256
            | TlsEcdheEcdsaWithAes128GcmSha256
            | TlsEcdheRsaWithAes128GcmSha256
            | TlsPskWithAes128GcmSha256 => Aead::Aes128Gcm,
            TlsAes256GcmSha384
            | TlsEcdheEcdsaWithAes256GcmSha384
            | TlsEcdheRsaWithAes256GcmSha384
            | TlsPskWithAes256GcmSha384 => Aead::Aes256Gcm,
            TlsChacha20Poly1305Sha256
            | TlsEcdheEcdsaWithChacha20Poly1305Sha256
            | TlsEcdheRsaWithChacha20Poly1305Sha256
            | TlsPskWithChacha20Poly1305Sha256
            | TlsEcdhePskWithChacha20Poly1305Sha256 => Aead::ChaCha20Poly1305,
        }
    }

    /// The version that the suite belongs to.
    pub const fn tls(self) -> TlsVersion {
        use CipherSuite::*;
        match self {
            TlsAes128GcmSha256 | TlsAes256GcmSha384 | TlsChacha20Poly1305Sha256 => {
                TlsVersion::Tls13
            }
            TlsEcdheEcdsaWithAes128GcmSha256
            | TlsEcdheEcdsaWithAes256GcmSha384
            | TlsEcdheEcdsaWithChacha20Poly1305Sha256
            | TlsEcdheRsaWithAes128GcmSha256
            | TlsEcdheRsaWithAes256GcmSha384
            | TlsEcdheRsaWithChacha20Poly1305Sha256
            | TlsPskWithAes128GcmSha256
            | TlsPskWithAes256GcmSha384
            | TlsPskWithChacha20Poly1305Sha256
            | TlsEcdhePskWithChacha20Poly1305Sha256 => TlsVersion::Tls12,
        }
    }

    /// Whether both ends prove a key from outside by it, and nothing else.
    pub const fn is_psk(self) -> bool {
        use CipherSuite::*;
        matches!(
            self,
            TlsPskWithAes128GcmSha256
                | TlsPskWithAes256GcmSha384
                | TlsPskWithChacha20Poly1305Sha256
                | TlsEcdhePskWithChacha20Poly1305Sha256
        )
    }

    /// Whether a connection of this version, with certificates of this type, can use the suite.
    /// TLS 1.3 suites leave the certificate open.
    pub fn fits(self, tls: TlsVersion, certificate: CertificateType) -> bool {
        self == CipherSuite::of(tls, certificate, self.aead())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumptions_of_each_version() {
        let of = |tls| -> Vec<&str> {
            let fitting = Session::ALL.iter().filter(|session| session.fits(tls));
            fitting.map(|session| session.name()).collect()
        };
        assert_eq!(of(TlsVersion::Tls12), ["full", "ticket"]);
        assert_eq!(of(TlsVersion::Tls13), ["full", "psk_dhe_ke", "psk_ke", "0-rtt"]);
        assert_eq!(Session::ways_of_resumption(TlsVersion::Tls12), "ticket");
        assert_eq!(Session::ways_of_resumption(TlsVersion::Tls13), "psk_dhe_ke, psk_ke or 0-rtt");
        for &tls in TlsVersion::ALL {
            assert!(Session::resumed(tls).fits(tls) && Session::resumed(tls).is_resumed());
        }
    }

    #[test]
    fn suites_by_a_key_from_outside() {
        for &suite in CipherSuite::ALL.iter().filter(|suite| suite.is_psk()) {
            let modes = PskMode::ALL.iter().filter(|&&mode| {
                CipherSuite::of_psk(suite.tls(), mode, suite.aead()) == Some(suite)
            });
            assert_eq!(modes.count(), 1, "{}", suite.name());
            assert!(CertificateType::ALL.iter().all(|&kind| !suite.fits(suite.tls(), kind)));
        }
        let none = CipherSuite::of_psk(TlsVersion::Tls13, PskMode::PskKe, Aead::Aes256Gcm);
        assert_eq!(none, None, "the key's hash is SHA-256");
    }

    #[test]
    fn version_and_certificate_of_each_suite() {
        for &suite in CipherSuite::ALL.iter().filter(|suite| !suite.is_psk()) {
            for &tls in TlsVersion::ALL {
                for &certificate in CertificateType::ALL {
                    let named = match certificate {
                        CertificateType::EcdsaSecp256r1 => suite.name().contains("ECDSA"),
                        CertificateType::Rsa2048 => suite.name().contains("RSA_"),
                    };
                    let expected = suite.tls() == tls && (tls == TlsVersion::Tls13 || named);
                    assert_eq!(suite.fits(tls, certificate), expected, "{}", suite.name());
                }
            }
        }
    }
}

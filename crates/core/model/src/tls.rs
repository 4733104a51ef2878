// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which TLS choices go together: the one place where the rules stand.

use crate::case::{CertificateType, CipherSuite, Session, TlsVersion};
use crate::keyword::Keyword;

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

    /// Whether an earlier connection must have been made.
    pub const fn is_resumed(self) -> bool {
        !matches!(self, Session::Full)
    }
}

impl CipherSuite {
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
            | TlsEcdheRsaWithChacha20Poly1305Sha256 => TlsVersion::Tls12,
        }
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
    fn every_version_has_its_own_resumptions() {
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
    fn suites_fit_one_version_and_the_certificate_they_name() {
        for &suite in CipherSuite::ALL {
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tests share: one PKI for each type and length, and every variant.

use std::sync::OnceLock;

use warifu_model::{
    Authentication, CertificateType, CipherSuite, Group, KeyShare, Keyword, Psk, PskMode, Session,
    TlsVersion,
};

use crate::pki::Pki;
use crate::variant::Variant;

/// A PKI, made once for all tests of a process.
pub fn pki(kind: CertificateType, chain_length: u8) -> &'static Pki {
    static MADE: [[OnceLock<Pki>; 3]; 2] = [const { [const { OnceLock::new() }; 3] }; 2];
    let row = usize::from(kind == CertificateType::Rsa2048);
    MADE[row][usize::from(chain_length) - 1]
        .get_or_init(|| Pki::generate(kind, chain_length).expect("a PKI"))
}

/// Every variant that [`Variant::check`] allows, without those that differ only in how the
/// client's socket is used.
pub fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for &cipher_suite in CipherSuite::ALL {
        for &session in Session::ALL {
            for &authentication in Authentication::ALL {
                for &group in Group::ALL {
                    for &certificate in CertificateType::ALL {
                        for chain_length in 1..=3 {
                            all.push(Variant {
                                tls: cipher_suite.tls(),
                                session,
                                authentication,
                                group,
                                certificate,
                                chain_length,
                                cipher_suite,
                                key_share: KeyShare::Fresh,
                                nagle: false,
                                server_name: None,
                                psk: None,
                            });
                        }
                    }
                }
            }
        }
    }
    for &cipher_suite in CipherSuite::ALL {
        for (&mode, &group) in
            PskMode::ALL.iter().flat_map(|mode| Group::ALL.iter().map(move |group| (mode, group)))
        {
            all.push(Variant {
                tls: cipher_suite.tls(),
                session: Session::Full,
                authentication: Authentication::Psk,
                group,
                certificate: CertificateType::EcdsaSecp256r1,
                chain_length: 1,
                cipher_suite,
                key_share: KeyShare::Fresh,
                nagle: false,
                server_name: None,
                psk: Some(Psk { mode, identity_bytes: 16 }),
            });
        }
    }
    all.retain(|variant| variant.check().is_ok());
    assert!(
        all.iter().any(|variant| variant.tls == TlsVersion::Tls12),
        "both versions are covered"
    );
    all
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words that studies and profiles use for the closed choices of a stack.

use crate::case::{
    Aead, Authentication, CertificateType, CipherSuite, CoapMessageType, CongestionControl,
    DdsAead, DdsCrypto, DdsMiddleware, DdsProtection, Group, KeyShare, PatternKind, Protocol,
    PskMode, Session, TlsVersion,
};
use crate::evidence::{Evidence, Method};
use crate::kind::Kind;
use crate::nearest::nearest;
use crate::profile::Code;

/// A closed choice that is written as one word.
pub trait Keyword: Copy + PartialEq + 'static {
    /// Every value, in the order in which errors list them.
    const ALL: &'static [Self];
    /// Other words that are accepted, with what they stand for.
    const ALIASES: &'static [(&'static str, Self)];

    /// The word that files, results and tables use.
    fn name(self) -> &'static str;

    /// The value of a word; the error says what was expected.
    fn from_word(word: &str) -> Result<Self, String> {
        let exact = Self::ALL.iter().copied().find(|value| value.name() == word);
        let alias = Self::ALIASES.iter().find(|(alias, _)| *alias == word);
        if let Some(value) = exact.or(alias.map(|(_, value)| *value)) {
            return Ok(value);
        }
        let names: Vec<&str> = Self::ALL.iter().map(|value| value.name()).collect();
        let hint = match nearest(word, names.iter().copied()) {
            Some(name) => format!("; did you mean \"{name}\"?"),
            None => String::new(),
        };
        Err(format!("expected {}{hint}", one_of(&names)))
    }
}

/// `"a"`, `"a" or "b"`, `one of "a", "b", "c"`.
pub(crate) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [one, other] => format!("{one} or {other}"),
        many => format!("one of {}", many.join(", ")),
    }
}

macro_rules! keyword {
    (
        $type:ident { $($variant:ident = $word:literal),+ $(,)? }
        $(also { $($alias:literal = $of:ident),+ })?
    ) => {
        impl Keyword for $type {
            const ALL: &'static [Self] = &[$($type::$variant),+];
            const ALIASES: &'static [(&'static str, Self)] = &[$($(($alias, $type::$of)),+)?];

            fn name(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }
        }
    };
}

keyword!(Protocol { Https = "https", Coap = "coap", Dds = "dds" });
keyword!(TlsVersion { Tls12 = "1.2", Tls13 = "1.3" } also { "tls1.2" = Tls12, "tls1.3" = Tls13 });
keyword!(Session {
    Full = "full",
    Ticket = "ticket",
    PskDheKe = "psk_dhe_ke",
    PskKe = "psk_ke",
    EarlyData = "0-rtt",
});
keyword!(Authentication { Server = "server", Mutual = "mutual", Psk = "psk" });
keyword!(PskMode { PskDheKe = "psk_dhe_ke", PskKe = "psk_ke" });
// IANA names; the others are what NIST, SEC 2's users and wolfSSL call the same curves.
keyword!(Group { Secp256r1 = "secp256r1", X25519 = "x25519" }
also {
    "P-256" = Secp256r1,
    "prime256v1" = Secp256r1,
    "X25519" = X25519,
    "Curve25519" = X25519
});
keyword!(CertificateType { EcdsaSecp256r1 = "ecdsa_secp256r1", Rsa2048 = "rsa-2048" });
keyword!(Aead {
    Aes128Gcm = "AES_128_GCM",
    Aes256Gcm = "AES_256_GCM",
    ChaCha20Poly1305 = "CHACHA20_POLY1305",
});
keyword!(CipherSuite {
    TlsAes128GcmSha256 = "TLS_AES_128_GCM_SHA256",
    TlsAes256GcmSha384 = "TLS_AES_256_GCM_SHA384",
    TlsChacha20Poly1305Sha256 = "TLS_CHACHA20_POLY1305_SHA256",
    TlsEcdheEcdsaWithAes128GcmSha256 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    TlsEcdheEcdsaWithAes256GcmSha384 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    TlsEcdheEcdsaWithChacha20Poly1305Sha256 = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    TlsEcdheRsaWithAes128GcmSha256 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    TlsEcdheRsaWithAes256GcmSha384 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    TlsEcdheRsaWithChacha20Poly1305Sha256 = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    TlsPskWithAes128GcmSha256 = "TLS_PSK_WITH_AES_128_GCM_SHA256",
    TlsPskWithAes256GcmSha384 = "TLS_PSK_WITH_AES_256_GCM_SHA384",
    TlsPskWithChacha20Poly1305Sha256 = "TLS_PSK_WITH_CHACHA20_POLY1305_SHA256",
    TlsEcdhePskWithChacha20Poly1305Sha256 = "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256",
});
keyword!(KeyShare { Fresh = "fresh", Prepared = "prepared" });
keyword!(CongestionControl { Cubic = "cubic", Reno = "reno" });
keyword!(CoapMessageType { Confirmable = "CON", NonConfirmable = "NON" }
    also { "con" = Confirmable, "non" = NonConfirmable });
keyword!(DdsCrypto { None = "none", Builtin = "builtin", Warifu = "warifu" });
keyword!(DdsMiddleware { CycloneDds = "cyclonedds", FastDds = "fastdds" });
keyword!(DdsAead {
    Aes128Gcm = "AES-128-GCM",
    Aes256Gcm = "AES-256-GCM",
    Aegis128L = "AEGIS-128L",
    Aegis256 = "AEGIS-256",
    AsconAead128 = "Ascon-AEAD128",
    DeoxysII128 = "Deoxys-II-128-128",
    ChaCha20Poly1305 = "ChaCha20-Poly1305",
});
keyword!(DdsProtection {
    None = "NONE",
    Sign = "SIGN",
    Encrypt = "ENCRYPT",
    SignWithOriginAuthentication = "SIGN_WITH_ORIGIN_AUTHENTICATION",
    EncryptWithOriginAuthentication = "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
});
keyword!(PatternKind { Request = "request", Stream = "stream" });
keyword!(Method { Measured = "measured", Emulated = "emulated", Simulated = "simulated" });
keyword!(Evidence { Measured = "measured", Published = "published", Assumed = "assumed" });
keyword!(Code { Assembly = "assembly", C = "c", Hardware = "hardware" });
keyword!(Kind {
    Measured = "measured",
    Emulated = "emulated",
    Simulated = "simulated",
    Published = "published",
    Assumed = "assumed",
});

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    /// Studies and the canonical form must call the same thing by the same name.
    fn same_as_serde<T: Keyword + Serialize + DeserializeOwned + Debug>() {
        for &value in T::ALL {
            assert_eq!(serde_json::to_string(&value).unwrap(), format!("\"{}\"", value.name()));
            assert_eq!(T::from_word(value.name()), Ok(value));
        }
        for (alias, value) in T::ALIASES {
            assert_eq!(T::from_word(alias), Ok(*value));
        }
    }

    #[test]
    fn words_equal_the_canonical_form() {
        same_as_serde::<Protocol>();
        same_as_serde::<TlsVersion>();
        same_as_serde::<Session>();
        same_as_serde::<Authentication>();
        same_as_serde::<PskMode>();
        same_as_serde::<Group>();
        same_as_serde::<CertificateType>();
        same_as_serde::<Aead>();
        same_as_serde::<CipherSuite>();
        same_as_serde::<KeyShare>();
        same_as_serde::<CongestionControl>();
        same_as_serde::<CoapMessageType>();
        same_as_serde::<DdsCrypto>();
        same_as_serde::<DdsMiddleware>();
        same_as_serde::<DdsAead>();
        same_as_serde::<DdsProtection>();
        same_as_serde::<PatternKind>();
        same_as_serde::<Kind>();
        same_as_serde::<Method>();
        same_as_serde::<Evidence>();
    }

    #[test]
    fn unknown_word() {
        assert_eq!(
            Group::from_word("x25591").unwrap_err(),
            "expected \"secp256r1\" or \"x25519\"; did you mean \"x25519\"?"
        );
        assert_eq!(TlsVersion::from_word("banana").unwrap_err(), "expected \"1.2\" or \"1.3\"");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case: one point of a study, every choice resolved.

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::units::{BitsPerSecond, Nanos, Probability};

/// One point of a study, every choice resolved. It says *what* is asked; the figures come from
/// the profiles that it names, so that both halves of the tally can take the same case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The device that connects.
    pub device: Host,
    /// The server that accepts.
    pub server: Server,
    /// Where the device's private key lives.
    pub key_store: KeyStoreChoice,
    /// The network between the two.
    pub link: Link,
    /// The protocols and their settings.
    pub stack: Stack,
    /// What the device does, and how often at once.
    pub pattern: Pattern,
}

/// The name of a case: the first 16 hexadecimal digits of the SHA-256 of its canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub String);

/// A machine, by the name of its device profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of a file in `profiles/devices/`, without its ending.
    pub profile: String,
}

/// A server, by the name of its device profile, and how many connections it computes for at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Name of a file in `profiles/devices/`, without its ending.
    pub profile: String,
    /// Workers, each with a processor of its own; connections wait for a free one, first come,
    /// first served. Not part of the canonical form where it is 1.
    #[serde(default = "one_worker", skip_serializing_if = "is_one_worker")]
    pub workers: u16,
}

fn one_worker() -> u16 {
    1
}

fn is_one_worker(workers: &u16) -> bool {
    *workers == 1
}

/// A key store, by the name of its profile, and how its session is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyStoreChoice {
    /// Name of a file in `profiles/key-stores/`, without its ending.
    pub profile: String,
    /// Whether C_OpenSession, C_Login and C_FindObjects were done before the connection
    /// (`sign_only` in papers/1 Table 2) or belong to it (`total`).
    pub session_open: bool,
}

/// The network between device and server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the file in `profiles/links/` that gave the values not set by the study.
    pub profile: String,
    /// Propagation delay there and back, without jitter; half of it each way.
    pub rtt: Nanos,
    /// Additional one-way delay as evenly spaced quantiles from 0 to 1 (the first is the
    /// minimum, the last the maximum), linearly interpolated between; empty for none.
    pub jitter: Vec<Nanos>,
    /// Whether a packet may not overtake an earlier one of its direction.
    pub keep_order: bool,
    /// Rate from device to server; `None` for unlimited.
    pub rate_up: Option<BitsPerSecond>,
    /// Rate from server to device; `None` for unlimited.
    pub rate_down: Option<BitsPerSecond>,
    /// How many packets each direction's queue holds before it drops the newest.
    pub queue_packets: u32,
    /// Largest IP packet, B.
    pub mtu: u16,
    /// Loss, the same law in each direction, independently.
    pub loss: Loss,
}

/// A law of packet loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    #[serde(deserialize_with = "no_settings")]
    None,
    /// Each packet is lost independently.
    Independent {
        /// Probability that a packet is lost.
        probability: Probability,
    },
    /// Two-state Markov chain stepped at each packet, begun in its stationary state (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability to enter the bad state, per packet.
        good_to_bad: Probability,
        /// Probability to leave the bad state, per packet.
        bad_to_good: Probability,
        /// Loss probability in the good state.
        loss_good: Probability,
        /// Loss probability in the bad state.
        loss_bad: Probability,
    },
}

/// Refuses keys beside the tag, which serde lets a unit variant ignore.
fn no_settings<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    Nothing::deserialize(from).map(|Nothing {}| ())
}

/// The protocols and their settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The application protocol.
    pub protocol: Protocol,
    /// The TLS version.
    pub tls: TlsVersion,
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
    /// Name of the kernel profile whose TCP both ends run, for example `linux-6.18`.
    pub kernel: String,
    /// Congestion control of both ends.
    pub congestion_control: CongestionControl,
    /// Initial congestion window of both ends, segments.
    pub initcwnd: u8,
    /// Whether Nagle's algorithm is on (no TCP_NODELAY) on both ends.
    pub nagle: bool,
}

/// The application protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1 over TLS over TCP.
    Https,
}

/// The TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// The server alone.
    Server,
    /// Both ends.
    Mutual,
}

/// An (EC)DHE group, by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// NIST P-256.
    Secp256r1,
    /// RFC 7748.
    X25519,
}

/// The key type of the certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CertificateType {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ecdsa_secp256r1")]
    EcdsaSecp256r1,
    /// RSA with a 2048-bit modulus.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
}

/// The AEAD of a cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

/// When the client's key share is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyShare {
    /// During the handshake.
    #[default]
    Fresh,
    /// Before connect(), so that ClientHello waits ready (papers/2 section 5.2).
    Prepared,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 9438, as Linux has it.
    Cubic,
    /// RFC 5681 with RFC 6582.
    Reno,
}

/// What the device does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The shape of the exchange.
    pub kind: PatternKind,
    /// The path of the GET request.
    pub path: String,
    /// Length of the response's body, B.
    pub response_body: u32,
    /// How many connections the device opens at the same moment; they share its loop, its
    /// key store and the link.
    pub concurrent: u16,
}

/// The shape of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// Connect, one GET, first byte of the response.
    Request,
}

impl Case {
    /// The canonical form: JSON with keys in the order of the fields and integers in base units.
    pub fn canonical(&self) -> String {
        // A Case holds only strings, numbers, lists and enums without data in map keys, so
        // serialisation cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What cases have in common that need the same operations of the same profiles: all but the
    /// link's conditions other than its MTU.
    pub fn needs(&self) -> String {
        let Case { device, server, key_store, link, stack, pattern } = self;
        let all = (device, server, key_store, link.mtu, stack, pattern);
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// The name of this case, see [`CaseId`].
    pub fn id(&self) -> CaseId {
        let digest = Sha256::digest(self.canonical().as_bytes());
        CaseId(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
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

    /// Its AEAD.
    pub const fn aead(self) -> Aead {
        use CipherSuite::*;
        match self {
            TlsAes128GcmSha256
            | TlsEcdheEcdsaWithAes128GcmSha256
            | TlsEcdheRsaWithAes128GcmSha256 => Aead::Aes128Gcm,
            TlsAes256GcmSha384
            | TlsEcdheEcdsaWithAes256GcmSha384
            | TlsEcdheRsaWithAes256GcmSha384 => Aead::Aes256Gcm,
            TlsChacha20Poly1305Sha256
            | TlsEcdheEcdsaWithChacha20Poly1305Sha256
            | TlsEcdheRsaWithChacha20Poly1305Sha256 => Aead::ChaCha20Poly1305,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// TLS 1.3 in full, one P-256 certificate of the server alone.
    pub(crate) fn any_stack() -> Stack {
        Stack {
            protocol: Protocol::Https,
            tls: TlsVersion::Tls13,
            session: Session::Full,
            authentication: Authentication::Server,
            group: Group::Secp256r1,
            certificate: CertificateType::EcdsaSecp256r1,
            chain_length: 1,
            server_certificate_bytes: vec![474],
            client_certificate_bytes: vec![],
            cipher_suite: CipherSuite::TlsAes128GcmSha256,
            key_share: KeyShare::Fresh,
            server_name: None,
            kernel: "linux-6.18".into(),
            congestion_control: CongestionControl::Cubic,
            initcwnd: 10,
            nagle: false,
        }
    }

    pub(crate) fn any_case() -> Case {
        Case {
            device: Host { profile: "d".into() },
            server: Server { profile: "s".into(), workers: 1 },
            key_store: KeyStoreChoice { profile: "software".into(), session_open: true },
            link: Link {
                profile: "loopback".into(),
                rtt: Nanos::from_millis(60),
                jitter: vec![],
                keep_order: true,
                rate_up: None,
                rate_down: Some(BitsPerSecond(1_000_000)),
                queue_packets: 1000,
                mtu: 1500,
                loss: Loss::Independent { probability: Probability(0.02) },
            },
            stack: any_stack(),
            pattern: Pattern {
                kind: PatternKind::Request,
                path: "/".into(),
                response_body: 846,
                concurrent: 1,
            },
        }
    }

    /// A changed id would orphan every result that is stored under the old one.
    #[test]
    fn the_name_of_a_case_never_changes() {
        assert_eq!(
            any_case().canonical(),
            "{\"device\":{\"profile\":\"d\"},\"server\":{\"profile\":\"s\"},\
             \"key_store\":{\"profile\":\"software\",\"session_open\":true},\
             \"link\":{\"profile\":\"loopback\",\"rtt\":60000000,\"jitter\":[],\
             \"keep_order\":true,\"rate_up\":null,\"rate_down\":1000000,\
             \"queue_packets\":1000,\"mtu\":1500,\
             \"loss\":{\"kind\":\"independent\",\"probability\":0.02}},\
             \"stack\":{\"protocol\":\"https\",\"tls\":\"1.3\",\"session\":\"full\",\
             \"authentication\":\"server\",\"group\":\"secp256r1\",\
             \"certificate\":\"ecdsa_secp256r1\",\"chain_length\":1,\
             \"server_certificate_bytes\":[474],\"client_certificate_bytes\":[],\
             \"cipher_suite\":\"TLS_AES_128_GCM_SHA256\",\"key_share\":\"fresh\",\
             \"server_name\":null,\"kernel\":\"linux-6.18\",\
             \"congestion_control\":\"cubic\",\"initcwnd\":10,\"nagle\":false},\
             \"pattern\":{\"kind\":\"request\",\"path\":\"/\",\"response_body\":846,\
             \"concurrent\":1}}"
        );
        assert_eq!(any_case().id(), CaseId("359b04fe327d9b80".into()));
        let mut busy = any_case();
        busy.server.workers = 8;
        assert!(busy.canonical().contains("\"server\":{\"profile\":\"s\",\"workers\":8}"));
    }

    #[test]
    fn loss_of_kind_none_with_settings() {
        assert_eq!(serde_json::from_str::<Loss>(r#"{"kind":"none"}"#).unwrap(), Loss::None);
        let error = serde_json::from_str::<Loss>(r#"{"kind":"none","probability":1}"#);
        assert!(error.unwrap_err().to_string().contains("unknown field `probability`"));
    }

    #[test]
    fn the_canonical_form_reads_back() {
        let case = any_case();
        assert_eq!(serde_json::from_str::<Case>(&case.canonical()).unwrap(), case);
    }
}

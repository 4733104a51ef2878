// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case: one point of a study, every choice resolved.

mod canonical;
mod coap;
mod dds;
mod link;
#[cfg(test)]
mod schema;
mod stack;
mod tls;
mod transport;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

pub use coap::{Coap, CoapMessageType};
pub use dds::{Dds, DdsAead, DdsCrypto, DdsMiddleware, DdsProtection};
pub use link::{Link, Loss};
pub use stack::{Https, Layer, Protocol, Stack};
pub use tls::{
    Aead, Authentication, CertificateType, CipherSuite, Group, KeyShare, Psk, PskMode, Session,
    Tls, TlsVersion,
};
pub use transport::{CongestionControl, Tcp};

/// One point of a study, every choice resolved. It says *what* is asked; the figures come from
/// the profiles that it names, so that both halves of the tally can take the same case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The protocols and their settings, layer by layer.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of a file in `profiles/devices/`, without its ending.
    pub profile: String,
}

/// A server, by the name of its device profile, and how many connections it computes for at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Name of a file in `profiles/devices/`, without its ending.
    pub profile: String,
    /// Workers, each with a processor of its own; connections wait for a free one, first come,
    /// first served. Not part of the canonical form where it is 1.
    #[serde(default = "one_worker", skip_serializing_if = "is_one_worker")]
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    pub workers: u32,
}

fn one_worker() -> u32 {
    1
}

fn is_one_worker(workers: &u32) -> bool {
    *workers == 1
}

/// A key store, by the name of its profile, and how its session is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyStoreChoice {
    /// Name of a file in `profiles/key-stores/`, without its ending.
    pub profile: String,
    /// Whether C_OpenSession, C_Login and C_FindObjects were done before the connection
    /// (`sign_only` in papers/1 Table 2) or belong to it (`total`).
    pub session_open: bool,
}

/// What the device does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The shape of the exchange.
    pub kind: PatternKind,
    /// The path of the request.
    pub path: String,
    /// Length of the response's body, B.
    pub response_body: u32,
    /// Length of the request's body, B: a POST, or a GET where it is 0, which is not part of the
    /// canonical form.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(test, schemars(extend("default" = 0)))]
    pub request_body: u32,
    /// How many connections the device opens at the same moment; they share its loop, its
    /// key store and the link.
    pub concurrent: u32,
    /// Samples a second of a stream; `None`, and not part of the canonical form, for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// How long before the connection both ends have had none, ns, the mean where pauses vary;
    /// `None`, and not part of the canonical form, for one of many that follow one another within a
    /// tenth of a second, after which a device's costs are as they were calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Nanos>,
}

/// B. The longest body whose last byte is predicted: what is longer meets what the simulated TCP
/// leaves out (the receiver's window begins with 64 KiB and must grow; pacing).
pub const LONGEST_BODY: u32 = 128 << 10;
/// From this length on a response, whose head is shorter than 512 B, may take two TLS records.
const SECOND_RECORD: u32 = (16 << 10) - 512;

impl Pattern {
    /// Whether the end of the response is a time of its own, and predicted: a shorter response is
    /// one TLS record, which is there as a whole with its first byte.
    pub fn has_response_done(&self) -> bool {
        (SECOND_RECORD..=LONGEST_BODY).contains(&self.response_body)
    }
}

fn is_zero(bytes: &u32) -> bool {
    *bytes == 0
}

/// The shape of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// Connect, one GET or POST, first byte of the response; with DDS, a sample and its answer.
    Request,
    /// DDS: samples at a rate, which nobody answers.
    Stream,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::units::{BitsPerSecond, Nanos, Probability};

    /// TLS 1.3 in full, one P-256 certificate of the server alone.
    pub(crate) fn any_tls() -> Tls {
        Tls {
            version: TlsVersion::Tls13,
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
            psk: None,
        }
    }

    /// HTTPS over any TCP.
    pub(crate) fn https(tls: Tls) -> Stack {
        let tcp = Tcp {
            device: "linux-6.18".into(),
            server: "linux-6.18".into(),
            congestion_control: CongestionControl::Cubic,
            initcwnd: 10,
            nagle: false,
        };
        Stack::Https(Https { tls, tcp })
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
            stack: https(any_tls()),
            pattern: Pattern {
                kind: PatternKind::Request,
                path: "/".into(),
                response_body: 846,
                request_body: 0,
                concurrent: 1,
                rate: None,
                pause: None,
            },
        }
    }
}

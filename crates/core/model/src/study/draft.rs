// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of a case as far as a study states them.

use crate::case::{
    Aead, Authentication, CertificateType, CipherSuite, CoapMessageType, CongestionControl,
    DdsAead, DdsCrypto, DdsMiddleware, DdsProtection, Group, KeyShare, Loss, PatternKind, Protocol,
    PskMode, Session, TlsVersion,
};
use crate::keyword::Keyword;
use crate::units::{BitsPerSecond, Nanos};

/// What a study states; `None` where the default or the profile decides.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Draft {
    pub(crate) device: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) key_store: Option<String>,
    pub(crate) session_open: Option<bool>,
    pub(crate) link: Option<String>,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) workers: Option<u32>,
    pub(crate) jitter: Option<Vec<Nanos>>,
    pub(crate) keep_order: Option<bool>,
    pub(crate) rate_up: Option<BitsPerSecond>,
    pub(crate) rate_down: Option<BitsPerSecond>,
    pub(crate) queue_packets: Option<u32>,
    pub(crate) mtu: Option<u16>,
    pub(crate) loss: Option<Loss>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) tls: Option<TlsVersion>,
    pub(crate) session: Option<SessionWord>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) group: Option<Group>,
    pub(crate) certificate: Option<CertificateType>,
    pub(crate) chain_length: Option<u8>,
    pub(crate) server_certificate_bytes: Option<Vec<u16>>,
    pub(crate) client_certificate_bytes: Option<Vec<u16>>,
    pub(crate) cipher_suite: Option<CipherSuite>,
    pub(crate) aead: Option<Aead>,
    pub(crate) key_share: Option<KeyShare>,
    pub(crate) server_name: Option<String>,
    pub(crate) psk_mode: Option<PskMode>,
    pub(crate) psk_identity_bytes: Option<u16>,
    pub(crate) device_tcp: Option<String>,
    pub(crate) server_tcp: Option<String>,
    pub(crate) congestion_control: Option<CongestionControl>,
    pub(crate) initcwnd: Option<u8>,
    pub(crate) nagle: Option<bool>,
    pub(crate) message_type: Option<CoapMessageType>,
    pub(crate) ack_timeout: Option<Nanos>,
    pub(crate) ack_random_factor_percent: Option<u16>,
    pub(crate) max_retransmit: Option<u8>,
    pub(crate) middleware: Option<DdsMiddleware>,
    pub(crate) crypto: Option<DdsCrypto>,
    pub(crate) crypto_aead: Option<DdsAead>,
    pub(crate) data_protection: Option<DdsProtection>,
    pub(crate) metadata_protection: Option<DdsProtection>,
    pub(crate) rtps_protection: Option<DdsProtection>,
    pub(crate) discovery_protection: Option<DdsProtection>,
    pub(crate) pattern: Option<PatternKind>,
    pub(crate) path: Option<String>,
    pub(crate) response_body: Option<u32>,
    pub(crate) request_body: Option<u32>,
    pub(crate) pause: Option<Nanos>,
    pub(crate) concurrent: Option<u32>,
    pub(crate) rate: Option<u32>,
}

/// How a study names a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionWord {
    /// `resumed`: the usual way of the TLS version.
    Resumed,
    /// One way.
    Exactly(Session),
}

impl Keyword for SessionWord {
    const ALL: &'static [Self] = &[
        SessionWord::Exactly(Session::Full),
        SessionWord::Resumed,
        SessionWord::Exactly(Session::Ticket),
        SessionWord::Exactly(Session::PskDheKe),
        SessionWord::Exactly(Session::PskKe),
        SessionWord::Exactly(Session::EarlyData),
    ];
    const ALIASES: &'static [(&'static str, Self)] = &[];

    fn name(self) -> &'static str {
        match self {
            SessionWord::Resumed => "resumed",
            SessionWord::Exactly(session) => session.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_and_resumed_have_a_word() {
        assert_eq!(SessionWord::ALL.len(), Session::ALL.len() + 1);
        for &session in Session::ALL {
            let word = SessionWord::Exactly(session);
            assert_eq!(SessionWord::from_word(session.name()), Ok(word));
        }
        assert_eq!(SessionWord::from_word("resumed"), Ok(SessionWord::Resumed));
        assert_eq!(
            SessionWord::from_word("resume").unwrap_err(),
            "expected one of \"full\", \"resumed\", \"ticket\", \"psk_dhe_ke\", \"psk_ke\", \
             \"0-rtt\"; did you mean \"resumed\"?"
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every TLS choice of one connection, in the words of studies.

use serde::{Deserialize, Serialize};
use warifu_model::{
    Authentication, CertificateType, CipherSuite, Group, Https, KeyShare, Keyword, Psk, PskMode,
    Session, TlsVersion,
};

use crate::error::Error;

/// Every TLS choice that a study can make for one connection.
///
/// [`Variant::check`] tells whether the choices go together; everything in
/// this crate that takes a variant calls it first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Protocol version; both ends offer this one alone.
    pub tls: TlsVersion,
    /// How the connection begins: in full, or from an earlier one.
    ///
    /// `psk_ke` needs a detour. OpenSSL 3.0's client always offers `psk_dhe_ke` as well, and its
    /// server prefers that; PSK alone is reached only where both allow it
    /// (`SSL_OP_ALLOW_NO_DHE_KEX`) and share no group on the resumption. So the first connection
    /// uses [`Variant::group`], and the resumption offers the other group, which the server lacks.
    pub session: Session,
    /// Who shows a certificate.
    pub authentication: Authentication,
    /// The (EC)DHE group; both ends offer this one alone (but see [`Variant::session`]).
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
    /// The key from outside, with authentication `psk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psk: Option<Psk>,
}

impl From<&Https> for Variant {
    /// Without the sizes of certificates, which are those of the PKI.
    fn from(stack: &Https) -> Variant {
        let tls = &stack.tls;
        Variant {
            tls: tls.version,
            session: tls.session,
            authentication: tls.authentication,
            group: tls.group,
            certificate: tls.certificate,
            chain_length: tls.chain_length,
            cipher_suite: tls.cipher_suite,
            key_share: tls.key_share,
            nagle: stack.tcp.nagle,
            server_name: tls.server_name.clone(),
            psk: tls.psk,
        }
    }
}

impl Variant {
    /// Whether OpenSSL calls a connection resumed: TLS 1.3 has one way for all PSKs, those of
    /// tickets and those from outside.
    pub fn is_reused(&self) -> bool {
        self.session.is_resumed() || (self.psk.is_some() && self.tls == TlsVersion::Tls13)
    }

    /// Whether a PSK may go without (EC)DHE, which both ends must allow.
    pub(crate) fn psk_alone(&self) -> bool {
        let outside = self.psk.is_some_and(|psk| psk.mode == PskMode::PskKe);
        self.session == Session::PskKe || (outside && self.tls == TlsVersion::Tls13)
    }

    /// Refuses choices that do not go together, naming the key and the fix.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        if !(1..=3).contains(&self.chain_length) {
            return refuse(format!("chain_length is {}: expected 1, 2 or 3", self.chain_length));
        }
        if (self.authentication == Authentication::Psk) != self.psk.is_some()
            || (self.psk.is_some() && self.session != Session::Full)
        {
            return refuse(format!(
                "authentication is {}: psk goes with a key from outside and a full session, and \
                 nothing else does",
                self.authentication.name()
            ));
        }
        let aead = self.cipher_suite.aead();
        if let Some(psk) = self.psk
            && CipherSuite::of_psk(self.tls, psk.mode, aead) != Some(self.cipher_suite)
        {
            return refuse(format!(
                "cipher_suite is {}: TLS {} with {} has no such suite",
                self.cipher_suite.name(),
                self.tls.name(),
                psk.mode.name()
            ));
        }
        if self.psk.is_none() && !self.cipher_suite.fits(self.tls, self.certificate) {
            let lack = if self.cipher_suite.tls() == self.tls {
                format!("certificate {} cannot serve it", self.certificate.name())
            } else {
                format!("TLS {} lacks it", self.tls.name())
            };
            let fitting = CipherSuite::ALL
                .iter()
                .filter(|suite| suite.fits(self.tls, self.certificate))
                .map(|suite| suite.name());
            return refuse(format!(
                "cipher_suite is {}: {lack}; choose one of {}",
                self.cipher_suite.name(),
                fitting.collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.session.fits(self.tls) {
            return refuse(format!(
                "session is {}: TLS {} resumes by {}",
                self.session.name(),
                self.tls.name(),
                Session::ways_of_resumption(self.tls)
            ));
        }
        if self.tls == TlsVersion::Tls12 && self.key_share == KeyShare::Prepared {
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

/// The name that OpenSSL's group lists know.
pub(crate) const fn openssl_name(group: Group) -> &'static str {
    match group {
        Group::Secp256r1 => "P-256",
        Group::X25519 => "X25519",
    }
}

/// The other of the two groups.
pub(crate) const fn other_group(group: Group) -> Group {
    match group {
        Group::Secp256r1 => Group::X25519,
        Group::X25519 => Group::Secp256r1,
    }
}

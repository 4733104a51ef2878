// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A variant made into OpenSSL contexts: a server set up as nginx sets it up, and a client.

use std::fs;
use std::path::Path;

use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions, SslSession,
    SslSessionCacheMode, SslVerifyMode, SslVersion,
};
use openssl::stack::Stack;
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use warifu_model::{Authentication, CertificateType, Group, Keyword, Psk, Session, TlsVersion};

use crate::error::Error;
use crate::ffi;
use crate::pki::{Pki, SERVER_NAME};
use crate::variant::{Variant, openssl_name, other_group};

/// Seconds for which a session can be resumed. The lab's nginx is given
/// `ssl_session_timeout 1d`, so that tickets made ahead live as long as a run.
pub const SESSION_TIMEOUT_S: u32 = 86_400;
/// Early data that the server accepts: nginx's NGX_SSL_BUFSIZE.
pub const MAX_EARLY_DATA_BYTES: u32 = 16_384;
/// nginx takes a SHA-1 digest as its session id context; a ticket contains it.
const SESSION_ID_CONTEXT: [u8; 20] = *b"warifu-session-ctx-1";

/// The client's side of a variant: sessions belong to the context that they came from.
pub struct ClientContext {
    context: SslContext,
    variant: Variant,
}

/// What a client needs from a PKI.
pub struct ClientCredentials {
    /// The root that it trusts.
    pub root: X509,
    /// Its own leaf, intermediates and key; used with mutual authentication.
    pub own: Option<(X509, Vec<X509>, PKey<Private>)>,
    /// The key from outside, of a variant that has one; without it the one that
    /// [`server_context`] takes.
    pub psk: Option<PskKey>,
}

/// A key that both ends were given beforehand, and the identity by which a device names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PskKey {
    /// Its name, without a zero.
    pub identity: Vec<u8>,
    /// Its bytes.
    pub key: Vec<u8>,
}

impl PskKey {
    /// That of both ends of a connection over memory, which protects nothing.
    fn of_memory(psk: Psk) -> PskKey {
        PskKey { identity: vec![b'd'; psk.identity_bytes.into()], key: vec![7; 32] }
    }

    /// Puts identity, ended by a zero, and key into libssl's buffers; the key's length.
    fn tell(&self, identity: &mut [u8], secret: &mut [u8]) -> Result<usize, ErrorStack> {
        let names = self.identity.len();
        if names < identity.len() && self.key.len() <= secret.len() {
            identity[..names].copy_from_slice(&self.identity);
            identity[names] = 0;
            secret[..self.key.len()].copy_from_slice(&self.key);
            return Ok(self.key.len());
        }
        Err(ErrorStack::get())
    }
}

impl ClientCredentials {
    /// Takes them from a PKI in memory.
    pub fn from_pki(pki: &Pki) -> Self {
        Self {
            root: pki.root.certificate.clone(),
            own: Some((
                pki.client.certificate.clone(),
                pki.sent_intermediates().cloned().collect(),
                pki.client.key.clone(),
            )),
            psk: None,
        }
    }

    /// Reads `root.pem` and, if `own`, `client-chain.pem` and `client.key` from a folder that
    /// [`Pki::write`] made.
    pub fn read(folder: &Path, own: bool) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(Error::file(&path))
        };
        let root = X509::from_pem(&read("root.pem")?)?;
        let own = if own {
            let mut chain = X509::stack_from_pem(&read("client-chain.pem")?)?;
            if chain.is_empty() {
                return Err(Error::Config(format!(
                    "{}: no certificate in it; make it with `warifu-tls pki`",
                    folder.join("client-chain.pem").display()
                )));
            }
            let intermediates = chain.split_off(1);
            let key = PKey::private_key_from_pem(&read("client.key")?)?;
            chain.pop().map(|leaf| (leaf, intermediates, key))
        } else {
            None
        };
        Ok(Self { root, own, psk: None })
    }

    /// The same, with another key for the certificate: one that a key store signs with.
    #[must_use]
    pub fn with_key(self, key: PKey<Private>) -> Self {
        Self { own: self.own.map(|(leaf, chain, _)| (leaf, chain, key)), ..self }
    }
}

impl ClientContext {
    /// Sets up a client that offers the variant's choices and nothing else.
    pub fn new(variant: &Variant, credentials: &ClientCredentials) -> Result<Self, Error> {
        variant.check()?;
        let mut context = SslContext::builder(SslMethod::tls_client())?;
        restrict(&mut context, variant)?;
        let mut store = X509StoreBuilder::new()?;
        store.add_cert(credentials.root.clone())?;
        context.set_cert_store(store.build());
        context.set_verify(SslVerifyMode::PEER);
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
        if let Some(psk) = variant.psk {
            let key = credentials.psk.clone().unwrap_or_else(|| PskKey::of_memory(psk));
            context
                .set_psk_client_callback(move |_, _, identity, secret| key.tell(identity, secret));
        }
        if variant.authentication == Authentication::Mutual {
            let Some((leaf, intermediates, key)) = &credentials.own else {
                return Err(Error::Config(
                    "authentication is mutual: the client needs a certificate and a key".into(),
                ));
            };
            show(&mut context, leaf, intermediates, key)?;
        }
        Ok(Self { context: context.build(), variant: variant.clone() })
    }

    /// A connection that begins in full, to be given a session ticket.
    pub fn first(&self) -> Result<Ssl, Error> {
        self.connection(self.variant.group)
    }

    /// A connection as the variant says; one that resumes needs a `session` of this context.
    pub fn measured(&self, session: Option<&SslSession>) -> Result<Ssl, Error> {
        let group = match self.variant.psk_alone() {
            true => other_group(self.variant.group),
            false => self.variant.group,
        };
        let mut ssl = self.connection(group)?;
        match (self.variant.session.is_resumed(), session) {
            (true, Some(session)) => ffi::resume(&mut ssl, session)?,
            (false, None) => {}
            (true, None) => {
                return Err(Error::Config(format!(
                    "session is {}: there is no earlier session to resume",
                    self.variant.session.name()
                )));
            }
            (false, Some(_)) => {
                return Err(Error::Config("session is full: it takes no earlier session".into()));
            }
        }
        Ok(ssl)
    }

    /// The choices that it was made for.
    pub fn variant(&self) -> &Variant {
        &self.variant
    }

    fn connection(&self, group: Group) -> Result<Ssl, Error> {
        let mut ssl = Ssl::new(&self.context)?;
        ffi::set_groups(&mut ssl, groups_list(&self.variant, group))?;
        if let Some(name) = &self.variant.server_name {
            ssl.set_hostname(name)?;
        }
        ssl.param_mut().set_host(SERVER_NAME)?;
        ssl.set_connect_state();
        Ok(ssl)
    }
}

/// A server context as nginx 1.22 makes it for one variant (`ngx_ssl_create`,
/// `ngx_ssl_client_certificate`, `ngx_ssl_session_cache` in ngx_event_openssl.c).
pub fn server_context(variant: &Variant, pki: &Pki) -> Result<SslContext, Error> {
    variant.check()?;
    let mut context = SslContext::builder(SslMethod::tls())?;
    restrict(&mut context, variant)?;
    context.set_groups_list(groups_list(variant, variant.group))?;
    // nginx acknowledges every name (`ngx_http_ssl_servername`).
    context.set_servername_callback(|_, _| Ok(()));
    context.set_options(SslOptions::SINGLE_DH_USE | SslOptions::NO_COMPRESSION);
    context.set_read_ahead(true);
    ffi::no_anti_replay(&mut context);
    let intermediates: Vec<X509> = pki.sent_intermediates().cloned().collect();
    // It is there, and shown to nobody, where there is a key from outside.
    show(&mut context, &pki.server.certificate, &intermediates, &pki.server.key)?;
    if let Some(psk) = variant.psk {
        let known = PskKey::of_memory(psk);
        context.set_psk_server_callback(move |_, identity, secret| match identity {
            Some(name) if name == known.identity && known.key.len() <= secret.len() => {
                secret[..known.key.len()].copy_from_slice(&known.key);
                Ok(known.key.len())
            }
            // No such key: the handshake ends with unknown_psk_identity.
            _ => Ok(0),
        });
    }
    if variant.authentication == Authentication::Mutual {
        let mut store = X509StoreBuilder::new()?;
        store.add_cert(pki.root.certificate.clone())?;
        context.set_cert_store(store.build());
        context.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        context.set_verify_depth(3);
        let mut names = Stack::new()?;
        names.push(pki.root.certificate.subject_name().to_owned()?)?;
        context.set_client_ca_list(names);
    }
    // nginx without `ssl_session_cache`: no server-side store, but tickets.
    context.set_session_cache_mode(
        SslSessionCacheMode::SERVER
            | SslSessionCacheMode::NO_AUTO_CLEAR
            | SslSessionCacheMode::NO_INTERNAL_STORE,
    );
    context.set_session_id_context(&SESSION_ID_CONTEXT)?;
    ffi::set_session_timeout(&mut context, SESSION_TIMEOUT_S);
    if variant.session == Session::EarlyData {
        context.set_max_early_data(MAX_EARLY_DATA_BYTES)?;
    }
    Ok(context.build())
}

/// The groups of one end, the wanted one first. TLS 1.2 holds the curve of an ECDSA certificate
/// to the same list (RFC 8422 section 5.1), so P-256 stands in it as well.
fn groups_list(variant: &Variant, group: Group) -> &'static str {
    match (variant.tls, variant.certificate, group) {
        (TlsVersion::Tls12, CertificateType::EcdsaSecp256r1, Group::X25519)
            if variant.psk.is_none() =>
        {
            "X25519:P-256"
        }
        _ => openssl_name(group),
    }
}

/// What both ends do alike: one version, one suite, and PSK alone where it is asked for.
fn restrict(context: &mut SslContextBuilder, variant: &Variant) -> Result<(), Error> {
    let version = match variant.tls {
        TlsVersion::Tls12 => SslVersion::TLS1_2,
        TlsVersion::Tls13 => SslVersion::TLS1_3,
    };
    context.set_min_proto_version(Some(version))?;
    context.set_max_proto_version(Some(version))?;
    let suite = variant.cipher_suite.name();
    match variant.tls {
        TlsVersion::Tls12 => context.set_cipher_list(openssl::ssl::cipher_name(suite))?,
        TlsVersion::Tls13 => context.set_ciphersuites(suite)?,
    }
    if variant.psk_alone() {
        ffi::allow_psk_alone(context);
    }
    context.set_mode(SslMode::RELEASE_BUFFERS);
    Ok(())
}

fn show(
    context: &mut SslContextBuilder,
    leaf: &X509,
    intermediates: &[X509],
    key: &PKey<Private>,
) -> Result<(), Error> {
    // Without this OpenSSL completes a chain from its store, and would send the root.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    context.set_certificate(leaf)?;
    context.set_private_key(key)?;
    for intermediate in intermediates {
        context.add_extra_chain_cert(intermediate.clone())?;
    }
    Ok(())
}

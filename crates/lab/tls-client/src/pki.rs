// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small certificate authority whose certificates have predictable sizes.
//!
//! Every field that could vary in length is fixed (names, serial, validity),
//! and an ECDSA signature is made anew until its DER form has the most common
//! length. So the size of a certificate is a function of its type, its level
//! and its role alone, and two runs send the same number of bytes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use openssl::asn1::{Asn1Integer, Asn1Time};
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName,
    SubjectKeyIdentifier,
};
use openssl::x509::{X509, X509Builder, X509Name, X509NameRef};
use serde::Serialize;
use warifu_model::CertificateType;

use crate::error::Error;

/// The name in the server's certificate.
pub const SERVER_NAME: &str = "warifu.test";
/// The name in the client's certificate, as long as the server's.
pub const CLIENT_NAME: &str = "device.test";

/// DER length of an ECDSA P-256 signature whose r or s, but not both, needs a
/// leading zero: about half of all signatures (X.690 section 8.3).
const ECDSA_SIGNATURE_BYTES: usize = 71;
/// A serial number of RFC 5280's greatest length (section 4.1.2.2).
const SERIAL_BYTES: usize = 20;
/// UTCTime, 13 bytes each, as RFC 5280 section 4.1.2.5 demands before 2050.
const VALIDITY: [&str; 2] = ["20250101000000Z", "20450101000000Z"];

/// A root, its intermediates, and a chain for each end.
pub struct Pki {
    /// Type of every key in it.
    pub certificate: CertificateType,
    /// The root; trusted, never sent.
    pub root: Issued,
    /// From the one that the root signed down to the one that signs the leaves.
    pub intermediates: Vec<Issued>,
    /// The server's leaf.
    pub server: Issued,
    /// The client's leaf.
    pub client: Issued,
}

/// A certificate with its key.
pub struct Issued {
    /// The certificate.
    pub certificate: X509,
    /// Its private key.
    pub key: PKey<Private>,
}

/// DER sizes in bytes, in the order in which the certificates are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Type of the keys.
    pub certificate: CertificateType,
    /// How many certificates an end sends.
    pub chain_length: usize,
    /// The root, which is not sent.
    pub root_bytes: usize,
    /// The server's leaf, then its intermediates.
    pub server_chain_bytes: Vec<usize>,
    /// The client's leaf, then its intermediates.
    pub client_chain_bytes: Vec<usize>,
    /// DER length of the root's subject, which a server's CertificateRequest carries.
    pub root_subject_bytes: usize,
}

impl Pki {
    /// Makes keys and certificates; `chain_length` of them, from 1 to 3, are sent by each end.
    pub fn generate(certificate: CertificateType, chain_length: u8) -> Result<Self, Error> {
        if !(1..=3).contains(&chain_length) {
            return Err(Error::Config(format!(
                "chain_length is {chain_length}: expected 1, 2 or 3"
            )));
        }
        let root = issue(certificate, Role::Root, 1, None)?;
        let mut intermediates: Vec<Issued> = Vec::new();
        for level in 1..chain_length {
            let issuer = intermediates.last().unwrap_or(&root);
            let issued = issue(certificate, Role::Intermediate { level }, 1 + level, Some(issuer))?;
            intermediates.push(issued);
        }
        let issuer = intermediates.last().unwrap_or(&root);
        let server = issue(certificate, Role::Server, 0x10, Some(issuer))?;
        let client = issue(certificate, Role::Client, 0x20, Some(issuer))?;
        Ok(Self { certificate, root, intermediates, server, client })
    }

    /// How many certificates each end sends.
    pub fn chain_length(&self) -> usize {
        1 + self.intermediates.len()
    }

    /// The intermediates in the order in which they are sent: the leaf's issuer first.
    pub fn sent_intermediates(&self) -> impl Iterator<Item = &X509> {
        self.intermediates.iter().rev().map(|issued| &issued.certificate)
    }

    /// DER sizes of all certificates.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let chain = |leaf: &Issued| -> Result<Vec<usize>, Error> {
            std::iter::once(&leaf.certificate)
                .chain(self.sent_intermediates())
                .map(|certificate| Ok(certificate.to_der()?.len()))
                .collect()
        };
        Ok(Sizes {
            certificate: self.certificate,
            chain_length: self.chain_length(),
            root_bytes: self.root.certificate.to_der()?.len(),
            server_chain_bytes: chain(&self.server)?,
            client_chain_bytes: chain(&self.client)?,
            root_subject_bytes: self.root.certificate.subject_name().to_der()?.len(),
        })
    }

    /// Writes `root.pem`, `{server,client}.pem` (the leaf), `{server,client}-chain.pem` (what is
    /// sent) and `{server,client}.key` into `folder`, which is made if need be. Keys can be read
    /// by their owner only. Nothing is overwritten.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        create(&folder.join("root.pem"), 0o644, &self.root.certificate.to_pem()?)?;
        for (name, leaf) in [("server", &self.server), ("client", &self.client)] {
            let mut chain = leaf.certificate.to_pem()?;
            create(&folder.join(format!("{name}.pem")), 0o644, &chain)?;
            for intermediate in self.sent_intermediates() {
                chain.extend(intermediate.to_pem()?);
            }
            create(&folder.join(format!("{name}-chain.pem")), 0o644, &chain)?;
            let key = leaf.key.private_key_to_pem_pkcs8()?;
            create(&folder.join(format!("{name}.key")), 0o600, &key)?;
        }
        Ok(())
    }
}

fn create(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(Error::file(path))
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Root,
    Intermediate { level: u8 },
    Server,
    Client,
}

impl Role {
    fn common_name(self) -> String {
        match self {
            Self::Root => "Warifu Root CA".into(),
            Self::Intermediate { level } => format!("Warifu Intermediate CA {level}"),
            Self::Server => SERVER_NAME.into(),
            Self::Client => CLIENT_NAME.into(),
        }
    }

    fn is_authority(self) -> bool {
        matches!(self, Self::Root | Self::Intermediate { .. })
    }
}

fn issue(
    kind: CertificateType,
    role: Role,
    serial: u8,
    issuer: Option<&Issued>,
) -> Result<Issued, Error> {
    let key = new_key(kind)?;
    let subject = name(&role.common_name())?;
    loop {
        let certificate = sign(kind, role, serial, &subject, &key, issuer)?;
        let unlike = certificate.signature().as_slice().len() != ECDSA_SIGNATURE_BYTES;
        if kind == CertificateType::EcdsaSecp256r1 && unlike {
            continue;
        }
        return Ok(Issued { certificate, key });
    }
}

/// A key such as the certificates hold.
pub fn new_key(kind: CertificateType) -> Result<PKey<Private>, Error> {
    Ok(match kind {
        CertificateType::EcdsaSecp256r1 => {
            let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
            PKey::from_ec_key(EcKey::generate(&group)?)?
        }
        CertificateType::Rsa2048 => PKey::from_rsa(Rsa::generate(2048)?)?,
    })
}

fn name(common_name: &str) -> Result<X509Name, Error> {
    let mut builder = X509Name::builder()?;
    builder.append_entry_by_nid(Nid::ORGANIZATIONNAME, "Warifu")?;
    builder.append_entry_by_nid(Nid::COMMONNAME, common_name)?;
    Ok(builder.build())
}

fn sign(
    kind: CertificateType,
    role: Role,
    serial: u8,
    subject: &X509NameRef,
    key: &PKey<Private>,
    issuer: Option<&Issued>,
) -> Result<X509, Error> {
    let mut builder = X509::builder()?;
    builder.set_version(2)?; // X.509 v3
    // A first byte from 1 to 0x7f keeps the DER integer at its length.
    let mut bytes = [0x5a; SERIAL_BYTES];
    bytes[SERIAL_BYTES - 1] = serial;
    let serial: Asn1Integer = BigNum::from_slice(&bytes)?.to_asn1_integer()?;
    builder.set_serial_number(&serial)?;
    let not_before = Asn1Time::from_str_x509(VALIDITY[0])?;
    builder.set_not_before(&not_before)?;
    let not_after = Asn1Time::from_str_x509(VALIDITY[1])?;
    builder.set_not_after(&not_after)?;
    builder.set_subject_name(subject)?;
    builder.set_issuer_name(issuer.map_or(subject, |issuer| issuer.certificate.subject_name()))?;
    builder.set_pubkey(key)?;
    extend(&mut builder, kind, role, issuer)?;
    builder.sign(issuer.map_or(key, |issuer| &issuer.key), MessageDigest::sha256())?;
    Ok(builder.build())
}

/// The extensions of an ordinary PKI: RFC 5280 section 4.2.1, and the names of RFC 6125.
fn extend(
    builder: &mut X509Builder,
    kind: CertificateType,
    role: Role,
    issuer: Option<&Issued>,
) -> Result<(), Error> {
    if role.is_authority() {
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
        builder.append_extension(KeyUsage::new().critical().key_cert_sign().crl_sign().build()?)?;
    } else {
        builder.append_extension(BasicConstraints::new().critical().build()?)?;
        let mut usage = KeyUsage::new();
        usage.critical().digital_signature();
        if kind == CertificateType::Rsa2048 {
            usage.key_encipherment();
        }
        builder.append_extension(usage.build()?)?;
        let mut extended = ExtendedKeyUsage::new();
        if role == Role::Server {
            extended.server_auth();
        } else {
            extended.client_auth();
        }
        builder.append_extension(extended.build()?)?;
        let names = {
            let context = builder.x509v3_context(None, None);
            SubjectAlternativeName::new().dns(&role.common_name()).build(&context)?
        };
        builder.append_extension(names)?;
    }
    let subject_key = {
        let context = builder.x509v3_context(None, None);
        SubjectKeyIdentifier::new().build(&context)?
    };
    builder.append_extension(subject_key)?;
    if let Some(issuer) = issuer {
        let authority_key = {
            let context = builder.x509v3_context(Some(&issuer.certificate), None);
            AuthorityKeyIdentifier::new().keyid(true).build(&context)?
        };
        builder.append_extension(authority_key)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use warifu_model::Keyword;

    use super::*;

    #[test]
    fn certificate_sizes_are_reproducible() {
        for &kind in CertificateType::ALL {
            for chain_length in 1..=3 {
                let first = Pki::generate(kind, chain_length).unwrap().sizes().unwrap();
                assert_eq!(first.server_chain_bytes.len(), usize::from(chain_length));
                // A 71-byte signature comes by chance half the time; eight keys would tell.
                for _ in 0..if kind == CertificateType::EcdsaSecp256r1 { 8 } else { 1 } {
                    let again = Pki::generate(kind, chain_length).unwrap().sizes().unwrap();
                    assert_eq!(again, first);
                }
                assert_eq!(first.server_chain_bytes, first.client_chain_bytes);
            }
        }
    }

    #[test]
    fn chain_length_out_of_range() {
        let error = Pki::generate(CertificateType::EcdsaSecp256r1, 4).err().unwrap();
        assert_eq!(error.to_string(), "chain_length is 4: expected 1, 2 or 3");
    }

    #[test]
    fn written_keys_are_private_and_never_overwritten() {
        let folder = std::env::temp_dir().join(format!("warifu-pki-{}", std::process::id()));
        let pki = Pki::generate(CertificateType::EcdsaSecp256r1, 2).unwrap();
        pki.write(&folder).unwrap();
        for end in ["server", "client"] {
            let key = fs::metadata(folder.join(format!("{end}.key"))).unwrap();
            assert_eq!(key.permissions().mode() & 0o777, 0o600);
            let chain = fs::read(folder.join(format!("{end}-chain.pem"))).unwrap();
            assert_eq!(X509::stack_from_pem(&chain).unwrap().len(), 2);
        }
        let error = pki.write(&folder).unwrap_err().to_string();
        assert!(error.contains("root.pem") && error.contains("exists"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

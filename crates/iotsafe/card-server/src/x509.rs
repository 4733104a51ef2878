// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys, certificates and certificate requests from and to files. The ASN.1 is RustCrypto's.

use std::path::{Path, PathBuf};

use der::asn1::{AnyRef, BitString, ObjectIdentifier, SetOfVec, UintRef};
use der::{Decode, DecodePem, Encode, EncodePem, Sequence};
use warifu_card::crypto::{Curve, Point};
use x509_cert::Certificate;
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use zeroize::Zeroizing;

use crate::error::ServerError;

/// id-ecPublicKey (RFC 5480 section 2.1.1).
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// ecdsa-with-SHA256 (RFC 5758 section 3.2).
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
/// More than any certificate or key that a card could hold.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// A certificate as the card stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// DER.
    pub der: Vec<u8>,
    /// Whose it is.
    pub subject: String,
    /// Its public key, where that is on one of the card's curves.
    pub key: Option<Point>,
}

/// A private key of one of the card's curves.
pub struct KeyFile {
    /// Its curve.
    pub curve: Curve,
    /// The most significant byte first.
    pub scalar: Zeroizing<[u8; 32]>,
}

/// Reads a certificate, PEM or DER; of several in one PEM file, the first.
///
/// # Errors
/// [`ServerError::File`]; [`ServerError::Request`] for what is no certificate.
pub fn read_certificate(path: &Path) -> Result<CertificateFile, ServerError> {
    let bytes = read(path)?;
    let wrong = |error: der::Error| {
        ServerError::Request(format!(
            "{}: is no X.509 certificate ({error}): expected PEM or DER",
            path.display()
        ))
    };
    let certificate = match first_pem(&bytes, "CERTIFICATE") {
        Some(text) => Certificate::from_pem(text),
        None => Certificate::from_der(&bytes),
    }
    .map_err(wrong)?;
    let about = certificate.tbs_certificate();
    let spki = about.subject_public_key_info();
    Ok(CertificateFile {
        der: certificate.to_der().map_err(wrong)?,
        subject: about.subject().to_string(),
        key: curve_of(&spki.algorithm)
            .and_then(|curve| curve.point(spki.subject_public_key.as_bytes().unwrap_or_default())),
    })
}

/// Whose certificate it is; None for what is no certificate.
#[must_use]
pub fn subject(der: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    Some(certificate.tbs_certificate().subject().to_string())
}

/// Reads a private key that is not encrypted: PKCS #8 or SEC 1, PEM or DER.
///
/// # Errors
/// [`ServerError::File`]; [`ServerError::Request`] for what is no key of the card's curves.
pub fn read_key(path: &Path) -> Result<KeyFile, ServerError> {
    let bytes = read(path)?;
    let der = match pem_content(&bytes) {
        Some((label, content)) if label == "PRIVATE KEY" || label == "EC PRIVATE KEY" => content,
        Some((label, _)) => {
            return Err(ServerError::Request(format!(
                "{}: the PEM contains {label}: expected PRIVATE KEY or EC PRIVATE KEY, not \
                 encrypted",
                path.display()
            )));
        }
        None => bytes,
    };
    key_of(&der).ok_or_else(|| {
        ServerError::Request(format!(
            "{}: not a private key on secp256r1 or brainpoolP256r1: create one with `openssl \
             ecparam \
             -name prime256v1 -genkey -noout`",
            path.display()
        ))
    })
}

/// A certificate request in PEM (RFC 2986). `sign` gives `r || s` of the text, hashed with SHA-256.
///
/// # Errors
/// What `sign` returns; [`ServerError::Request`] for what cannot be encoded.
pub fn certificate_request(
    subject: Name,
    key: &Point,
    sign: impl FnOnce(&[u8]) -> Result<[u8; 64], ServerError>,
) -> Result<String, ServerError> {
    let encoding = |error: der::Error| ServerError::Request(format!("the request: {error}"));
    let curve = oid_of(key.curve());
    let info = CertReqInfo {
        version: Version::V1,
        subject,
        public_key: SubjectPublicKeyInfoOwned {
            algorithm: AlgorithmIdentifierOwned {
                oid: EC_PUBLIC_KEY,
                parameters: Some((&curve).into()),
            },
            subject_public_key: BitString::from_bytes(key.bytes()).map_err(encoding)?,
        },
        attributes: SetOfVec::new(),
    };
    let signature = sign(&info.to_der().map_err(encoding)?)?;
    let (r, s) = signature.split_at(32);
    let signature = EcdsaSignature {
        r: UintRef::new(r).map_err(encoding)?,
        s: UintRef::new(s).map_err(encoding)?,
    };
    let request = CertReq {
        info,
        algorithm: AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA256, parameters: None },
        signature: BitString::from_bytes(&signature.to_der().map_err(encoding)?)
            .map_err(encoding)?,
    };
    request.to_pem(der::pem::LineEnding::LF).map_err(encoding)
}

/// A public key in PEM, as `openssl` takes it.
///
/// # Errors
/// None for a point of the card's.
pub fn public_key_pem(key: &Point) -> Result<String, ServerError> {
    let encoding = |error: der::Error| ServerError::Request(format!("the public key: {error}"));
    let curve = oid_of(key.curve());
    let info = SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned {
            oid: EC_PUBLIC_KEY,
            parameters: Some((&curve).into()),
        },
        subject_public_key: BitString::from_bytes(key.bytes()).map_err(encoding)?,
    };
    info.to_pem(der::pem::LineEnding::LF).map_err(encoding)
}

/// Ecdsa-Sig-Value (RFC 3279 section 2.2.3).
#[derive(Sequence)]
struct EcdsaSignature<'a> {
    r: UintRef<'a>,
    s: UintRef<'a>,
}

fn oid_of(curve: Curve) -> ObjectIdentifier {
    match curve {
        Curve::Secp256r1 => ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"),
        Curve::BrainpoolP256r1 => ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.7"),
    }
}

fn curve_of(algorithm: &AlgorithmIdentifierOwned) -> Option<Curve> {
    let named: ObjectIdentifier = algorithm.parameters.as_ref()?.decode_as().ok()?;
    named_curve(algorithm.oid, named)
}

fn named_curve(algorithm: ObjectIdentifier, named: ObjectIdentifier) -> Option<Curve> {
    Curve::ALL.into_iter().find(|&curve| algorithm == EC_PUBLIC_KEY && oid_of(curve) == named)
}

/// The key of DER, PKCS #8 (which names the curve outside) or SEC 1 (inside).
fn key_of(der: &[u8]) -> Option<KeyFile> {
    let outer = pkcs8::PrivateKeyInfoRef::from_der(der).ok();
    let (inner, curve) = match &outer {
        Some(info) => {
            let named = info.algorithm.parameters.and_then(|any: AnyRef<'_>| any.decode_as().ok());
            (info.private_key.as_bytes(), named_curve(info.algorithm.oid, named?))
        }
        None => (der, None),
    };
    let key = sec1::EcPrivateKey::from_der(inner).ok()?;
    let named = key.parameters.and_then(|parameters| parameters.named_curve());
    let curve = curve.or_else(|| named_curve(EC_PUBLIC_KEY, named?))?;
    // Some writers leave leading zeroes out, against RFC 5915 section 3.
    let mut scalar = Zeroizing::new([0; 32]);
    let room = 32_usize.checked_sub(key.private_key.len())?;
    scalar[room..].copy_from_slice(key.private_key);
    curve.scalar(&scalar)?;
    Some(KeyFile { curve, scalar })
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, ServerError> {
    use std::io::Read;
    let failed = |error| ServerError::File { path: PathBuf::from(path), source: error };
    let mut bytes = Zeroizing::new(Vec::new());
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(FILE_MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The first PEM block of a label, its text before and behind left out.
fn first_pem<'a>(bytes: &'a [u8], label: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let start = text.find(&format!("-----BEGIN {label}-----"))?;
    let end = format!("-----END {label}-----");
    let length = text[start..].find(&end)? + end.len();
    Some(&text[start..start + length])
}

/// Label and content of the last PEM block: `openssl ecparam -genkey` puts the curve before the
/// key.
fn pem_content(bytes: &[u8]) -> Option<(String, Zeroizing<Vec<u8>>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let block = &text[text.rfind("-----BEGIN ")?..];
    let label = block.strip_prefix("-----BEGIN ")?.split("-----").next()?.to_owned();
    let (_, content) =
        der::pem::decode_vec(first_pem(block.as_bytes(), &label)?.as_bytes()).ok()?;
    Some((label, Zeroizing::new(content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn openssl(folder: &Path, arguments: &str) -> bool {
        let output = Command::new("openssl")
            .current_dir(folder)
            .args(arguments.split(' '))
            .output()
            .unwrap();
        output.status.success()
    }

    #[test]
    fn keys_and_certificates_of_openssl() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (curve, name) in
            [(Curve::Secp256r1, "prime256v1"), (Curve::BrainpoolP256r1, "brainpoolP256r1")]
        {
            let make = format!("ecparam -name {name} -genkey -out sec1.pem");
            assert!(openssl(folder.path(), &make));
            assert!(openssl(folder.path(), "ec -in sec1.pem -outform DER -out sec1.der"));
            assert!(openssl(folder.path(), "pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem"));
            let made = "req -x509 -new -key sec1.pem -subj /CN=device-1 -out certificate.pem";
            assert!(openssl(folder.path(), made));
            let certificate = read_certificate(&at("certificate.pem")).unwrap();
            assert_eq!(certificate.subject, "CN=device-1");
            for file in ["sec1.pem", "sec1.der", "pkcs8.pem"] {
                let key = read_key(&at(file)).unwrap();
                assert_eq!(key.curve, curve);
                let public = curve.scalar(&key.scalar).unwrap().public();
                assert_eq!(certificate.key, public, "{file}");
            }
            std::fs::write(at("certificate.der"), &certificate.der).unwrap();
            assert_eq!(read_certificate(&at("certificate.der")).unwrap(), certificate);
        }
        assert!(openssl(folder.path(), "genrsa -out rsa.pem 1024"));
        for wrong in ["rsa.pem", "certificate.pem"] {
            let error = read_key(&at(wrong)).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.lines().count() == 1, "{error}");
        }
        assert!(read_certificate(&at("sec1.pem")).is_err());
        assert!(matches!(read_key(&at("none")), Err(ServerError::File { .. })));
    }

    #[test]
    fn openssl_accepts_a_request() {
        let folder = tempfile::tempdir().unwrap();
        for curve in Curve::ALL {
            let scalar = curve.scalar(&[7; 32]).unwrap();
            let key = scalar.public().unwrap();
            let hash = warifu_card::crypto::Hash::Sha256;
            let subject = "CN=device-1,O=Example".parse().unwrap();
            let request = certificate_request(subject, &key, |text| {
                Ok(scalar.sign(hash, &hash.digest(text), &[]).unwrap())
            });
            std::fs::write(folder.path().join("request.pem"), request.unwrap()).unwrap();
            assert!(openssl(folder.path(), "req -verify -noout -in request.pem"));
            std::fs::write(folder.path().join("key.pem"), public_key_pem(&key).unwrap()).unwrap();
            assert!(openssl(folder.path(), "pkey -pubin -noout -in key.pem"));
        }
    }
}

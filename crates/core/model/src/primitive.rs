// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What benchmarks and datasheets time: calls of cryptography, below the messages of a protocol.

use std::fmt;

use crate::case::{Aead, CertificateType, DdsAead, Group};
use crate::keyword::Keyword;
use crate::nearest::nearest;

/// A call of cryptography. What depends on a length takes so much a call and so much a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    /// A fresh key pair for a key agreement.
    EcdhKeygen(Group),
    /// The shared secret from the own private key and the other's share.
    EcdhDerive(Group),
    /// A signature; its bytes are those of the message, where the call hashes it.
    Sign(SignatureAlgorithm),
    /// A signature verified, which is right.
    Verify(SignatureAlgorithm),
    /// A digest.
    Hash(HashAlgorithm),
    /// An HMAC (RFC 2104), with its key set up.
    Hmac(HashAlgorithm),
    /// An HKDF-Extract, or an HKDF-Expand of one output block (RFC 5869), as TLS 1.3's
    /// HKDF-Expand-Label is (RFC 8446 section 7.1).
    Hkdf(HashAlgorithm),
    /// TLS 1.2's PRF (RFC 5246 section 5); its bytes are those of its output, in whole digests.
    Prf(HashAlgorithm),
    /// A message encrypted; its key is set up with it, unless the cipher says otherwise.
    Seal(Cipher),
    /// A message decrypted that is authentic, likewise.
    Open(Cipher),
    /// A message's tag made or checked by a cipher that encrypts nothing (GMAC), likewise.
    Mac(Cipher),
    /// A certificate's structure read, without a signature verified.
    X509Parse,
    /// Random bytes.
    Random,
    /// One instruction of a library's own code, the mean over what it executes outside of the
    /// primitives above; its time may be finer than a nanosecond.
    Instruction,
}

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureAlgorithm {
    /// With the key of a certificate that a case can choose.
    Certificate(CertificateType),
    /// PureEdDSA with edwards25519 (RFC 8032 section 5.1).
    Ed25519,
}

/// A hash function of FIPS 180-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// Authenticated encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    /// Of a cipher suite.
    Tls(Aead),
    /// Of DDS Security, or of a plugin's experiment.
    Dds(DdsAead, KeySetUp),
    /// NaCl's secretbox, which no cipher suite has.
    XSalsa20Poly1305,
}

/// When a cipher's key is set up. A software's set-up can take longer than a short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySetUp {
    /// In each call.
    EachCall,
    /// Once, for many calls, of which none pays for it.
    Once,
}

impl Primitive {
    /// Every primitive, in the order of errors and tables.
    pub fn all() -> impl Iterator<Item = Primitive> {
        let groups = || Group::ALL.iter().copied();
        let certificates = CertificateType::ALL.iter().copied();
        let signatures: Vec<SignatureAlgorithm> = certificates
            .map(SignatureAlgorithm::Certificate)
            .chain([SignatureAlgorithm::Ed25519])
            .collect();
        let of_dds: Vec<Cipher> = DdsAead::ALL
            .iter()
            .flat_map(|&aead| KeySetUp::ALL.map(|key| Cipher::Dds(aead, key)))
            .collect();
        let ciphers: Vec<Cipher> = Aead::ALL
            .iter()
            .copied()
            .map(Cipher::Tls)
            .chain([Cipher::XSalsa20Poly1305])
            .chain(of_dds.iter().copied())
            .collect();
        groups()
            .map(Primitive::EcdhKeygen)
            .chain(groups().map(Primitive::EcdhDerive))
            .chain(signatures.clone().into_iter().map(Primitive::Sign))
            .chain(signatures.into_iter().map(Primitive::Verify))
            .chain(HashAlgorithm::ALL.map(Primitive::Hash))
            .chain(HashAlgorithm::ALL.map(Primitive::Hmac))
            .chain(HashAlgorithm::ALL.map(Primitive::Hkdf))
            .chain(HashAlgorithm::ALL.map(Primitive::Prf))
            .chain(ciphers.clone().into_iter().map(Primitive::Seal))
            .chain(ciphers.into_iter().map(Primitive::Open))
            .chain(of_dds.into_iter().map(Primitive::Mac))
            .chain([Primitive::X509Parse, Primitive::Random, Primitive::Instruction])
    }
}

impl SignatureAlgorithm {
    /// Its word in a primitive's name: the certificate's, or `ed25519`.
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::Certificate(certificate) => certificate.name(),
            SignatureAlgorithm::Ed25519 => "ed25519",
        }
    }
}

impl HashAlgorithm {
    /// The hash of TLS 1.2's PRF and of TLS 1.3's transcript in a suite of this AEAD (RFC 8446
    /// section B.4, RFC 5289 section 3.2, RFC 7905 section 2).
    pub const fn of_suite(aead: Aead) -> HashAlgorithm {
        match aead {
            Aead::Aes256Gcm => HashAlgorithm::Sha384,
            Aead::Aes128Gcm | Aead::ChaCha20Poly1305 => HashAlgorithm::Sha256,
        }
    }

    /// The bytes of a block (FIPS 180-4 figure 1).
    pub const fn block_bytes(self) -> u32 {
        match self {
            HashAlgorithm::Sha256 => 64,
            HashAlgorithm::Sha384 | HashAlgorithm::Sha512 => 128,
        }
    }

    /// The bytes of a digest.
    pub const fn digest_bytes(self) -> u32 {
        match self {
            HashAlgorithm::Sha256 => 32,
            HashAlgorithm::Sha384 => 48,
            HashAlgorithm::Sha512 => 64,
        }
    }

    const ALL: [HashAlgorithm; 3] =
        [HashAlgorithm::Sha256, HashAlgorithm::Sha384, HashAlgorithm::Sha512];

    /// IANA's textual name.
    pub const fn name(self) -> &'static str {
        match self {
            HashAlgorithm::Sha256 => "sha-256",
            HashAlgorithm::Sha384 => "sha-384",
            HashAlgorithm::Sha512 => "sha-512",
        }
    }
}

impl Cipher {
    /// The same with its key set up in each call, if it has figures for that.
    pub(crate) fn with_set_up(self) -> Cipher {
        match self {
            Cipher::Dds(aead, _) => Cipher::Dds(aead, KeySetUp::EachCall),
            other => other,
        }
    }
}

impl KeySetUp {
    const ALL: [KeySetUp; 2] = [KeySetUp::EachCall, KeySetUp::Once];
}

impl fmt::Display for Cipher {
    /// Its words in a primitive's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cipher::Tls(aead) => f.write_str(aead.name()),
            Cipher::Dds(aead, KeySetUp::EachCall) => f.write_str(aead.name()),
            Cipher::Dds(aead, KeySetUp::Once) => write!(f, "{}.keyed", aead.name()),
            Cipher::XSalsa20Poly1305 => f.write_str("XSALSA20_POLY1305"),
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Primitive::EcdhKeygen(group) => write!(f, "ecdh.keygen.{}", group.name()),
            Primitive::EcdhDerive(group) => write!(f, "ecdh.derive.{}", group.name()),
            Primitive::Sign(signature) => write!(f, "sign.{}", signature.name()),
            Primitive::Verify(signature) => write!(f, "verify.{}", signature.name()),
            Primitive::Hash(hash) => write!(f, "hash.{}", hash.name()),
            Primitive::Hmac(hash) => write!(f, "hmac.{}", hash.name()),
            Primitive::Hkdf(hash) => write!(f, "hkdf.{}", hash.name()),
            Primitive::Prf(hash) => write!(f, "prf.{}", hash.name()),
            Primitive::Seal(cipher) => write!(f, "aead.seal.{cipher}"),
            Primitive::Open(cipher) => write!(f, "aead.open.{cipher}"),
            Primitive::Mac(cipher) => write!(f, "aead.mac.{cipher}"),
            Primitive::X509Parse => write!(f, "x509.parse"),
            Primitive::Random => write!(f, "random"),
            Primitive::Instruction => write!(f, "instruction"),
        }
    }
}

impl std::str::FromStr for Primitive {
    type Err = String;

    /// Reads its dotted name; the error gives the nearest that exists.
    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<(String, Primitive)> =
            Primitive::all().map(|known| (known.to_string(), known)).collect();
        if let Some((_, found)) = names.iter().find(|(name, _)| name == text) {
            return Ok(*found);
        }
        Err(match nearest(text, names.iter().map(|(name, _)| name.as_str())) {
            Some(name) => format!("expected a primitive; did you mean \"{name}\"?"),
            None => "expected a primitive such as \"ecdh.derive.x25519\", \"hash.sha-512\" or \
                     \"verify.ecdsa_secp256r1\""
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitive_names_round_trip() {
        assert_eq!(Primitive::all().count(), 2 * 2 + 2 * 3 + 4 * 3 + 2 * 4 + 3 * 2 * 7 + 3);
        for primitive in Primitive::all() {
            assert_eq!(primitive.to_string().parse(), Ok(primitive));
        }
        for wrong in ["", "ecdh", "ecdh.derive", "hash.md5", "random.x25519", "client.sign"] {
            assert!(wrong.parse::<Primitive>().is_err(), "{wrong}");
        }
        assert_eq!(
            "sign.ed2519".parse::<Primitive>().unwrap_err(),
            "expected a primitive; did you mean \"sign.ed25519\"?"
        );
    }
}

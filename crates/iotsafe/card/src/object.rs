// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the card stores: private keys, public keys, files, secrets.

use crate::crypto::{Curve, Hash, Point, Scalar, SecretBytes};

/// The most bytes of an id (GSMA IoT.05).
pub const ID_MAX_BYTES: usize = 20;
/// The most bytes of a label (GSMA IoT.05).
pub const LABEL_MAX_BYTES: usize = 60;
/// The most bytes of a file: its size has 16 bits, and READ FILE's offset 15 of them.
pub const FILE_MAX_BYTES: usize = 0x7fff;
/// The most bytes of a secret: what fits into a short command.
pub const SECRET_MAX_BYTES: usize = 255;

/// The usual slots, as the public clients number them.
pub mod slot {
    /// The client's key pair.
    pub const CLIENT_KEY: u8 = 1;
    /// The client's certificate.
    pub const CLIENT_CERTIFICATE: u8 = 2;
    /// The server's certificate, or its authority's.
    pub const SERVER_CERTIFICATE: u8 = 3;
    /// The ephemeral key pair.
    pub const ECDH_PAIR: u8 = 4;
    /// The peer's public key.
    pub const PEER_KEY: u8 = 5;
}

/// The four kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A private key.
    PrivateKey,
    /// A public key.
    PublicKey,
    /// A file, for example a certificate.
    File,
    /// A secret for derivations.
    Secret,
}

/// By what a command finds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector<'a> {
    /// Its id.
    Id(&'a [u8]),
    /// Its label.
    Label(&'a [u8]),
}

/// Id, label and access conditions of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// 1 to [`ID_MAX_BYTES`] bytes, one object of a kind each.
    pub id: Vec<u8>,
    /// At most [`LABEL_MAX_BYTES`] bytes, empty for none.
    pub label: Vec<u8>,
    /// [`access`] bits.
    pub access: u8,
}

/// Bits of the access conditions (tag 60).
pub mod access {
    /// May be read by command.
    pub const READ: u8 = 1;
    /// May be written by command.
    pub const UPDATE: u8 = 2;
}

/// Bits of the cryptographic functions (tags 61 and 90).
pub mod function {
    /// Making or verifying signatures.
    pub const SIGNATURE: u8 = 1;
    /// Generating key pairs.
    pub const KEY_GENERATION: u8 = 2;
    /// Diffie-Hellman.
    pub const KEY_AGREEMENT: u8 = 4;
    /// PRF, HKDF.
    pub const KEY_DERIVATION: u8 = 8;
}

/// Key-specific usages (tag 4E).
pub mod usage {
    /// For anything.
    pub const GENERAL: u8 = 1;
    /// For TLS 1.2's CertificateVerify.
    pub const CERTIFICATE_VERIFY_TLS12: u8 = 2;
    /// For TLS 1.3's CertificateVerify.
    pub const CERTIFICATE_VERIFY_TLS13: u8 = 3;
}

/// Usages of files (tag 21).
pub mod file_usage {
    /// For anything.
    pub const GENERAL: u8 = 1;
    /// An X.509 certificate.
    pub const CERTIFICATE: u8 = 2;
}

/// The one signature algorithm of this card (tag 92): ECDSA.
pub const SIGNATURE_ECDSA: u8 = 4;
/// The one key agreement of this card (tags 93 and 6F): ECKA-DH.
pub const AGREEMENT_ECKA: u8 = 1;
/// Derivations (tag 94): TLS 1.2's PRF and HKDF.
pub const DERIVATIONS: u8 = 1 | 2;

/// The type of an elliptic-curve key (tag 4B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// 13.
    Secp256r1Persistent,
    /// 14: lost at reset.
    Secp256r1Volatile,
    /// 23.
    BrainpoolP256r1Persistent,
    /// 24: lost at reset.
    BrainpoolP256r1Volatile,
}

/// The type of a secret (tag 4B): HMAC capable.
pub const KEY_TYPE_HMAC: u8 = 0xa0;

impl KeyType {
    /// All four.
    pub const ALL: [KeyType; 4] = [
        KeyType::Secp256r1Persistent,
        KeyType::Secp256r1Volatile,
        KeyType::BrainpoolP256r1Persistent,
        KeyType::BrainpoolP256r1Volatile,
    ];

    /// Its byte.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            KeyType::Secp256r1Persistent => 0x13,
            KeyType::Secp256r1Volatile => 0x14,
            KeyType::BrainpoolP256r1Persistent => 0x23,
            KeyType::BrainpoolP256r1Volatile => 0x24,
        }
    }

    /// The type of a byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<KeyType> {
        KeyType::ALL.into_iter().find(|key_type| key_type.byte() == byte)
    }

    /// Its curve.
    #[must_use]
    pub fn curve(self) -> Curve {
        match self {
            KeyType::Secp256r1Persistent | KeyType::Secp256r1Volatile => Curve::Secp256r1,
            KeyType::BrainpoolP256r1Persistent | KeyType::BrainpoolP256r1Volatile => {
                Curve::BrainpoolP256r1
            }
        }
    }

    /// Whether a reset empties it.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        matches!(self, KeyType::Secp256r1Volatile | KeyType::BrainpoolP256r1Volatile)
    }
}

/// What private and public keys say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAttributes {
    /// Curve, and whether a reset empties it.
    pub key_type: KeyType,
    /// One of [`usage`].
    pub usage: u8,
    /// [`function`] bits.
    pub functions: u8,
    /// The bits of [`Hash::bit`].
    pub hashes: u8,
}

impl KeyAttributes {
    /// A key for anything, with every hash.
    #[must_use]
    pub fn general(key_type: KeyType) -> KeyAttributes {
        let functions = function::SIGNATURE | function::KEY_GENERATION | function::KEY_AGREEMENT;
        let hashes = Hash::ALL.into_iter().fold(0, |bits, hash| bits | hash.bit());
        KeyAttributes { key_type, usage: usage::GENERAL, functions, hashes }
    }

    /// Whether every bit of `function` is among its functions.
    #[must_use]
    pub fn may(&self, function: u8) -> bool {
        self.functions & function == function
    }
}

/// A private key, or the empty place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateKey {
    /// Id, label, access.
    pub name: Name,
    /// What it may be used for.
    pub attributes: KeyAttributes,
    /// The id of its public half.
    pub public_id: Vec<u8>,
    pub(crate) scalar: Option<Scalar>,
}

/// A public key, or the empty place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Id, label, access.
    pub name: Name,
    /// What it may be used for.
    pub attributes: KeyAttributes,
    /// The key, if there is one.
    pub point: Option<Point>,
}

/// A file, or the empty place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Id, label, access.
    pub name: Name,
    /// One of [`file_usage`].
    pub usage: u8,
    /// What it holds; empty for an empty place.
    pub content: Vec<u8>,
}

/// A secret for derivations: HMAC capable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Id, label, access.
    pub name: Name,
    pub(crate) value: SecretBytes,
}

/// What every object has.
pub(crate) trait Object {
    fn name(&self) -> &Name;
}

macro_rules! named {
    ($($object:ty),*) => {
        $(impl Object for $object {
            fn name(&self) -> &Name {
                &self.name
            }
        })*
    };
}
named!(PrivateKey, PublicKey, File, Secret);

impl Name {
    /// A name with one byte of id.
    #[must_use]
    pub fn slot(id: u8, label: &str, access: u8) -> Name {
        Name { id: vec![id], label: label.as_bytes().to_vec(), access }
    }

    /// Whether the lengths are those that GSMA IoT.05 allows.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        (1..=ID_MAX_BYTES).contains(&self.id.len()) && self.label.len() <= LABEL_MAX_BYTES
    }
}

/// The objects of the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) private_keys: Vec<PrivateKey>,
    pub(crate) public_keys: Vec<PublicKey>,
    pub(crate) files: Vec<File>,
    pub(crate) secrets: Vec<Secret>,
}

impl Store {
    /// Empties what a reset empties.
    pub(crate) fn forget_volatile(&mut self) {
        for key in &mut self.private_keys {
            if key.attributes.key_type.is_volatile() {
                key.scalar = None;
            }
        }
        for key in &mut self.public_keys {
            if key.attributes.key_type.is_volatile() {
                key.point = None;
            }
        }
    }
}

/// The place of the object that a selector names; `either_order` also tries two bytes of id
/// swapped.
pub(crate) fn find<T: Object>(
    objects: &[T],
    selector: Selector<'_>,
    either_order: bool,
) -> Option<usize> {
    let with_id = |id: &[u8]| objects.iter().position(|object| object.name().id == id);
    match selector {
        Selector::Id(id) => with_id(id).or_else(|| match *id {
            [high, low] if either_order => with_id(&[low, high]),
            _ => None,
        }),
        // An empty label is none, so nobody can be found by it.
        Selector::Label(label) => {
            let labelled = |object: &T| !label.is_empty() && object.name().label == label;
            objects.iter().position(labelled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &[u8], label: &str) -> File {
        let name = Name { id: id.to_vec(), label: label.into(), access: access::READ };
        File { name, usage: file_usage::GENERAL, content: Vec::new() }
    }

    #[test]
    fn objects_by_id_or_label() {
        let files = [file(&[1], ""), file(&[1, 2], "certificate")];
        let found = |selector, either| find(&files, selector, either);
        assert_eq!(found(Selector::Id(&[1]), false), Some(0));
        assert_eq!(found(Selector::Id(&[1, 2]), false), Some(1));
        assert_eq!(found(Selector::Id(&[2, 1]), false), None);
        assert_eq!(found(Selector::Id(&[2, 1]), true), Some(1));
        assert_eq!(found(Selector::Label(b"certificate"), false), Some(1));
        assert_eq!(found(Selector::Label(b""), false), None);
    }

    #[test]
    fn name_length_limits() {
        let name =
            |id: usize, label: usize| Name { id: vec![1; id], label: vec![1; label], access: 0 };
        assert!(name(20, 60).is_valid() && name(1, 0).is_valid());
        assert!(!name(0, 0).is_valid() && !name(21, 0).is_valid() && !name(1, 61).is_valid());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The objects of a card: its templates, read leniently, since cards differ.

use serde::{Deserialize, Serialize};
use warifu_card::crypto::{Curve, Hash};
use warifu_card::object::{KeyType, access, function};
use warifu_card::tlv::{Fields, SignatureLength, tag};

/// Information on a card and its applet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// The applet's version (tag 10).
    pub version: Option<u8>,
    /// The applet's own identifier (tag 11), empty where the card leaves it out.
    pub applet_id: Vec<u8>,
    /// The identifier that selected the applet.
    pub aid: Vec<u8>,
    /// Where the card is.
    pub location: String,
}

/// A private key, or an empty container for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateKey {
    /// The card's id of it.
    pub id: Vec<u8>,
    /// Its label, empty for none.
    pub label: String,
    /// The id of the public key that belongs to it, if the card has one.
    pub public_id: Option<Vec<u8>>,
    /// What it is and may do.
    pub attributes: KeyAttributes,
}

/// A public key, or an empty container for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKey {
    /// The card's id of it.
    pub id: Vec<u8>,
    /// Its label, empty for none.
    pub label: String,
    /// What it is and may do.
    pub attributes: KeyAttributes,
}

/// What private and public keys have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAttributes {
    /// The key type's byte (tag 4B).
    pub key_type: u8,
    /// Whether there is a key; None if the card does not say.
    pub filled: Option<bool>,
    /// Bits of [`access`].
    pub access: u8,
    /// Bits of [`function`].
    pub functions: u8,
    /// Bits of the hashes that it signs with.
    pub hashes: u8,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The card's id of it.
    pub id: Vec<u8>,
    /// Its label, empty for none.
    pub label: String,
    /// Its size, bytes, if the card gives a valid one.
    pub size_bytes: Option<u16>,
    /// Whether it has content; None if the card does not say.
    pub filled: Option<bool>,
}

/// All objects of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Private keys and empty containers.
    pub private_keys: Vec<PrivateKey>,
    /// Public keys and empty containers.
    pub public_keys: Vec<PublicKey>,
    /// Files.
    pub files: Vec<File>,
    /// Containers for volatile keys that other callers of an agent are using.
    pub volatile_in_use: Vec<KeyAttributes>,
}

impl KeyAttributes {
    /// Its curve; None if that is not supported.
    #[must_use]
    pub fn curve(&self) -> Option<Curve> {
        KeyType::from_byte(self.key_type).map(KeyType::curve)
    }

    /// Whether a reset empties it.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        KeyType::from_byte(self.key_type).is_some_and(KeyType::is_volatile)
    }

    /// Whether it makes or verifies signatures.
    #[must_use]
    pub fn may_sign(&self) -> bool {
        self.functions & function::SIGNATURE != 0
    }

    /// Whether it does Diffie-Hellman.
    #[must_use]
    pub fn may_derive(&self) -> bool {
        self.functions & function::KEY_AGREEMENT != 0
    }

    /// Whether a new pair may be generated in its container.
    #[must_use]
    pub fn may_generate(&self) -> bool {
        self.functions & function::KEY_GENERATION != 0 && self.access & access::UPDATE != 0
    }

    /// Whether a key may be put into its container.
    #[must_use]
    pub fn may_update(&self) -> bool {
        self.access & access::UPDATE != 0
    }

    /// Whether it signs with this hash. A card that lists none supports all.
    #[must_use]
    pub fn signs_with(&self, hash: Hash) -> bool {
        self.hashes == 0 || self.hashes & hash.bit() != 0
    }

    fn of(fields: &Fields<'_>) -> KeyAttributes {
        let byte = |tag| last_byte(fields, tag);
        KeyAttributes {
            key_type: byte(tag::KEY_TYPE).unwrap_or_default(),
            filled: byte(tag::OBJECT_STATE).map(|state| state & 1 != 0),
            access: byte(tag::ACCESS).unwrap_or_default(),
            functions: byte(tag::KEY_FUNCTIONS).unwrap_or_default(),
            hashes: byte(tag::HASH).unwrap_or_default(),
        }
    }
}

/// Fields with any tags; None if the lengths are inconsistent.
pub(crate) fn fields(data: &[u8]) -> Option<Fields<'_>> {
    const ANY: [u8; 256] = {
        let mut tags = [0; 256];
        let mut tag = 0;
        while tag < 256 {
            tags[tag] = tag as u8;
            tag += 1;
        }
        tags
    };
    Fields::parse(data, &ANY, SignatureLength::BerOr16Bit).ok()
}

/// The first value of a tag.
pub(crate) fn value<'a>(fields: &Fields<'a>, tag: u8) -> Option<&'a [u8]> {
    fields.all(tag).next()
}

/// A value of one or two bytes: the last one has the bits.
fn last_byte(fields: &Fields<'_>, tag: u8) -> Option<u8> {
    value(fields, tag)?.last().copied()
}

fn label(fields: &Fields<'_>, tag: u8) -> String {
    String::from_utf8_lossy(value(fields, tag).unwrap_or_default()).into_owned()
}

impl Inventory {
    /// Parses the object list, skipping invalid templates. None if it is not a list.
    pub(crate) fn parse(data: &[u8]) -> Option<Inventory> {
        let mut inventory = Inventory::default();
        let list = fields(data)?;
        for template in list.all(tag::PRIVATE_KEY).filter_map(fields) {
            inventory.private_keys.extend(PrivateKey::of(&template));
        }
        for template in list.all(tag::PUBLIC_KEY).filter_map(fields) {
            inventory.public_keys.extend(PublicKey::of(&template));
        }
        for template in list.all(tag::FILE).filter_map(fields) {
            inventory.files.extend(File::of(&template));
        }
        inventory.pair();
        Some(inventory)
    }

    /// Finds pairs, which templates do not name: the two halves have the same id, or else the same
    /// label.
    fn pair(&mut self) {
        let publics = &self.public_keys;
        for private in &mut self.private_keys {
            let same_curve =
                |public: &&PublicKey| public.attributes.curve() == private.attributes.curve();
            let same_label =
                |public: &&PublicKey| !private.label.is_empty() && public.label == private.label;
            let by_id = publics.iter().filter(same_curve).find(|public| public.id == private.id);
            let by_label = || publics.iter().filter(same_curve).find(same_label);
            if private.public_id.is_none() {
                private.public_id = by_id.or_else(by_label).map(|public| public.id.clone());
            }
        }
    }
}

impl PrivateKey {
    fn of(fields: &Fields<'_>) -> Option<PrivateKey> {
        Some(PrivateKey {
            id: value(fields, tag::PRIVATE_KEY_ID)?.to_vec(),
            label: label(fields, tag::PRIVATE_KEY_LABEL),
            public_id: value(fields, tag::PUBLIC_KEY_ID).map(<[u8]>::to_vec),
            attributes: KeyAttributes::of(fields),
        })
    }
}

impl PublicKey {
    fn of(fields: &Fields<'_>) -> Option<PublicKey> {
        Some(PublicKey {
            id: value(fields, tag::PUBLIC_KEY_ID)?.to_vec(),
            label: label(fields, tag::PUBLIC_KEY_LABEL),
            attributes: KeyAttributes::of(fields),
        })
    }
}

impl File {
    fn of(fields: &Fields<'_>) -> Option<File> {
        // Some cards write the size with its low byte first, so it is only a hint.
        let size = value(fields, tag::FILE_SIZE).and_then(|size| <[u8; 2]>::try_from(size).ok());
        Some(File {
            id: value(fields, tag::FILE_ID)?.to_vec(),
            label: label(fields, tag::FILE_LABEL),
            size_bytes: size.map(u16::from_be_bytes),
            filled: last_byte(fields, tag::OBJECT_STATE).map(|state| state & 1 != 0),
        })
    }
}

impl TokenInfo {
    /// Parses the application template. Some cards give the length of the applet's id as one too
    /// large, which hides the following fields: such a template is parsed with the id one shorter.
    pub(crate) fn parse(data: &[u8], aid: &[u8], location: String) -> TokenInfo {
        let mut info = TokenInfo { aid: aid.to_vec(), location, ..TokenInfo::default() };
        let mut copy = data.to_vec();
        let known = |fields: &Fields<'_>| fields.all(tag::SESSIONS_MAX).next().is_some();
        let overstated = fields(data).is_none_or(|fields| !known(&fields));
        if overstated && let Some(at) = applet_id_length(data) {
            copy[at] = copy[at].saturating_sub(1);
        }
        let Some(fields) = fields(&copy).or_else(|| fields(data)) else { return info };
        info.version = last_byte(&fields, tag::VERSION);
        info.applet_id = value(&fields, tag::APPLET_ID).unwrap_or_default().to_vec();
        info
    }
}

/// The index of the length of the applet's id, after the version.
fn applet_id_length(data: &[u8]) -> Option<usize> {
    match *data {
        [tag::VERSION, version, ref rest @ ..] => {
            let at = usize::from(version);
            (rest.get(at) == Some(&tag::APPLET_ID)).then_some(at + 3)
        }
        [tag::APPLET_ID, ..] => Some(1),
        _ => None,
    }
    .filter(|at| *at < data.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use warifu_card::tlv::{field, push};

    fn key(container: u8, label: u8, id: u8, name: &str, number: u8) -> Vec<u8> {
        let mut out = field(label, name.as_bytes());
        push(&mut out, id, &[number]);
        push(&mut out, tag::ACCESS, &[3]);
        push(&mut out, tag::KEY_TYPE, &[0x13]);
        push(&mut out, tag::KEY_FUNCTIONS, &[7]);
        push(&mut out, tag::HASH, &[0, 3]);
        push(&mut out, 0x7f, b"unknown");
        field(container, &out)
    }

    #[test]
    fn object_list_with_pairs() {
        let private = |name, id| key(0xc1, 0x74, 0x84, name, id);
        let public = |name, id| key(0xc2, 0x75, 0x85, name, id);
        let list = [private("a", 1), private("b", 2), public("b", 9), public("x", 1)].concat();
        let inventory = Inventory::parse(&list).unwrap();
        assert_eq!(inventory.private_keys[0].public_id, Some(vec![1]));
        assert_eq!(inventory.private_keys[1].public_id, Some(vec![9]));
        let attributes = inventory.private_keys[0].attributes;
        assert_eq!(attributes.curve(), Some(Curve::Secp256r1));
        assert!(attributes.signs_with(Hash::Sha384) && !attributes.signs_with(Hash::Sha512));
        assert!(attributes.may_generate() && attributes.filled.is_none());
    }

    #[test]
    fn overstated_applet_id_length() {
        let plain = [&[0x10, 1, 1, 0x11, 2, b'i', b'd', 0xb7, 1, 6][..]].concat();
        let mut overstated = plain.clone();
        overstated[4] = 3;
        for data in [plain, overstated] {
            let info = TokenInfo::parse(&data, &[1], "reader".to_owned());
            assert_eq!((info.version, &info.applet_id[..]), (Some(1), &b"id"[..]));
        }
        assert_eq!(TokenInfo::parse(&[0x10], &[1], String::new()).version, None);
    }

    proptest! {
        #[test]
        fn arbitrary_lists_do_not_panic(data: Vec<u8>) {
            let _ = Inventory::parse(&data);
            let _ = TokenInfo::parse(&data, &[], String::new());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Personalisation: what a card's maker does, and no command can.

use rand_core::CryptoRng;
use thiserror::Error;

use super::data::OBJECTS_MAX;
use super::{Card, Settings};
use crate::crypto::{Point, SecretBytes};
use crate::object::{
    FILE_MAX_BYTES, File, ID_MAX_BYTES, KeyAttributes, KeyType, LABEL_MAX_BYTES, Name, Object,
    ObjectKind, PrivateKey, PublicKey, SECRET_MAX_BYTES, Secret, Selector, access, file_usage,
    find, slot,
};
use crate::pin::Pin;

/// Where a new key pair comes from.
#[derive(Clone, Copy)]
pub enum KeySource<'a> {
    /// Nowhere: an empty place for GENERATE KEY PAIR.
    Empty,
    /// The card makes it.
    Generate,
    /// A scalar of 32 bytes, the most significant first.
    Scalar(&'a [u8; 32]),
}

/// Why the card cannot be personalised like this.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PersonaliseError {
    /// The id or label has a length that GSMA IoT.05 does not allow.
    #[error(
        "has an id of {id_bytes} and a label of {label_bytes} bytes: expected an id of 1 to \
         {ID_MAX_BYTES} and a label of at most {LABEL_MAX_BYTES}"
    )]
    Name {
        /// The id's length.
        id_bytes: usize,
        /// The label's length.
        label_bytes: usize,
    },
    /// Another object of the kind has the id.
    #[error("has an id that is in use: delete the other object, or choose another id")]
    Taken,
    /// The card is full.
    #[error("does not fit: a card has at most {OBJECTS_MAX} objects of each kind; delete one")]
    Full,
    /// There is no such object.
    #[error("is not on the card: list its objects")]
    NotFound,
    /// The scalar is no private key of the curve.
    #[error("is not a private key: expected a number above 0 and below the order of its curve")]
    Scalar,
    /// The point is on another curve than the key type's.
    #[error("is not on the curve of its key type")]
    Curve,
    /// The content is too long, or empty.
    #[error("has {found_bytes} bytes: expected 1 to {max_bytes}")]
    Length {
        /// How long it is.
        found_bytes: usize,
        /// How long it may be.
        max_bytes: usize,
    },
}

/// An object as a list shows it; no secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// What it is.
    pub kind: ObjectKind,
    /// Id, label, access.
    pub name: Name,
    /// Of keys.
    pub attributes: Option<KeyAttributes>,
    /// The length of what it holds, bytes; 0 for an empty place.
    pub length_bytes: usize,
}

impl Card {
    /// A card with the usual slots: a client key of secp256r1 made on the card, empty places for
    /// the two certificates, an ephemeral pair and a peer's key that a reset empties.
    ///
    /// # Errors
    /// None with today's slots; those of the functions that it calls.
    pub fn with_usual_slots(
        settings: Settings,
        rng: &mut dyn CryptoRng,
    ) -> Result<Card, PersonaliseError> {
        let both = access::READ | access::UPDATE;
        let mut card = Card::new(settings);
        let persistent = KeyAttributes::general(KeyType::Secp256r1Persistent);
        let volatile = KeyAttributes::general(KeyType::Secp256r1Volatile);
        let client = Name::slot(slot::CLIENT_KEY, "client", access::READ);
        card.add_key_pair(client, persistent, KeySource::Generate, rng)?;
        for (id, label) in
            [(slot::CLIENT_CERTIFICATE, "client"), (slot::SERVER_CERTIFICATE, "server")]
        {
            card.add_file(Name::slot(id, label, access::READ), file_usage::CERTIFICATE, &[])?;
        }
        let ephemeral = Name::slot(slot::ECDH_PAIR, "ecdh", both);
        card.add_key_pair(ephemeral, volatile, KeySource::Empty, rng)?;
        card.add_public_key(Name::slot(slot::PEER_KEY, "peer", both), volatile, None)?;
        Ok(card)
    }

    /// Adds a private key and its public half, of the same id, label, access and attributes.
    ///
    /// # Errors
    /// A wrong name, a taken id, a full card, a scalar that is none; the card is then unchanged.
    pub fn add_key_pair(
        &mut self,
        name: Name,
        attributes: KeyAttributes,
        source: KeySource<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(), PersonaliseError> {
        check(&self.store.private_keys, &name)?;
        check(&self.store.public_keys, &name)?;
        let curve = attributes.key_type.curve();
        let scalar = match source {
            KeySource::Empty => None,
            KeySource::Generate => Some(curve.generate(rng)),
            KeySource::Scalar(bytes) => Some(curve.scalar(bytes).ok_or(PersonaliseError::Scalar)?),
        };
        let point = scalar.as_ref().and_then(|scalar| scalar.public());
        let public = PublicKey { name: name.clone(), attributes, point };
        let public_id = name.id.clone();
        self.store.public_keys.push(public);
        self.store.private_keys.push(PrivateKey { name, attributes, public_id, scalar });
        self.dirty = true;
        Ok(())
    }

    /// Makes a new pair in a private key's place, whatever its access conditions are.
    ///
    /// # Errors
    /// No such key.
    pub fn regenerate(
        &mut self,
        id: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<Point, PersonaliseError> {
        let at = find(&self.store.private_keys, Selector::Id(id), false);
        let point = self.generate_at(at.ok_or(PersonaliseError::NotFound)?, rng);
        point.ok_or(PersonaliseError::Scalar)
    }

    /// Adds a public key or an empty place for one.
    ///
    /// # Errors
    /// A wrong name, a taken id, a full card, a point of another curve.
    pub fn add_public_key(
        &mut self,
        name: Name,
        attributes: KeyAttributes,
        point: Option<Point>,
    ) -> Result<(), PersonaliseError> {
        check(&self.store.public_keys, &name)?;
        if point.is_some_and(|point| point.curve() != attributes.key_type.curve()) {
            return Err(PersonaliseError::Curve);
        }
        self.store.public_keys.push(PublicKey { name, attributes, point });
        self.dirty = true;
        Ok(())
    }

    /// Adds a file; no content makes an empty place.
    ///
    /// # Errors
    /// A wrong name, a taken id, a full card, too long a content.
    pub fn add_file(
        &mut self,
        name: Name,
        usage: u8,
        content: &[u8],
    ) -> Result<(), PersonaliseError> {
        check(&self.store.files, &name)?;
        check_length(content, FILE_MAX_BYTES, true)?;
        self.store.files.push(File { name, usage, content: content.to_vec() });
        self.dirty = true;
        Ok(())
    }

    /// Writes a file that is there, for example a certificate.
    ///
    /// # Errors
    /// No such file, or too long a content.
    pub fn write_file(&mut self, id: &[u8], content: &[u8]) -> Result<(), PersonaliseError> {
        check_length(content, FILE_MAX_BYTES, true)?;
        let at = find(&self.store.files, Selector::Id(id), false);
        let file = &mut self.store.files[at.ok_or(PersonaliseError::NotFound)?];
        file.content = content.to_vec();
        self.dirty = true;
        Ok(())
    }

    /// Adds a secret for COMPUTE PRF.
    ///
    /// # Errors
    /// A wrong name, a taken id, a full card, an empty or too long value.
    pub fn add_secret(&mut self, name: Name, value: SecretBytes) -> Result<(), PersonaliseError> {
        check(&self.store.secrets, &name)?;
        check_length(value.expose(), SECRET_MAX_BYTES, false)?;
        self.store.secrets.push(Secret { name, value });
        self.dirty = true;
        Ok(())
    }

    /// Takes an object away.
    ///
    /// # Errors
    /// There is none of that kind and id.
    pub fn delete(&mut self, kind: ObjectKind, id: &[u8]) -> Result<(), PersonaliseError> {
        fn take<T: Object>(objects: &mut Vec<T>, id: &[u8]) -> Result<(), PersonaliseError> {
            let at = find(objects, Selector::Id(id), false).ok_or(PersonaliseError::NotFound)?;
            objects.remove(at);
            Ok(())
        }
        match kind {
            ObjectKind::PrivateKey => take(&mut self.store.private_keys, id),
            ObjectKind::PublicKey => take(&mut self.store.public_keys, id),
            ObjectKind::File => take(&mut self.store.files, id),
            ObjectKind::Secret => take(&mut self.store.secrets, id),
        }?;
        self.dirty = true;
        Ok(())
    }

    /// Every object, private keys first.
    #[must_use]
    pub fn list(&self) -> Vec<ObjectInfo> {
        let info = |kind, name: &Name, attributes, length_bytes| ObjectInfo {
            kind,
            name: name.clone(),
            attributes,
            length_bytes,
        };
        let store = &self.store;
        let private = store.private_keys.iter().map(|key| {
            let length_bytes = if key.scalar.is_some() { 32 } else { 0 };
            info(ObjectKind::PrivateKey, &key.name, Some(key.attributes), length_bytes)
        });
        let public = store.public_keys.iter().map(|key| {
            let length_bytes = if key.point.is_some() { 65 } else { 0 };
            info(ObjectKind::PublicKey, &key.name, Some(key.attributes), length_bytes)
        });
        let files = store
            .files
            .iter()
            .map(|file| info(ObjectKind::File, &file.name, None, file.content.len()));
        let secrets = store.secrets.iter().map(|secret| {
            info(ObjectKind::Secret, &secret.name, None, secret.value.expose().len())
        });
        private.chain(public).chain(files).chain(secrets).collect()
    }

    /// The public key of an id, if there is one: 04, X, Y.
    #[must_use]
    pub fn export_public_key(&self, id: &[u8]) -> Option<Point> {
        let at = find(&self.store.public_keys, Selector::Id(id), false)?;
        self.store.public_keys[at].point
    }

    /// The content of a file, if there is one.
    #[must_use]
    pub fn file(&self, id: &[u8]) -> Option<&[u8]> {
        let at = find(&self.store.files, Selector::Id(id), false)?;
        Some(&self.store.files[at].content)
    }

    /// Sets, replaces or takes away the PIN; a new one has all its tries.
    pub fn set_pin(&mut self, pin: Option<Pin>) {
        self.settings.pin = pin;
        self.pin_verified = false;
        self.dirty = true;
    }

    /// Gives a locked PIN all its tries again.
    pub fn unblock_pin(&mut self) {
        if let Some(pin) = &mut self.settings.pin {
            pin.tries_left = pin.tries_max;
            self.dirty = true;
        }
    }
}

/// Whether an object of this name can be added.
fn check<T: Object>(objects: &[T], name: &Name) -> Result<(), PersonaliseError> {
    if !name.is_valid() {
        let (id_bytes, label_bytes) = (name.id.len(), name.label.len());
        return Err(PersonaliseError::Name { id_bytes, label_bytes });
    }
    if find(objects, Selector::Id(&name.id), false).is_some() {
        return Err(PersonaliseError::Taken);
    }
    if objects.len() >= OBJECTS_MAX {
        return Err(PersonaliseError::Full);
    }
    Ok(())
}

fn check_length(
    bytes: &[u8],
    max_bytes: usize,
    may_be_empty: bool,
) -> Result<(), PersonaliseError> {
    if bytes.len() > max_bytes || (bytes.is_empty() && !may_be_empty) {
        return Err(PersonaliseError::Length { found_bytes: bytes.len(), max_bytes });
    }
    Ok(())
}

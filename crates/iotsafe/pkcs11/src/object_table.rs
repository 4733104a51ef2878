// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The objects of a slot by their handles: those read from the card, and those of sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cryptoki_sys::*;
use warifu_iotsafe_client::{File, Hash, Inventory};

use crate::certificate::Certificate;
use crate::der;
use crate::object::{Kind, Object, PrivateKey, PublicKey};

/// The objects of a slot.
#[derive(Default)]
pub struct ObjectTable {
    table: BTreeMap<CK_OBJECT_HANDLE, Arc<Object>>,
    /// Handles are not reused, so that a stale one is invalid.
    last_handle: CK_OBJECT_HANDLE,
    inventory: Option<Inventory>,
    files_read: bool,
    /// The ids of destroyed private keys and of their public keys: the card has other keys there,
    /// which nobody uses.
    destroyed: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// A file with its content.
pub struct FileContent {
    file: File,
    kind: Kind,
}

impl FileContent {
    /// A certificate, or else data.
    #[must_use]
    pub fn of(file: File, content: Vec<u8>) -> FileContent {
        let kind = Certificate::parse(&content).map_or(Kind::Data(content), Kind::Certificate);
        FileContent { file, kind }
    }

    /// Whether it is a certificate.
    #[must_use]
    pub fn is_certificate(&self) -> bool {
        matches!(self.kind, Kind::Certificate(_))
    }
}

impl ObjectTable {
    /// The object with a handle.
    #[must_use]
    pub fn get(&self, handle: CK_OBJECT_HANDLE) -> Option<Arc<Object>> {
        self.table.get(&handle).cloned()
    }

    /// All objects.
    #[must_use]
    pub fn all(&self) -> Vec<(CK_OBJECT_HANDLE, Arc<Object>)> {
        self.table.iter().map(|(handle, object)| (*handle, Arc::clone(object))).collect()
    }

    /// Whether the object list and the files are still to be read.
    #[must_use]
    pub fn missing(&self) -> (bool, bool) {
        (self.inventory.is_none(), !self.files_read)
    }

    /// The object list of the card, if it was read.
    #[must_use]
    pub fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_ref()
    }

    /// The files that are not empty.
    #[must_use]
    pub fn files(&self) -> Vec<File> {
        let files = self.inventory.iter().flat_map(|inventory| &inventory.files);
        files.filter(|file| file.filled != Some(false)).cloned().collect()
    }

    /// Marks the table as outdated: the card is read again. Handles stay valid until then.
    pub fn mark_outdated(&mut self) {
        self.inventory = None;
        self.files_read = false;
    }

    /// Adds an object.
    pub fn add(&mut self, object: Object) -> CK_OBJECT_HANDLE {
        self.last_handle += 1;
        self.table.insert(self.last_handle, Arc::new(object));
        self.last_handle
    }

    /// Removes an object.
    pub fn remove(&mut self, handle: CK_OBJECT_HANDLE) {
        self.table.remove(&handle);
    }

    /// Removes the objects of a session; returns the containers of the private keys among them.
    pub fn end_of_session(&mut self, session: CK_SESSION_HANDLE) -> Vec<Vec<u8>> {
        let removed = self.table.extract_if(.., |_, object| object.session == Some(session));
        let containers = removed.filter_map(|(_, object)| match &object.kind {
            Kind::PrivateKey(key) => Some(key.card_id.clone()),
            _ => None,
        });
        containers.collect()
    }

    /// Whether a session of this process uses the private key in a container.
    #[must_use]
    pub fn is_taken(&self, card_id: &[u8]) -> bool {
        self.table.values().any(|object| {
            matches!(&object.kind, Kind::PrivateKey(key) if key.card_id == card_id)
                && object.session.is_some()
        })
    }

    /// Marks a private key as destroyed.
    pub fn mark_destroyed(&mut self, key: &PrivateKey) {
        self.destroyed.insert(key.card_id.clone(), key.public_id.clone());
    }

    /// Whether the private key in a container was destroyed.
    #[must_use]
    pub fn is_destroyed(&self, card_id: &[u8]) -> bool {
        self.destroyed.contains_key(card_id)
    }

    /// Whether a public key belongs to a destroyed private key.
    #[must_use]
    pub fn is_half_of_destroyed(&self, card_id: Option<&[u8]>) -> bool {
        card_id.is_some() && self.destroyed.values().any(|half| half.as_deref() == card_id)
    }

    /// Forgets the key in a container, which was replaced.
    pub fn forget_key(&mut self, card_id: &[u8]) {
        self.destroyed.remove(card_id);
        self.table.retain(|_, object| match &object.kind {
            Kind::PrivateKey(key) => key.card_id != card_id,
            Kind::PublicKey(key) => key.card_id.as_deref() != Some(card_id),
            _ => true,
        });
    }

    /// Sets the object list: keys become objects at once, files after they are read.
    pub fn set_keys(&mut self, inventory: &Inventory, private: bool) {
        let mut objects = Vec::new();
        for key in &inventory.private_keys {
            let attributes = key.attributes;
            let (Some(curve), true) = (attributes.curve(), attributes.filled != Some(false)) else {
                continue;
            };
            let kind = Kind::PrivateKey(PrivateKey {
                card_id: key.id.clone(),
                curve,
                hashes: Hash::ALL.into_iter().filter(|hash| attributes.signs_with(*hash)).collect(),
                sign: attributes.may_sign(),
                derive: attributes.may_derive(),
                public_id: key.public_id.clone(),
                replaceable: attributes.may_generate(),
            });
            objects.push(Object::of_token(kind, &key.label, key.id.clone(), private));
        }
        for key in &inventory.public_keys {
            let attributes = key.attributes;
            let (Some(curve), true) = (attributes.curve(), attributes.filled != Some(false)) else {
                continue;
            };
            let of_pair = |private: &&warifu_iotsafe_client::PrivateKey| {
                private.public_id.as_ref() == Some(&key.id)
            };
            let partner = inventory.private_keys.iter().find(of_pair);
            let id = partner.map_or(&key.id, |private| &private.id).clone();
            let label = match (&key.label[..], partner) {
                ("", Some(private)) => &private.label,
                (label, _) => label,
            };
            let kind = Kind::PublicKey(PublicKey {
                card_id: Some(key.id.clone()),
                curve,
                verify: attributes.may_sign(),
                point: OnceLock::new(),
            });
            objects.push(Object::of_token(kind, label, id, false));
        }
        let is_key =
            |object: &Object| matches!(object.kind, Kind::PrivateKey(_) | Kind::PublicKey(_));
        objects.retain(|object| match &object.kind {
            Kind::PrivateKey(key) => !self.is_destroyed(&key.card_id),
            Kind::PublicKey(key) => !self.is_half_of_destroyed(key.card_id.as_deref()),
            _ => true,
        });
        self.replace(objects, is_key);
        self.inventory = Some(inventory.clone());
    }

    /// Takes over the files.
    pub fn set_files(&mut self, contents: Vec<FileContent>) {
        let objects = contents.into_iter().map(|FileContent { file, kind }| {
            let id = match &kind {
                Kind::Certificate(certificate) => self.certified(certificate),
                _ => None,
            };
            Object::of_token(kind, &file.label, id.unwrap_or(file.id), false)
        });
        let objects: Vec<Object> = objects.collect();
        for object in &objects {
            if let Kind::Certificate(certificate) = &object.kind {
                self.set_subject(&object.id, &certificate.subject);
            }
        }
        self.replace(objects, |object| matches!(object.kind, Kind::Certificate(_) | Kind::Data(_)));
        self.files_read = true;
    }

    /// The CKA_ID of the public key in a certificate.
    fn certified(&self, certificate: &Certificate) -> Option<Vec<u8>> {
        self.table.values().find_map(|object| {
            let Kind::PublicKey(key) = &object.kind else { return None };
            let info = der::public_key_info(key.curve, key.point.get()?);
            let own = object.session.is_none() && info == certificate.public_key_info;
            own.then(|| object.id.clone())
        })
    }

    fn set_subject(&mut self, id: &[u8], subject: &[u8]) {
        for object in self.table.values_mut() {
            let is_key = matches!(object.kind, Kind::PrivateKey(_) | Kind::PublicKey(_));
            if is_key
                && object.id == id
                && let Some(object) = Arc::get_mut(object)
            {
                object.subject = subject.to_vec();
            }
        }
    }

    /// Replaces the token objects of a kind. An object that is the same as before keeps its handle.
    fn replace(&mut self, objects: Vec<Object>, of_kind: impl Fn(&Object) -> bool) {
        let mut old: Vec<(CK_OBJECT_HANDLE, Arc<Object>)> = Vec::new();
        self.table.retain(|handle, object| {
            let is_replaced = object.session.is_none() && of_kind(object);
            if is_replaced {
                old.push((*handle, Arc::clone(object)));
            }
            !is_replaced
        });
        for object in objects {
            if self.is_session_object(&object) {
                continue;
            }
            match old.iter().position(|(_, known)| known.is_same(&object)) {
                Some(at) => {
                    let (handle, _) = old.swap_remove(at);
                    self.table.insert(handle, Arc::new(object));
                }
                None => drop(self.add(object)),
            }
        }
    }

    /// Whether a session has generated this key of the card.
    fn is_session_object(&self, object: &Object) -> bool {
        self.table.values().any(|known| known.session.is_some() && known.is_same_key(object))
    }
}

impl Object {
    fn of_token(kind: Kind, label: &str, id: Vec<u8>, private: bool) -> Object {
        Object {
            kind,
            label: label.as_bytes().to_vec(),
            id,
            private,
            session: None,
            local: false,
            subject: Vec::new(),
        }
    }

    fn is_same_key(&self, other: &Object) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::PrivateKey(one), Kind::PrivateKey(two)) => one.card_id == two.card_id,
            (Kind::PublicKey(one), Kind::PublicKey(two)) => {
                one.card_id.is_some() && one.card_id == two.card_id
            }
            _ => false,
        }
    }

    fn is_same(&self, other: &Object) -> bool {
        let same_file = match (&self.kind, &other.kind) {
            (Kind::Certificate(one), Kind::Certificate(two)) => one.value == two.value,
            (Kind::Data(one), Kind::Data(two)) => one == two,
            _ => false,
        };
        self.label == other.label && (same_file || self.is_same_key(other))
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! GET DATA and READ FILE.

use super::channel::SESSIONS_MAX;
use super::{Answer, Card, Handled, Request, private_key, public_key, selector};
use crate::apdu::{SHORT_ANSWER_MAX_BYTES, StatusWord};
use crate::crypto::Hash;
use crate::object::{
    AGREEMENT_ECKA, DERIVATIONS, File, KEY_TYPE_HMAC, KeyAttributes, Name, PrivateKey, PublicKey,
    SIGNATURE_ECDSA, Secret, access, function,
};
use crate::quirks::{AppletId, FileTemplate, HashPlace, HashWidth};
use crate::tlv::{self, tag};

/// The version of the interface (tag 10).
const VERSION: u8 = 1;

/// The most objects of each kind (tags B1 to B4).
pub(super) const OBJECTS_MAX: usize = 32;

impl Card {
    pub(super) fn get_data(&self, request: &Request<'_>) -> Handled {
        if request.p2 != 0 {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        let store = &self.store;
        let template = match request.p1 {
            0x00 | 0x01 if !request.data.is_empty() => return Err(StatusWord::WRONG_LENGTH),
            0x00 => self.application(),
            0x01 => self.object_list(),
            tag::PRIVATE_KEY => {
                let tags = [tag::PRIVATE_KEY_ID, tag::PRIVATE_KEY_LABEL];
                let wanted = private_key(&self.fields(request.data, &tags)?)?;
                self.private_key_template(
                    &store.private_keys[self.find(&store.private_keys, wanted)?],
                )
            }
            tag::PUBLIC_KEY => {
                let tags = [tag::PUBLIC_KEY_ID, tag::PUBLIC_KEY_LABEL];
                let wanted = public_key(&self.fields(request.data, &tags)?)?;
                self.public_key_template(&store.public_keys[self.find(&store.public_keys, wanted)?])
            }
            tag::FILE => {
                let fields = self.fields(request.data, &[tag::FILE_ID, tag::FILE_LABEL])?;
                let wanted = selector(&fields, tag::FILE_ID, tag::FILE_LABEL)?;
                self.file_template(&store.files[self.find(&store.files, wanted)?])
            }
            tag::SECRET => {
                let fields = self.fields(request.data, &[tag::SECRET_ID, tag::SECRET_LABEL])?;
                let wanted = selector(&fields, tag::SECRET_ID, tag::SECRET_LABEL)?;
                secret_template(&store.secrets[self.find(&store.secrets, wanted)?])
            }
            _ => return Err(StatusWord::INCORRECT_P1_P2),
        };
        Ok(Answer::read(template))
    }

    /// READ FILE: the offset is in P1 and P2; what Le asks for beyond the end is left out.
    pub(super) fn read_file(&self, request: &Request<'_>) -> Handled {
        let offset = usize::from(u16::from_be_bytes([request.p1, request.p2]));
        let fields = self.fields(request.data, &[tag::FILE_ID, tag::FILE_LABEL])?;
        let wanted = selector(&fields, tag::FILE_ID, tag::FILE_LABEL)?;
        let file = &self.store.files[self.find(&self.store.files, wanted)?];
        if file.name.access & access::READ == 0 || file.content.is_empty() {
            return Err(StatusWord::CONDITIONS);
        }
        let rest = file.content.get(offset..).ok_or(StatusWord::INCORRECT_P1_P2)?;
        let most = self.settings.quirks.answer_max.bytes();
        let room = match request.le {
            Some(le) if le > SHORT_ANSWER_MAX_BYTES => le,
            le => le.unwrap_or(SHORT_ANSWER_MAX_BYTES).min(most),
        };
        let length = rest.len().min(room);
        Ok(Answer::of(rest[..length].to_vec()))
    }

    /// The application's template. The maxima come before the functions: Orange's client reads
    /// by position, the others by tag.
    fn application(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::push(&mut out, tag::VERSION, &[VERSION]);
        let id = &self.settings.applet_id;
        match self.settings.quirks.applet_id {
            AppletId::Plain => tlv::push(&mut out, tag::APPLET_ID, id),
            AppletId::Overstated => {
                out.extend([tag::APPLET_ID, id.len() as u8 + 1]);
                out.extend_from_slice(id);
            }
            AppletId::Absent => {}
        }
        for maximum in
            [tag::FILES_MAX, tag::PRIVATE_KEYS_MAX, tag::PUBLIC_KEYS_MAX, tag::SECRETS_MAX]
        {
            tlv::push(&mut out, maximum, &[OBJECTS_MAX as u8]);
        }
        let functions = function::SIGNATURE
            | function::KEY_GENERATION
            | function::KEY_AGREEMENT
            | function::KEY_DERIVATION;
        tlv::push(&mut out, tag::FUNCTIONS, &[functions]);
        let hashes = Hash::ALL.into_iter().fold(0, |bits, hash| bits | hash.bit());
        match self.settings.quirks.hash_width {
            HashWidth::Two => tlv::push(&mut out, tag::HASH, &[0, hashes]),
            HashWidth::One => tlv::push(&mut out, tag::HASH, &[hashes]),
        }
        tlv::push(&mut out, tag::SIGNATURE, &[SIGNATURE_ECDSA]);
        tlv::push(&mut out, tag::AGREEMENT, &[AGREEMENT_ECKA]);
        tlv::push(&mut out, tag::DERIVATION, &[DERIVATIONS]);
        tlv::push(&mut out, tag::SESSIONS_MAX, &[SESSIONS_MAX as u8]);
        out
    }

    /// All templates: private keys, public keys, secrets, files, in the order in which Orange's
    /// client looks for them.
    fn object_list(&self) -> Vec<u8> {
        let store = &self.store;
        let mut out = Vec::new();
        store.private_keys.iter().for_each(|key| out.extend(self.private_key_template(key)));
        store.public_keys.iter().for_each(|key| out.extend(self.public_key_template(key)));
        store.secrets.iter().for_each(|secret| out.extend(secret_template(secret)));
        store.files.iter().for_each(|file| out.extend(self.file_template(file)));
        out
    }

    fn private_key_template(&self, key: &PrivateKey) -> Vec<u8> {
        let tags = (tag::PRIVATE_KEY_LABEL, tag::PRIVATE_KEY_ID);
        let mut out = head(&key.name, tags, key.scalar.is_some());
        self.key_attributes(&mut out, &key.attributes);
        tlv::field(tag::PRIVATE_KEY, &out)
    }

    fn public_key_template(&self, key: &PublicKey) -> Vec<u8> {
        let tags = (tag::PUBLIC_KEY_LABEL, tag::PUBLIC_KEY_ID);
        let mut out = head(&key.name, tags, key.point.is_some());
        self.key_attributes(&mut out, &key.attributes);
        tlv::field(tag::PUBLIC_KEY, &out)
    }

    fn key_attributes(&self, out: &mut Vec<u8>, attributes: &KeyAttributes) {
        tlv::push(out, tag::KEY_TYPE, &[attributes.key_type.byte()]);
        tlv::push(out, tag::KEY_USAGE, &[attributes.usage]);
        tlv::push(out, tag::KEY_FUNCTIONS, &[attributes.functions]);
        if attributes.may(function::SIGNATURE) {
            let hash = tlv::field(tag::HASH, &[0, attributes.hashes]);
            let signature = tlv::field(tag::SIGNATURE, &[SIGNATURE_ECDSA]);
            let (first, second) = match self.settings.quirks.hash_place {
                HashPlace::BeforeSignature => (hash, signature),
                HashPlace::BehindSignature => (signature, hash),
            };
            out.extend(first);
            out.extend(second);
        }
        if attributes.may(function::KEY_AGREEMENT) {
            tlv::push(out, tag::KEY_AGREEMENTS, &[AGREEMENT_ECKA]);
        }
    }

    fn file_template(&self, file: &File) -> Vec<u8> {
        let tags = (tag::FILE_LABEL, tag::FILE_ID);
        let mut out = head(&file.name, tags, !file.content.is_empty());
        let size = file.content.len() as u16;
        match self.settings.quirks.file_template {
            FileTemplate::SizeAndUsage => {
                tlv::push(&mut out, tag::FILE_SIZE, &size.to_be_bytes());
                tlv::push(&mut out, tag::FILE_USAGE, &[file.usage]);
            }
            FileTemplate::LittleEndianSize => {
                tlv::push(&mut out, tag::FILE_SIZE, &size.to_le_bytes());
            }
        }
        tlv::field(tag::FILE, &out)
    }
}

fn secret_template(secret: &Secret) -> Vec<u8> {
    let mut out = head(&secret.name, (tag::SECRET_LABEL, tag::SECRET_ID), true);
    tlv::push(&mut out, tag::KEY_TYPE, &[KEY_TYPE_HMAC]);
    tlv::push(&mut out, tag::KEY_FUNCTIONS, &[function::KEY_DERIVATION]);
    tlv::push(&mut out, tag::DERIVATION, &[DERIVATIONS]);
    tlv::field(tag::SECRET, &out)
}

/// Label if there is one, id, access conditions, state (01 filled, 00 empty).
fn head(name: &Name, (label, id): (u8, u8), filled: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if !name.label.is_empty() {
        tlv::push(&mut out, label, &name.label);
    }
    tlv::push(&mut out, id, &name.id);
    tlv::push(&mut out, tag::ACCESS, &[name.access]);
    tlv::push(&mut out, tag::OBJECT_STATE, &[u8::from(filled)]);
    out
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `list`: the content of a card without its secrets.

use std::path::{Path, PathBuf};

use serde::Serialize;
use warifu_card::object::{KeyType, ObjectKind, slot};
use warifu_card::quirks::AppletId;
use warifu_card::{Card, PinScope, identity};

use super::request::{List, ScopeName};
use crate::error::ServerError;
use crate::host::load;
use crate::store;
use crate::x509;

/// The content of a card without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The state file.
    pub state: PathBuf,
    /// Its label as a token; empty if it is not text.
    pub label: String,
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// Its quirk profile, or `own`.
    pub quirks: String,
    /// Its PIN, if it has one.
    pub pin: Option<PinListing>,
    /// Its objects.
    pub objects: Vec<ObjectListing>,
    /// The client's public key in PEM, if there is one.
    pub public_key: Option<String>,
}

/// The state of the PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PinListing {
    /// What it protects.
    pub scope: ScopeName,
    /// Tries in all.
    pub tries_max: u8,
    /// Tries left; 0 when it is locked.
    pub tries_left: u8,
}

/// An object of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectListing {
    /// `private key`, `public key`, `file` or `secret`.
    pub kind: &'static str,
    /// Its id in hexadecimal.
    pub id: String,
    /// Its label.
    pub label: String,
    /// `secp256r1, persistent` and the like; empty for files.
    #[serde(rename = "type")]
    pub key_type: &'static str,
    /// Its size, bytes; 0 if it is empty.
    pub bytes: usize,
    /// The subject of a certificate.
    pub subject: Option<String>,
}

/// Reads a card, also while a server holds it.
///
/// # Errors
/// Errors of the store.
pub fn list(request: &List) -> Result<Listing, ServerError> {
    let state = store::read(&request.state)?;
    listing(&request.state, &load(&request.state, &state)?)
}

pub(super) fn listing(path: &Path, card: &Card) -> Result<Listing, ServerError> {
    let pin = card.settings().pin.as_ref().map(|pin| PinListing {
        scope: match pin.scope {
            PinScope::Nothing => ScopeName::Nothing,
            PinScope::Signing => ScopeName::Signing,
            PinScope::EveryKey => ScopeName::EveryKey,
        },
        tries_max: pin.tries_max,
        tries_left: pin.tries_left(),
    });
    let objects = card.list().into_iter().map(|object| {
        let is_file = object.kind == ObjectKind::File;
        let content = card.file(&object.name.id).filter(|_| is_file).unwrap_or_default();
        ObjectListing {
            kind: match object.kind {
                ObjectKind::PrivateKey => "private key",
                ObjectKind::PublicKey => "public key",
                ObjectKind::File => "file",
                ObjectKind::Secret => "secret",
            },
            id: hex::encode_upper(&object.name.id),
            label: String::from_utf8_lossy(&object.name.label).into_owned(),
            key_type: object.attributes.map_or("", |attributes| shown(attributes.key_type)),
            bytes: object.length_bytes,
            subject: x509::subject(content),
        }
    });
    // As programs see it: some applets show no identifier.
    let id: &[u8] = match card.settings().quirks.applet_id {
        AppletId::Absent => &[],
        AppletId::Plain | AppletId::Overstated => &card.settings().applet_id,
    };
    let key = card.export_public_key(&[slot::CLIENT_KEY]);
    Ok(Listing {
        state: path.to_owned(),
        label: identity::label(id).unwrap_or(identity::NO_LABEL).to_owned(),
        serial: hex::encode_upper(identity::serial(id)),
        quirks: card.settings().quirks.name().unwrap_or("own").to_owned(),
        pin,
        objects: objects.collect(),
        public_key: key.as_ref().map(x509::public_key_pem).transpose()?,
    })
}

fn shown(key_type: KeyType) -> &'static str {
    match key_type {
        KeyType::Secp256r1Persistent => "secp256r1, persistent",
        KeyType::Secp256r1Volatile => "secp256r1, volatile",
        KeyType::BrainpoolP256r1Persistent => "brainpoolP256r1, persistent",
        KeyType::BrainpoolP256r1Volatile => "brainpoolP256r1, volatile",
    }
}

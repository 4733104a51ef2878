// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `create`, `import`, `list`, `reset`: what a card's maker does, on the state file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use warifu_card::crypto::Curve;
use warifu_card::object::{KeyAttributes, KeyType, Name, ObjectKind, access, slot};
use warifu_card::{Card, KeySource, PersonaliseError, Pin, PinScope, Quirks, Settings};
use zeroize::Zeroizing;

use crate::error::ServerError;
use crate::hex;
use crate::host::{load, system_random};
use crate::store::{self, Store};
use crate::x509;

/// What a new card is to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its state file, which must not be there.
    pub state: PathBuf,
    /// Name of its quirk profile.
    #[serde(default = "strict")]
    pub quirks: String,
    /// Curve of its client key.
    #[serde(default)]
    pub curve: CurveName,
    /// Its PIN; none by default.
    #[serde(default)]
    pub pin: Option<PinRequest>,
    /// How many empty places for further key pairs it has, at ids from 10 on.
    #[serde(default)]
    pub spare_pairs: u8,
}

/// The id of the first empty place, beyond the usual slots; and how many there may be.
const SPARE_FIRST: u8 = 0x10;
const SPARE_MAX: u8 = 16;

/// A curve by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum CurveName {
    /// NIST P-256.
    #[default]
    #[serde(rename = "secp256r1", alias = "P-256")]
    Secp256r1,
    /// RFC 5639.
    #[serde(rename = "brainpoolP256r1")]
    BrainpoolP256r1,
}

/// A PIN and its policy.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// 4 to 8 digits.
    pub digits: Zeroizing<String>,
    /// What needs it.
    #[serde(default)]
    pub scope: ScopeName,
    /// How many wrong tries lock it.
    #[serde(default = "three")]
    pub tries: u8,
}

/// What a PIN protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeName {
    /// Nothing, although it can be verified.
    Nothing,
    /// Signatures.
    #[default]
    Signing,
    /// Every use of a private key or secret.
    EveryKey,
}

/// What is to be stored on a card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// The card's state file.
    pub state: PathBuf,
    /// The client's certificate, for slot 02. It must be of the client key.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The server's or its authority's certificate, for slot 03.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// A private key from outside, for slot 01: for development alone.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// Which card to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The card's state file.
    pub state: PathBuf,
}

/// What is to be set back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// The card's state file.
    pub state: PathBuf,
    /// Give the PIN all its tries again.
    #[serde(default)]
    pub unblock_pin: bool,
    /// Replace the PIN.
    #[serde(default)]
    pub pin: Option<PinRequest>,
    /// Take the PIN away.
    #[serde(default)]
    pub remove_pin: bool,
    /// Make the card as new: a new client key, no certificates; quirks and PIN stay.
    #[serde(default)]
    pub erase: bool,
}

/// A card as a list shows it; no secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The state file.
    pub state: PathBuf,
    /// Its quirk profile, or `own`.
    pub quirks: String,
    /// Its PIN, if it has one.
    pub pin: Option<PinListing>,
    /// What it holds.
    pub objects: Vec<ObjectListing>,
    /// The client's public key in PEM, if there is one.
    pub public_key: Option<String>,
}

/// A PIN as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PinListing {
    /// What needs it.
    pub scope: ScopeName,
    /// Tries in all.
    pub tries_max: u8,
    /// Tries left; 0 when it is locked.
    pub tries_left: u8,
}

/// An object as a list shows it.
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
    /// What it holds, in bytes; 0 for an empty place.
    pub bytes: usize,
    /// Of certificates: whose.
    pub subject: Option<String>,
}

fn strict() -> String {
    "strict".to_owned()
}

fn three() -> u8 {
    3
}

impl std::fmt::Debug for PinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinRequest({:?}, {} tries)", self.scope, self.tries)
    }
}

/// Makes a card with the usual slots; the client's key is made on it.
///
/// # Errors
/// [`ServerError::Exists`]; a wrong name or PIN; the store's.
pub fn create(request: &Create) -> Result<Listing, ServerError> {
    let path = &request.state;
    let quirks = Quirks::by_name(&request.quirks).ok_or_else(|| {
        let known = Quirks::PROFILES.map(|(name, _)| name).join(", ");
        ServerError::Request(format!("quirks is {:?}: expected one of {known}", request.quirks))
    })?;
    let pin = request.pin.as_ref().map(made_pin).transpose()?;
    store::make_folder(path)?;
    let mut store = Store::lock(path)?;
    if path.symlink_metadata().is_ok() {
        return Err(ServerError::Exists { path: path.clone() });
    }
    let settings = Settings { quirks, pin, ..Settings::default() };
    let mut card = usual_card(settings, request.curve)?;
    add_spare(&mut card, request.spare_pairs)?;
    store.save(&card.to_bytes())?;
    listing(path, &card)
}

/// Stores certificates or a key.
///
/// # Errors
/// [`ServerError::Request`] for files that are none or do not fit; the store's.
pub fn import(request: &Import) -> Result<Listing, ServerError> {
    if request.certificate.is_none() && request.ca.is_none() && request.key.is_none() {
        return Err(ServerError::Request(
            "nothing to import: expected --certificate, --ca or --key".to_owned(),
        ));
    }
    change(&request.state, |card| {
        if let Some(path) = &request.key {
            replace_key(card, path)?;
        }
        if let Some(path) = &request.certificate {
            let certificate = x509::read_certificate(path)?;
            let key = card.export_public_key(&[slot::CLIENT_KEY]);
            if key.is_none() || certificate.key != key {
                return Err(ServerError::Request(format!(
                    "{}: is of another key than the card's client key: have the card's own request \
                     signed (`warifu card csr`), or import its key with it (--key)",
                    path.display()
                )));
            }
            let written = card.write_file(&[slot::CLIENT_CERTIFICATE], &certificate.der);
            written.map_err(|error| refused(path, &error))?;
        }
        if let Some(path) = &request.ca {
            let certificate = x509::read_certificate(path)?;
            let written = card.write_file(&[slot::SERVER_CERTIFICATE], &certificate.der);
            written.map_err(|error| refused(path, &error))?;
        }
        Ok(())
    })
}

/// Looks at a card; a server may own it meanwhile.
///
/// # Errors
/// The store's.
pub fn list(request: &List) -> Result<Listing, ServerError> {
    let state = Zeroizing::new(store::read(&request.state)?);
    listing(&request.state, &load(&request.state, &state)?)
}

/// Sets the PIN back, or the whole card.
///
/// # Errors
/// [`ServerError::Request`] where nothing is asked for; the store's.
pub fn reset(request: &ResetRequest) -> Result<Listing, ServerError> {
    let pin = request.pin.as_ref().map(made_pin).transpose()?;
    if !(request.unblock_pin || request.remove_pin || request.erase) && pin.is_none() {
        return Err(ServerError::Request(
            "nothing to reset: expected --unblock-pin, --pin, --remove-pin or --erase".to_owned(),
        ));
    }
    change(&request.state, |card| {
        if request.erase {
            let curve = match key_type(card).map(KeyType::curve) {
                Some(Curve::BrainpoolP256r1) => CurveName::BrainpoolP256r1,
                _ => CurveName::Secp256r1,
            };
            *card = usual_card(card.settings().clone(), curve)?;
        }
        if request.remove_pin {
            card.set_pin(None);
        }
        if let Some(pin) = pin {
            card.set_pin(Some(pin));
        }
        if request.unblock_pin {
            card.unblock_pin();
        }
        Ok(())
    })
}

/// Changes a card under its lock, and stores it if that went well.
pub(crate) fn change(
    path: &Path,
    work: impl FnOnce(&mut Card) -> Result<(), ServerError>,
) -> Result<Listing, ServerError> {
    // Before the lock, which would be made beside a card that is not there.
    store::read(path)?;
    let mut store = Store::lock(path)?;
    let state = Zeroizing::new(store::read(path)?);
    let mut card = load(path, &state)?;
    work(&mut card)?;
    let changed = card.to_bytes();
    if *changed != *state {
        store.save(&changed)?;
    }
    listing(path, &card)
}

fn usual_card(settings: Settings, curve: CurveName) -> Result<Card, ServerError> {
    let mut rng = system_random();
    let mut card = Card::with_usual_slots(settings, &mut rng).map_err(|error| inner(&error))?;
    if curve == CurveName::BrainpoolP256r1 {
        put_key(&mut card, KeyType::BrainpoolP256r1Persistent, KeySource::Generate)
            .map_err(|error| inner(&error))?;
    }
    Ok(card)
}

/// Places for key pairs that last and that clients may generate.
fn add_spare(card: &mut Card, pairs: u8) -> Result<(), ServerError> {
    if pairs > SPARE_MAX {
        let text = format!("spare_pairs is {pairs}: expected 0 to {SPARE_MAX}");
        return Err(ServerError::Request(text));
    }
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    for id in SPARE_FIRST..SPARE_FIRST + pairs {
        let name = Name::slot(id, "", access::READ | access::UPDATE);
        card.add_key_pair(name, attributes, KeySource::Empty, &mut system_random())
            .map_err(|error| inner(&error))?;
    }
    Ok(())
}

fn replace_key(card: &mut Card, path: &Path) -> Result<(), ServerError> {
    let key = x509::read_key(path)?;
    let key_type = match key.curve {
        Curve::Secp256r1 => KeyType::Secp256r1Persistent,
        Curve::BrainpoolP256r1 => KeyType::BrainpoolP256r1Persistent,
    };
    put_key(card, key_type, KeySource::Scalar(&key.scalar))
        .map_err(|error| refused(path, &error))?;
    // A certificate of the key before would only mislead.
    card.write_file(&[slot::CLIENT_CERTIFICATE], &[]).map_err(|error| refused(path, &error))
}

/// Puts a key pair into the client's slot, in place of the one there.
fn put_key(
    card: &mut Card,
    key_type: KeyType,
    source: KeySource<'_>,
) -> Result<(), PersonaliseError> {
    let id = [slot::CLIENT_KEY];
    for kind in [ObjectKind::PrivateKey, ObjectKind::PublicKey] {
        match card.delete(kind, &id) {
            Ok(()) | Err(PersonaliseError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    let name = Name::slot(slot::CLIENT_KEY, "client", access::READ);
    card.add_key_pair(name, KeyAttributes::general(key_type), source, &mut system_random())
}

fn made_pin(request: &PinRequest) -> Result<Pin, ServerError> {
    let scope = match request.scope {
        ScopeName::Nothing => PinScope::Nothing,
        ScopeName::Signing => PinScope::Signing,
        ScopeName::EveryKey => PinScope::EveryKey,
    };
    // The digits are not shown: a mistyped PIN is nearly one.
    Pin::new(&request.digits, scope, request.tries).ok_or_else(|| {
        ServerError::Request(
            "the PIN is none: expected 4 to 8 digits, and 1 to 15 tries".to_owned(),
        )
    })
}

fn listing(path: &Path, card: &Card) -> Result<Listing, ServerError> {
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
            id: hex::encode(&object.name.id),
            label: String::from_utf8_lossy(&object.name.label).into_owned(),
            key_type: object.attributes.map_or("", |attributes| shown(attributes.key_type)),
            bytes: object.length_bytes,
            subject: x509::subject(content),
        }
    });
    let key = card.export_public_key(&[slot::CLIENT_KEY]);
    Ok(Listing {
        state: path.to_owned(),
        quirks: card.settings().quirks.name().unwrap_or("own").to_owned(),
        pin,
        objects: objects.collect(),
        public_key: key.as_ref().map(x509::public_key_pem).transpose()?,
    })
}

fn key_type(card: &Card) -> Option<KeyType> {
    let client = |object: &warifu_card::ObjectInfo| {
        object.kind == ObjectKind::PrivateKey && object.name.id == [slot::CLIENT_KEY]
    };
    card.list().into_iter().find(client)?.attributes.map(|attributes| attributes.key_type)
}

fn shown(key_type: KeyType) -> &'static str {
    match key_type {
        KeyType::Secp256r1Persistent => "secp256r1, persistent",
        KeyType::Secp256r1Volatile => "secp256r1, volatile",
        KeyType::BrainpoolP256r1Persistent => "brainpoolP256r1, persistent",
        KeyType::BrainpoolP256r1Volatile => "brainpoolP256r1, volatile",
    }
}

fn refused(path: &Path, error: &PersonaliseError) -> ServerError {
    ServerError::Request(format!("{}: {error}", path.display()))
}

fn inner(error: &PersonaliseError) -> ServerError {
    ServerError::Request(format!("the card: an object {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<T: for<'a> Deserialize<'a>>(value: serde_json::Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_card_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/card.state");
        let wanted: Create = request(serde_json::json!({
            "state": path, "quirks": "wolfssl", "curve": "brainpoolP256r1",
            "pin": {"digits": "1234", "scope": "every-key", "tries": 5},
        }));
        assert!(!format!("{wanted:?}").contains("1234"));
        let made = create(&wanted).unwrap();
        assert_eq!((made.quirks.as_str(), made.pin.unwrap().tries_left), ("wolfssl", 5));
        let key =
            made.objects.iter().find(|object| object.kind == "private key" && object.id == "01");
        assert_eq!(key.unwrap().key_type, "brainpoolP256r1, persistent");
        assert!(matches!(create(&wanted), Err(ServerError::Exists { .. })));
        assert_eq!(list(&request(serde_json::json!({ "state": path }))).unwrap(), made);
    }

    #[test]
    fn what_is_wrong_makes_no_card() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        for wrong in [
            serde_json::json!({"state": path, "quirks": "lemon"}),
            serde_json::json!({"state": path, "pin": {"digits": "12a4"}}),
            serde_json::json!({"state": path, "pin": {"digits": "1234", "tries": 0}}),
        ] {
            let error = create(&request(wrong)).unwrap_err().to_string();
            assert!(error.contains("expected") && !error.contains("12a4"), "{error}");
            assert!(!path.exists());
        }
    }

    #[test]
    fn erasing_makes_a_new_key_and_keeps_quirks_and_pin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let made = create(&request(serde_json::json!({
            "state": path, "quirks": "thales", "pin": {"digits": "1234"},
        })))
        .unwrap();
        assert!(reset(&request(serde_json::json!({ "state": path }))).is_err());
        let after = reset(&request(serde_json::json!({"state": path, "erase": true}))).unwrap();
        assert_ne!(after.public_key, made.public_key);
        assert_eq!((&after.quirks, after.pin), (&made.quirks, made.pin));
        let after =
            reset(&request(serde_json::json!({"state": path, "remove_pin": true}))).unwrap();
        assert_eq!(after.pin, None);
    }

    #[test]
    fn a_card_that_is_not_there_is_named_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let error = change(&path, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("warifu card create"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Personalisation of the state file: `create`, `import`, `list`, `reset`.

mod listing;
mod request;

pub use listing::{Listing, ObjectListing, PinListing, list};
pub use request::{Create, CurveName, Import, List, PinRequest, ResetRequest, ScopeName};

use std::path::Path;

use rand_core::Rng;
use warifu_card::crypto::Curve;
use warifu_card::identity::{self, CARD_LABEL_MAX_BYTES};
use warifu_card::object::{KeyAttributes, KeyType, Name, ObjectKind, access, slot};
use warifu_card::{Card, KeySource, PersonaliseError, Pin, PinScope, Quirks, Settings};

use self::listing::listing;
use crate::error::ServerError;
use crate::host::{load, system_random};
use crate::store::{self, Store};
use crate::x509;

/// The id of the first spare container, and the most spare containers.
const SPARE_FIRST: u8 = 0x10;
const SPARE_MAX: u8 = 16;

/// Creates a card with the usual containers and a new client key.
///
/// # Errors
/// [`ServerError::Exists`]; an invalid name or PIN; errors of the store.
pub fn create(request: &Create) -> Result<Listing, ServerError> {
    let path = &request.state;
    let quirks = Quirks::by_name(&request.quirks).ok_or_else(|| {
        let known = Quirks::PROFILES.map(|(name, _)| name).join(", ");
        ServerError::Request(format!("quirks is {:?}: expected one of {known}", request.quirks))
    })?;
    let pin = request.pin.as_ref().map(made_pin).transpose()?;
    let applet_id = applet_id(&request.label)?;
    nothing_at(path)?;
    let mut store = Store::lock(path)?;
    nothing_at(path)?;
    let settings = Settings { quirks, pin, applet_id, ..Settings::default() };
    let mut card = usual_card(settings, request.curve)?;
    add_spare(&mut card, request.spare_pairs)?;
    store.save(&card.to_bytes())?;
    listing(path, &card)
}

/// Stores certificates or a key.
///
/// # Errors
/// [`ServerError::Request`] for invalid or unsuitable files; errors of the store.
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
                    "{}: certifies a key other than the client key of the card: have the request \
                     of the card \
                     signed (`warifu card csr`), or import that key too (--key)",
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

/// Resets the PIN or the whole card.
///
/// # Errors
/// [`ServerError::Request`] for an empty request; errors of the store.
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

/// Changes a card under its lock, and stores it after a success.
pub(crate) fn change(
    path: &Path,
    work: impl FnOnce(&mut Card) -> Result<(), ServerError>,
) -> Result<Listing, ServerError> {
    // Before the lock, whose file would be created beside a missing card.
    store::read(path)?;
    let mut store = Store::lock(path)?;
    let state = store::read(path)?;
    let mut card = load(path, &state)?;
    work(&mut card)?;
    let changed = card.to_bytes();
    if *changed != *state {
        store.save(&changed)?;
    }
    listing(path, &card)
}

/// Refuses an existing file, which may contain keys.
fn nothing_at(path: &Path) -> Result<(), ServerError> {
    let Ok(about) = path.symlink_metadata() else { return Ok(()) };
    let what = match store::read(path) {
        Ok(state) if load(path, &state).is_ok() => {
            return Err(ServerError::Exists { path: path.to_owned() });
        }
        _ if about.is_file() && about.len() == 0 => "the file exists and is empty: remove it",
        _ => "the file exists and is not a card, or a damaged one: choose another --state",
    };
    Err(ServerError::Request(format!("{}: {what}", path.display())))
}

/// The applet's identifier of a new card, with a random serial number.
fn applet_id(label: &str) -> Result<Vec<u8>, ServerError> {
    let mut serial = [0; identity::SERIAL_BYTES];
    system_random().fill_bytes(&mut serial);
    identity::applet_id(label, serial).ok_or_else(|| {
        ServerError::Request(format!(
            "the label is {label:?}: expected 1 to {CARD_LABEL_MAX_BYTES} visible ASCII \
             characters, \
             without spaces"
        ))
    })
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

/// Adds persistent containers for key pairs that clients may generate.
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
    // A certificate of the previous key would be wrong.
    card.write_file(&[slot::CLIENT_CERTIFICATE], &[]).map_err(|error| refused(path, &error))
}

/// Replaces the client's key pair.
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
    // The digits are not shown: a mistyped PIN is close to the real one.
    Pin::new(&request.digits, scope, request.tries).ok_or_else(|| {
        ServerError::Request(
            "the PIN is none: expected 4 to 8 digits, and 1 to 15 tries".to_owned(),
        )
    })
}

fn key_type(card: &Card) -> Option<KeyType> {
    let client = |object: &warifu_card::ObjectInfo| {
        object.kind == ObjectKind::PrivateKey && object.name.id == [slot::CLIENT_KEY]
    };
    card.list().into_iter().find(client)?.attributes.map(|attributes| attributes.key_type)
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
    use serde::Deserialize;

    fn request<T: for<'a> Deserialize<'a>>(value: serde_json::Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn create_card_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
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
    fn invalid_options_create_no_card() {
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
    fn serial_numbers_and_labels() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, label: &str| {
            let path = folder.path().join(name);
            create(&request(serde_json::json!({ "state": path, "label": label })))
        };
        let (one, other) = (make("1", "meter").unwrap(), make("2", "meter").unwrap());
        assert_eq!((one.label.as_str(), other.label.as_str()), ("meter", "meter"));
        assert_eq!(one.serial.len(), 16);
        assert_ne!(one.serial, other.serial);
        let wrong = make("3", "zähler").unwrap_err().to_string();
        assert!(wrong.contains("\"zähler\": expected 1 to 22 visible ASCII"), "{wrong}");
    }

    #[test]
    fn state_without_serial_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let card = Card::with_usual_slots(Settings::default(), &mut system_random()).unwrap();
        Store::lock(&path).unwrap().save(&card.to_bytes()).unwrap();
        let old = list(&List { state: path.clone() }).unwrap();
        assert_eq!((old.label.as_str(), old.serial.as_str()), ("warifu", "776172696675"));
        let erased = reset(&request(serde_json::json!({"state": path, "erase": true}))).unwrap();
        assert_eq!(erased.serial, old.serial, "it is the same card");
    }

    #[test]
    fn import_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let refused = || {
            let before = std::fs::read(&path).ok();
            let error = create(&request(serde_json::json!({ "state": path }))).unwrap_err();
            assert_eq!(std::fs::read(&path).ok(), before);
            error.to_string()
        };
        std::fs::write(&path, "").unwrap();
        assert!(refused().ends_with("the file exists and is empty: remove it"), "{}", refused());
        std::fs::write(&path, "something").unwrap();
        assert!(
            refused().contains("not a card, or a damaged one: choose another"),
            "{}",
            refused()
        );
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("missing", &path).unwrap();
        assert!(refused().contains("choose another --state"), "{}", refused());
        let missing = folder.path().join("new/card.state");
        let error = create(&request(serde_json::json!({ "state": missing }))).unwrap_err();
        assert!(error.to_string().ends_with("check the name, or create the folder"), "{error}");
        assert!(!folder.path().join("new").exists());
    }

    #[test]
    fn erase_keeps_quirks_and_pin() {
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
    fn missing_card() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let error = change(&path, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("warifu card create"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

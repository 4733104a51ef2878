// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What survives a loss of power, as bytes: magic, version, length, body, SHA-256 of all before.
//!
//! The checksum finds damage, not malice: whoever can write the file can write a right one.

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::card::{Card, Nonce, Settings};
use crate::crypto::SecretBytes;
use crate::object::{File, KeyAttributes, KeyType, Name, PrivateKey, PublicKey, Secret, Store};
use crate::pin::{PIN_MAX_BYTES, Pin, PinScope};
use crate::quirks::Quirks;

/// What a state begins with.
const MAGIC: &[u8; 8] = b"WARIFUCD";
/// The version that this program writes, and the only one that it reads.
const VERSION: u16 = 1;
/// Magic, version and the length of the body.
const HEAD_BYTES: usize = 8 + 2 + 4;
const CHECKSUM_BYTES: usize = 32;

/// Why bytes are not a card's state. To be shown behind the file's path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// It begins with something else.
    #[error(
        "is not a card: it does not begin with WARIFUCD; name the file that was created as a card"
    )]
    Magic,
    /// It has another version.
    #[error("is a card of format {found}: this program reads format {VERSION}")]
    Version {
        /// The version that it states.
        found: u16,
    },
    /// It has another length than its head says.
    #[error(
        "has {found_bytes} bytes, but its header says {expected_bytes}: it was truncated or \
         something \
         was appended; restore a copy"
    )]
    Length {
        /// How long it is.
        found_bytes: usize,
        /// How long it should be.
        expected_bytes: usize,
    },
    /// Its checksum is wrong.
    #[error("does not match its checksum: it was damaged or edited; restore a copy")]
    Checksum,
    /// A part is wrong although the checksum is right.
    #[error("has an invalid {part} but a valid checksum: another program wrote it; restore a copy")]
    Content {
        /// Which part.
        part: &'static str,
    },
}

impl Card {
    /// What survives a loss of power. It holds every persistent key in the clear: to be stored
    /// where only its owner reads.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut body = Zeroizing::new(Vec::new());
        write_settings(&mut body, &self.settings);
        write_store(&mut body, &self.store);
        let mut out = Zeroizing::new(Vec::with_capacity(HEAD_BYTES + body.len() + CHECKSUM_BYTES));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.extend_from_slice(&body);
        let checksum = Sha256::digest(&out);
        out.extend_from_slice(&checksum);
        out
    }

    /// The card of a state, as after a reset.
    ///
    /// # Errors
    /// What is wrong with the bytes. Never panics.
    pub fn from_bytes(bytes: &[u8]) -> Result<Card, StateError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(StateError::Magic)?;
        let short =
            |expected_bytes| StateError::Length { found_bytes: bytes.len(), expected_bytes };
        let (version, rest) = rest.split_first_chunk().ok_or(short(HEAD_BYTES))?;
        let found = u16::from_be_bytes(*version);
        if found != VERSION {
            return Err(StateError::Version { found });
        }
        let (length, rest) = rest.split_first_chunk().ok_or(short(HEAD_BYTES))?;
        let length = u32::from_be_bytes(*length) as usize;
        if rest.len() != length.saturating_add(CHECKSUM_BYTES) {
            return Err(short((HEAD_BYTES + CHECKSUM_BYTES).saturating_add(length)));
        }
        let (body, checksum) = rest.split_at(length);
        if Sha256::digest(&bytes[..HEAD_BYTES + length]).as_slice() != checksum {
            return Err(StateError::Checksum);
        }
        let mut reader = Reader(body);
        let settings = read_settings(&mut reader)?;
        let store = read_store(&mut reader)?;
        if !reader.0.is_empty() {
            return Err(wrong("end"));
        }
        Ok(Card::with_store(settings, store))
    }
}

fn write_settings(out: &mut Vec<u8>, settings: &Settings) {
    out.extend_from_slice(&settings.quirks.to_bytes());
    out.push(settings.nonce as u8);
    write_bytes(out, &settings.applet_id);
    match &settings.pin {
        None => out.push(0),
        Some(pin) => {
            out.extend([1, pin.scope as u8, pin.tries_max, pin.tries_left]);
            out.extend_from_slice(&*pin.value);
        }
    }
}

fn write_store(out: &mut Vec<u8>, store: &Store) {
    out.push(store.private_keys.len() as u8);
    for key in &store.private_keys {
        write_name(out, &key.name);
        write_attributes(out, &key.attributes);
        write_bytes(out, &key.public_id);
        let kept = key.scalar.as_ref().filter(|_| !key.attributes.key_type.is_volatile());
        write_bytes(out, kept.map_or(&[], |scalar| scalar.expose()));
    }
    out.push(store.public_keys.len() as u8);
    for key in &store.public_keys {
        write_name(out, &key.name);
        write_attributes(out, &key.attributes);
        let kept = key.point.as_ref().filter(|_| !key.attributes.key_type.is_volatile());
        write_bytes(out, kept.map_or(&[], |point| point.bytes()));
    }
    out.push(store.files.len() as u8);
    for file in &store.files {
        write_name(out, &file.name);
        out.push(file.usage);
        write_bytes(out, &file.content);
    }
    out.push(store.secrets.len() as u8);
    for secret in &store.secrets {
        write_name(out, &secret.name);
        write_bytes(out, secret.value.expose());
    }
}

fn write_name(out: &mut Vec<u8>, name: &Name) {
    write_bytes(out, &name.id);
    write_bytes(out, &name.label);
    out.push(name.access);
}

fn write_attributes(out: &mut Vec<u8>, attributes: &KeyAttributes) {
    let KeyAttributes { key_type, usage, functions, hashes } = *attributes;
    out.extend([key_type.byte(), usage, functions, hashes]);
}

/// Bytes behind their length in 16 bits; nothing in a card is longer.
fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

type Read<T> = Result<T, StateError>;

fn wrong(part: &'static str) -> StateError {
    StateError::Content { part }
}

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self, part: &'static str) -> Read<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or(wrong(part))?;
        self.0 = rest;
        Ok(*array)
    }

    fn byte(&mut self, part: &'static str) -> Read<u8> {
        self.array(part).map(|[byte]| byte)
    }

    fn bytes(&mut self, part: &'static str) -> Read<&'a [u8]> {
        let length = usize::from(u16::from_be_bytes(self.array(part)?));
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(wrong(part))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn list<T>(
        &mut self,
        part: &'static str,
        mut one: impl FnMut(&mut Reader<'a>) -> Read<T>,
    ) -> Read<Vec<T>> {
        (0..self.byte(part)?).map(|_| one(self)).collect()
    }

    fn name(&mut self) -> Read<Name> {
        let part = "name of an object";
        let (id, label) = (self.bytes(part)?.to_vec(), self.bytes(part)?.to_vec());
        let name = Name { id, label, access: self.byte(part)? };
        if name.is_valid() { Ok(name) } else { Err(wrong(part)) }
    }

    fn attributes(&mut self) -> Read<KeyAttributes> {
        let part = "key type";
        let [key_type, usage, functions, hashes] = self.array(part)?;
        let key_type = KeyType::from_byte(key_type).ok_or(wrong(part))?;
        Ok(KeyAttributes { key_type, usage, functions, hashes })
    }
}

fn read_settings(reader: &mut Reader<'_>) -> Read<Settings> {
    let quirks = Quirks::from_bytes(&reader.array("quirk")?);
    let quirks = quirks.ok_or(wrong("quirk"))?;
    let nonce = match reader.byte("nonce")? {
        0 => Nonce::Deterministic,
        1 => Nonce::Hedged,
        _ => return Err(wrong("nonce")),
    };
    let applet_id = reader.bytes("applet id")?.to_vec();
    let pin = match reader.byte("PIN")? {
        0 => None,
        1 => Some(read_pin(reader)?),
        _ => return Err(wrong("PIN")),
    };
    Ok(Settings { quirks, nonce, pin, applet_id })
}

fn read_pin(reader: &mut Reader<'_>) -> Read<Pin> {
    let [scope, tries_max, tries_left] = reader.array("PIN")?;
    let scope = match scope {
        0 => PinScope::Nothing,
        1 => PinScope::Signing,
        2 => PinScope::EveryKey,
        _ => return Err(wrong("PIN")),
    };
    if !(1..=15).contains(&tries_max) || tries_left > tries_max {
        return Err(wrong("PIN"));
    }
    let value = Zeroizing::new(reader.array::<PIN_MAX_BYTES>("PIN")?);
    Ok(Pin { scope, tries_max, tries_left, value })
}

fn read_store(reader: &mut Reader<'_>) -> Read<Store> {
    let private_keys = reader.list("number of private keys", |reader| {
        let (name, attributes) = (reader.name()?, reader.attributes()?);
        let public_id = reader.bytes("id of a public key")?.to_vec();
        let scalar = match reader.bytes("private key")? {
            [] => None,
            bytes => {
                let bytes = bytes.try_into().map_err(|_| wrong("private key"))?;
                let scalar = attributes.key_type.curve().scalar(bytes);
                Some(scalar.ok_or(wrong("private key"))?)
            }
        };
        Ok(PrivateKey { name, attributes, public_id, scalar })
    })?;
    let public_keys = reader.list("number of public keys", |reader| {
        let (name, attributes) = (reader.name()?, reader.attributes()?);
        let point = match reader.bytes("public key")? {
            [] => None,
            bytes => {
                let point = attributes.key_type.curve().point(bytes);
                Some(point.ok_or(wrong("public key"))?)
            }
        };
        Ok(PublicKey { name, attributes, point })
    })?;
    let files = reader.list("number of files", |reader| {
        let (name, usage) = (reader.name()?, reader.byte("file")?);
        Ok(File { name, usage, content: reader.bytes("file")?.to_vec() })
    })?;
    let secrets = reader.list("number of secrets", |reader| {
        let name = reader.name()?;
        Ok(Secret { name, value: SecretBytes::new(reader.bytes("secret")?.to_vec()) })
    })?;
    Ok(Store { private_keys, public_keys, files, secrets })
}

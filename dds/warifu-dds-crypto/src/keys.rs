// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Master keys, what is derived from them, and how they travel (DDS Security 1.1, sections 9.5.2
//! and 9.5.3.3).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::algorithm::{Aead, Kind, MAX_KEY_BYTES, NONE};
use crate::cipher::Cipher;
use crate::error::{Error, Result};
use crate::random::Random;

/// Overwritten when dropped; on the heap, so that moving it leaves no copy.
pub type Secret = Zeroizing<Vec<u8>>;

/// Identifies a key among those of one participant.
pub type KeyId = u32;

/// `KeyMaterial_AES_GCM_GMAC`, for any AEAD.
#[derive(Clone)]
pub struct MasterKey {
    /// The cipher, and what it does.
    pub kind: Kind,
    /// The id that crypto headers carry.
    pub id: KeyId,
    /// The key with which one receiver checks who sent a message.
    pub receiver: Option<ReceiverKey>,
    salt: Secret,
    key: Secret,
}

/// `receiver_specific_key_id` and `master_receiver_specific_key`.
#[derive(Clone)]
pub struct ReceiverKey {
    /// The id that stands beside each receiver-specific tag.
    pub id: KeyId,
    key: Secret,
}

/// What a Diffie-Hellman handshake has left.
pub struct SharedSecret<'a> {
    /// The secret itself.
    pub secret: &'a [u8],
    /// The initiator's challenge.
    pub challenge1: &'a [u8; 32],
    /// The responder's challenge.
    pub challenge2: &'a [u8; 32],
}

impl MasterKey {
    /// A new one.
    pub fn generate(kind: Kind, id: KeyId, random: &dyn Random) -> Result<Self> {
        let salt = generate(kind.aead, random)?;
        let key = generate(kind.aead, random)?;
        Ok(Self { kind, id, receiver: None, salt, key })
    }

    /// The same key for one more receiver, who gets a key of his own beside it.
    pub fn for_receiver(&self, id: KeyId, random: &dyn Random) -> Result<Self> {
        let key = generate(self.kind.aead, random)?;
        Ok(Self { receiver: Some(ReceiverKey { id, key }), ..self.clone() })
    }

    /// The key under which two participants exchange all others (section 9.5.2.1.2, tables 67 and
    /// 68): always AES-256-GCM, so that peers can read each other's tokens, whatever they hold.
    pub fn key_exchange(shared: &SharedSecret<'_>) -> Result<Self> {
        let (first, second) = (shared.challenge1, shared.challenge2);
        let salt = exchange_part(first, b"keyexchange salt", second, shared.secret)?;
        let key = exchange_part(second, b"key exchange key", first, shared.secret)?;
        let kind = Kind { aead: Aead::Aes256Gcm, mode: crate::algorithm::Mode::Encrypt };
        Ok(Self { kind, id: 0, receiver: None, salt, key })
    }

    /// The cipher of one session (section 9.5.3.3.3).
    pub fn session(&self, session_id: u32) -> Result<Cipher> {
        self.derive(b"SessionKey", &self.key, session_id)
    }

    /// The cipher of one session's receiver-specific tags; nothing without such a key.
    pub fn receiver_session(&self, session_id: u32) -> Option<Result<Cipher>> {
        let receiver = self.receiver.as_ref()?;
        Some(self.derive(b"SessionReceiverKey", &receiver.key, session_id))
    }

    /// `dds.cryp.keymat`, in CDR, big-endian.
    pub fn to_token(&self) -> Secret {
        let mut out = Zeroizing::new(Vec::with_capacity(24 + 3 * MAX_KEY_BYTES));
        out.extend_from_slice(&self.kind.to_wire());
        put_octets(&mut out, &self.salt);
        out.extend_from_slice(&self.id.to_be_bytes());
        put_octets(&mut out, &self.key);
        match &self.receiver {
            Some(receiver) => {
                out.extend_from_slice(&receiver.id.to_be_bytes());
                put_octets(&mut out, &receiver.key);
            }
            None => out.extend_from_slice(&[0; 8]),
        }
        out
    }

    /// The token of an entity that is not protected.
    pub fn token_of_none() -> Secret {
        Zeroizing::new(vec![0; 24])
    }

    /// Nothing for an entity that is not protected.
    pub fn from_token(token: &[u8]) -> Result<Option<Self>> {
        const SHORT: Error = Error::Token("it ends too early");
        let mut rest = token;
        let kind: [u8; 4] = take(&mut rest).ok_or(SHORT)?;
        if kind == NONE {
            return Ok(None);
        }
        let kind = Kind::from_wire(kind).ok_or(Error::Token("its cipher is unknown"))?;
        let length = kind.aead.key_bytes();
        let salt = take_key(&mut rest, length)?;
        let id = KeyId::from_be_bytes(take(&mut rest).ok_or(SHORT)?);
        let key = take_key(&mut rest, length)?;
        let receiver_id = KeyId::from_be_bytes(take(&mut rest).ok_or(SHORT)?);
        let receiver = match receiver_id {
            0 => None,
            id => Some(ReceiverKey { id, key: take_key(&mut rest, length)? }),
        };
        Ok(Some(Self { kind, id, receiver, salt, key }))
    }

    fn derive(&self, purpose: &[u8], key: &[u8], session_id: u32) -> Result<Cipher> {
        let mut mac = hmac(key)?;
        mac.update(purpose);
        mac.update(self.kind.aead.derivation_label().as_bytes());
        mac.update(&self.salt);
        mac.update(&session_id.to_be_bytes());
        let mut derived: [u8; 32] = mac.finalize().into_bytes().into();
        let cipher = Cipher::new(self.kind.aead, &derived[..self.kind.aead.key_bytes()]);
        zeroize::Zeroize::zeroize(&mut derived);
        cipher.ok_or(Error::Token("its key has another length than the cipher's"))
    }
}

fn generate(aead: Aead, random: &dyn Random) -> Result<Secret> {
    let mut secret = Zeroizing::new(vec![0; aead.key_bytes()]);
    random.fill(&mut secret)?;
    Ok(secret)
}

/// HMAC-SHA-256 keyed with a hash of the challenges, over the shared secret.
fn exchange_part(first: &[u8], cookie: &[u8], last: &[u8], secret: &[u8]) -> Result<Secret> {
    let hash = Sha256::new().chain_update(first).chain_update(cookie).chain_update(last).finalize();
    let mut mac = hmac(&hash)?;
    mac.update(secret);
    Ok(Zeroizing::new(mac.finalize().into_bytes().to_vec()))
}

fn hmac(key: &[u8]) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(key).map_err(|_| Error::Token("HMAC takes no such key"))
}

fn put_octets(out: &mut Vec<u8>, octets: &[u8]) {
    // A key has 32 bytes at most.
    #[expect(clippy::cast_possible_truncation)]
    out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
    out.extend_from_slice(octets);
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_key(rest: &mut &[u8], length: usize) -> Result<Secret> {
    let said = take(rest).map(u32::from_be_bytes).and_then(|said| usize::try_from(said).ok());
    if said != Some(length) || rest.len() < length {
        return Err(Error::Token("a key or salt has another length than its cipher's"));
    }
    let (octets, tail) = rest.split_at(length);
    *rest = tail;
    // What a peer leaves at zero was never filled.
    if octets.iter().all(|octet| *octet == 0) {
        return Err(Error::Token("a key or salt is all zero"));
    }
    Ok(Zeroizing::new(octets.to_vec()))
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CryptoKeyExchange: keys as tokens that peers send each other (DDS Security 1.1, sections 8.5.1.8
//! and 9.5.2.1).

use std::sync::Arc;

use crate::algorithm::{Aead, Mode};
use crate::entity::{Category, Handle, Relation, RemoteParticipant, WriterKeys};
use crate::error::{Error, Result};
use crate::factory::{Factory, forget, pair};
use crate::keys::{MasterKey, Secret};
use crate::session::Receiver;

/// The name of the binary property that holds a key.
pub const KEY_MATERIAL: &str = "dds.cryp.keymat";

/// A CryptoToken of ours.
pub struct Token {
    /// The cipher's class.
    pub class_id: &'static str,
    /// The key.
    pub key_material: Secret,
}

/// A peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerToken<'a> {
    /// The class that it names.
    pub class_id: &'a str,
    /// The key.
    pub key_material: &'a [u8],
}

impl Factory {
    /// What a remote participant needs to read RTPS messages of a local one.
    pub fn participant_tokens(&self, local: Handle, remote: Handle) -> Result<Vec<Token>> {
        let pair = pair(&*self.registry.remote_participant(remote)?, local)?;
        let class_id = pair.local.aead.class_id();
        let key_material =
            pair.token.as_ref().map_or_else(MasterKey::token_of_none, MasterKey::to_token);
        Ok(vec![Token { class_id, key_material }])
    }

    /// Takes the keys of a remote participant.
    pub fn set_participant_tokens(
        &self,
        local: Handle,
        remote: Handle,
        tokens: &[PeerToken<'_>],
    ) -> Result<()> {
        let participant = self.registry.remote_participant(remote)?;
        let pair = pair(&participant, local)?;
        let is_protected = pair.local.protection.mode.is_some();
        if tokens.len() > 1 {
            return Err(Error::Token("a participant has one"));
        }
        let key = keys(tokens, pair.local.aead, is_protected)?.pop();
        let mut receiver = pair.receiver.write();
        forget(&participant, local, remote);
        *receiver = key.map(|key| Arc::new(Receiver::new(key)));
        if let Some(key) = &*receiver {
            specific(&participant, [local, remote], key);
        }
        Ok(())
    }

    /// What a remote reader needs of a local writer.
    pub fn writer_tokens(&self, local: Handle, remote: Handle) -> Result<Vec<Token>> {
        let reader = self.registry.remote_reader(remote)?;
        if reader.local != local {
            return Err(Error::Handle(local));
        }
        let class_id = reader.writer.aead.class_id();
        let keys = reader.tokens.iter().map(MasterKey::to_token);
        Ok(keys.map(|key_material| Token { class_id, key_material }).collect())
    }

    /// Takes the keys of a remote writer.
    pub fn set_writer_tokens(
        &self,
        local: Handle,
        remote: Handle,
        tokens: &[PeerToken<'_>],
    ) -> Result<()> {
        let writer = self.registry.remote_writer(remote)?;
        if writer.local != local {
            return Err(Error::Handle(local));
        }
        if tokens.len() > 2 {
            return Err(Error::Token("a writer has two at most"));
        }
        let reader = &writer.reader;
        let is_protected = reader.protection.mode.is_some() || reader.payload.is_some();
        let keys = keys(tokens, reader.aead, is_protected)?;
        forget(&writer.participant, local, remote);
        let receivers = writer_keys(keys, reader.protection.mode, reader.payload);
        // Submessages alone say by their key whose they are.
        if let Some(key) = &receivers.submessages {
            let (category, participant) = (Category::Writer, reader.participant);
            let relation = Relation { category, participant, local, remote };
            let mut relations = writer.participant.relations.write();
            relations.by_key.entry(key.master.id).or_default().push(relation);
            drop(relations);
            specific(&writer.participant, [local, remote], key);
        }
        *writer.receivers.write() = receivers;
        Ok(())
    }

    /// What a remote writer needs of a local reader.
    pub fn reader_tokens(&self, local: Handle, remote: Handle) -> Result<Vec<Token>> {
        let writer = self.registry.remote_writer(remote)?;
        if writer.local != local {
            return Err(Error::Handle(local));
        }
        let reader = &writer.reader;
        let class_id = reader.aead.class_id();
        let key_material = match &writer.token {
            Some(key) => key.to_token(),
            // Fast DDS 2.9 waits for a token of each reader of protected samples, also of one that
            // has no key because it protects nothing itself.
            None if reader.payload.is_some() => MasterKey::token_of_none(),
            None => return Ok(Vec::new()),
        };
        Ok(vec![Token { class_id, key_material }])
    }

    /// Takes the key of a remote reader.
    pub fn set_reader_tokens(
        &self,
        local: Handle,
        remote: Handle,
        tokens: &[PeerToken<'_>],
    ) -> Result<()> {
        let reader = self.registry.remote_reader(remote)?;
        if reader.local != local {
            return Err(Error::Handle(local));
        }
        if tokens.len() > 1 {
            return Err(Error::Token("a reader has one"));
        }
        let writer = &reader.writer;
        let key = keys(tokens, writer.aead, writer.protection.mode.is_some())?.pop();
        forget(&reader.participant, local, remote);
        let receiver = key.map(|key| Arc::new(Receiver::new(key)));
        if let Some(key) = &receiver {
            let (category, participant) = (Category::Reader, writer.participant);
            let relation = Relation { category, participant, local, remote };
            let mut relations = reader.participant.relations.write();
            relations.by_key.entry(key.master.id).or_default().push(relation);
            drop(relations);
            specific(&reader.participant, [local, remote], key);
        }
        *reader.receiver.write() = receiver;
        Ok(())
    }
}

/// The keys in tokens, which have to be of our class and of our cipher. Entities that are not
/// protected may have none.
fn keys(tokens: &[PeerToken<'_>], ours: Aead, is_protected: bool) -> Result<Vec<MasterKey>> {
    let mut keys = Vec::new();
    for token in tokens {
        if token.class_id != ours.class_id() {
            let theirs = printable(token.class_id);
            return Err(Error::Class { theirs, ours: ours.class_id() });
        }
        let Some(key) = MasterKey::from_token(token.key_material)? else { continue };
        // AES-128 and AES-256 share a class, and each side sends with its own.
        if key.kind.aead != ours && !(key.kind.aead.is_standard() && ours.is_standard()) {
            return Err(Error::Token("its cipher is another than its class says"));
        }
        keys.push(key);
    }
    if is_protected && keys.is_empty() {
        return Err(Error::Token("it holds no key, and ours is protected"));
    }
    Ok(keys)
}

/// What each of a writer's keys is for: the one for submessages comes first, the one for samples
/// last (DDS Security 1.1, section 9.5.2.3).
fn writer_keys(
    keys: Vec<MasterKey>,
    submessages: Option<Mode>,
    samples: Option<Mode>,
) -> WriterKeys {
    let is_shared = keys.len() == 1 && submessages.is_some() && samples.is_some();
    let receiver = |key: Option<&MasterKey>| key.map(|key| Arc::new(Receiver::new(key.clone())));
    WriterKeys {
        submessages: receiver(keys.first().filter(|_| submessages.is_some())),
        samples: receiver(keys.last().filter(|_| samples.is_some())),
        is_shared,
    }
}

/// A peer's text, short and without control characters, for a line of a log.
fn printable(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Makes a sender's receiver-specific key known by its id.
fn specific(participant: &RemoteParticipant, owners: [Handle; 2], key: &Arc<Receiver>) {
    if let Some(receiver) = &key.master.receiver {
        let ids = (key.master.id, receiver.id);
        participant.relations.write().specific.insert(ids, (owners, Arc::clone(key)));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CryptoKeyFactory: makes the keys of participants, writers and readers (DDS Security 1.1, section
//! 8.5.1.7).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::algorithm::{Aead, Kind, Mode};
use crate::entity::{
    Category, Entity, Handle, LocalParticipant, LocalReader, LocalWriter, Pair, ReceiverTagger,
    Registry, Relation, RemoteParticipant, RemoteReader, RemoteWriter, Shared, WriterKeys,
};
use crate::error::{Error, Result};
use crate::keys::{KeyId, MasterKey, SharedSecret};
use crate::protection::Protection;
use crate::random::Random;
use crate::session::{Receiver, Sender};
use crate::settings::Settings;

/// All keys of a domain.
pub struct Factory {
    /// The entities that have them.
    pub registry: Registry,
    settings: Settings,
    random: Box<dyn Random>,
    next_key_id: AtomicU32,
}

/// What a local endpoint is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Its own cipher, if it chose one.
    pub aead: Option<Aead>,
    /// Of its submessages.
    pub protection: Protection,
    /// Of samples.
    pub payload: Option<Mode>,
    /// Whether it is the builtin one over which keys are exchanged.
    pub is_volatile: bool,
}

impl Factory {
    /// Without entities.
    pub fn new(settings: Settings, random: Box<dyn Random>) -> Self {
        let registry = Registry::default();
        Self { registry, settings, random, next_key_id: AtomicU32::new(1) }
    }

    /// The settings of the domain.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A participant of this process.
    pub fn register_local_participant(
        &self,
        settings: &Settings,
        protection: Protection,
    ) -> Result<Handle> {
        let sender = self.sender(settings.aead, protection.mode, settings.max_blocks)?;
        let (aead, max_blocks) = (settings.aead, settings.max_blocks);
        let participant = LocalParticipant { aead, protection, sender, max_blocks };
        Ok(self.registry.insert(Entity::LocalParticipant(Arc::new(participant))))
    }

    /// A participant that authenticated itself to a local one.
    pub fn register_remote_participant(
        &self,
        local: Handle,
        identity: i64,
        shared: &SharedSecret<'_>,
    ) -> Result<Handle> {
        let participant = self.registry.local_participant(local)?;
        let known = self.registry.remote_participants();
        let known = known.into_iter().find(|(_, remote)| remote.identity == identity);
        let (handle, remote) = match known {
            Some(known) => known,
            None => {
                let (pairs, relations) = (Shared::default(), Shared::default());
                let remote = Arc::new(RemoteParticipant { identity, pairs, relations });
                let entity = Entity::RemoteParticipant(Arc::clone(&remote));
                (self.registry.insert(entity), remote)
            }
        };
        if !remote.pairs.read().contains_key(&local) {
            let pair = self.pair(participant, shared)?;
            remote.pairs.write().insert(local, Arc::new(pair));
        }
        Ok(handle)
    }

    fn pair(&self, local: Arc<LocalParticipant>, shared: &SharedSecret<'_>) -> Result<Pair> {
        let exchange = Arc::new(MasterKey::key_exchange(shared)?);
        let (token, tags) = self.token(local.sender.as_ref(), local.protection)?;
        let sender = || -> Result<_> {
            Ok(Arc::new(Sender::new(Arc::clone(&exchange), local.max_blocks, &*self.random)?))
        };
        let ours = [sender()?, sender()?];
        let [volatile_writer, volatile_reader] = ours.clone();
        Ok(Pair {
            volatile_writer,
            volatile_reader,
            volatile: Arc::new(Receiver::of_exchange((*exchange).clone(), ours)),
            token,
            tags,
            receiver: Shared::default(),
            local,
        })
    }

    /// A writer of a local participant.
    pub fn register_local_writer(&self, participant: Handle, writer: Endpoint) -> Result<Handle> {
        let owner = self.registry.local_participant(participant)?;
        let aead = writer.aead.unwrap_or(owner.aead);
        let Endpoint { protection, payload, is_volatile, .. } = writer.checked();
        let (mut sender, mut payload_sender) = (None, None);
        if !is_volatile {
            sender = self.sender(aead, protection.mode, owner.max_blocks)?;
            payload_sender = self.sender(aead, payload, owner.max_blocks)?;
        }
        let writer = LocalWriter {
            participant,
            aead,
            protection,
            payload,
            sender,
            payload_sender,
            is_volatile,
        };
        Ok(self.registry.insert(Entity::LocalWriter(Arc::new(writer))))
    }

    /// A reader of a local participant.
    pub fn register_local_reader(&self, participant: Handle, reader: Endpoint) -> Result<Handle> {
        let owner = self.registry.local_participant(participant)?;
        let aead = reader.aead.unwrap_or(owner.aead);
        let Endpoint { protection, payload, is_volatile, .. } = reader.checked();
        let mode = if is_volatile { None } else { protection.mode };
        let sender = self.sender(aead, mode, owner.max_blocks)?;
        let reader = LocalReader { participant, aead, protection, payload, sender, is_volatile };
        Ok(self.registry.insert(Entity::LocalReader(Arc::new(reader))))
    }

    /// A remote reader that a local writer has matched.
    pub fn register_remote_reader(&self, local: Handle, participant: Handle) -> Result<Handle> {
        let writer = self.registry.local_writer(local)?;
        let participant = self.registry.remote_participant(participant)?;
        let reader = if writer.is_volatile {
            let pair = pair(&participant, writer.participant)?;
            RemoteReader {
                tokens: Vec::new(),
                sender: Some(Arc::clone(&pair.volatile_writer)),
                tags: None,
                receiver: Shared::new(Some(Arc::clone(&pair.volatile))),
                participant,
                local,
                writer,
            }
        } else {
            let (token, tags) = self.token(writer.sender.as_ref(), writer.protection)?;
            let payload = writer.payload_sender.as_ref().map(|sender| (*sender.master).clone());
            RemoteReader {
                tokens: token.into_iter().chain(payload).collect(),
                sender: writer.sender.clone(),
                tags,
                receiver: Shared::default(),
                participant,
                local,
                writer,
            }
        };
        Ok(self.registry.insert(Entity::RemoteReader(Arc::new(reader))))
    }

    /// A remote writer that a local reader has matched.
    pub fn register_remote_writer(&self, local: Handle, participant: Handle) -> Result<Handle> {
        let reader = self.registry.local_reader(local)?;
        let participant = self.registry.remote_participant(participant)?;
        if !reader.is_volatile {
            let (token, tags) = self.token(reader.sender.as_ref(), reader.protection)?;
            let sender = reader.sender.clone();
            let receivers = Shared::default();
            let writer =
                RemoteWriter { participant, local, reader, token, sender, tags, receivers };
            return Ok(self.registry.insert(Entity::RemoteWriter(Arc::new(writer))));
        }
        let pair = pair(&participant, reader.participant)?;
        let owner = reader.participant;
        let writer = RemoteWriter {
            participant: Arc::clone(&participant),
            local,
            reader,
            token: None,
            sender: Some(Arc::clone(&pair.volatile_reader)),
            tags: None,
            receivers: Shared::new(WriterKeys {
                submessages: Some(Arc::clone(&pair.volatile)),
                ..WriterKeys::default()
            }),
        };
        let remote = self.registry.insert(Entity::RemoteWriter(Arc::new(writer)));
        let relation = Relation { category: Category::Writer, participant: owner, local, remote };
        participant.relations.write().volatile.push(relation);
        Ok(remote)
    }

    /// Forgets a participant, and with it what it shared with others.
    pub fn unregister_participant(&self, handle: Handle) -> Result<()> {
        match self.registry.get(handle)? {
            Entity::LocalParticipant(_) => {
                for (_, remote) in self.registry.remote_participants() {
                    remote.pairs.write().remove(&handle);
                    let mut relations = remote.relations.write();
                    relations.volatile.retain(|relation| relation.participant != handle);
                    relations.specific.retain(|_, ([local, _], _)| *local != handle);
                }
            }
            Entity::RemoteParticipant(_) => {}
            _ => return Err(Error::Handle(handle)),
        }
        self.registry.remove(handle).map(drop)
    }

    /// Forgets a writer, local or remote.
    pub fn unregister_writer(&self, handle: Handle) -> Result<()> {
        match self.registry.get(handle)? {
            Entity::LocalWriter(_) => {}
            Entity::RemoteWriter(writer) => forget(&writer.participant, writer.local, handle),
            _ => return Err(Error::Handle(handle)),
        }
        self.registry.remove(handle).map(drop)
    }

    /// Forgets a reader, local or remote.
    pub fn unregister_reader(&self, handle: Handle) -> Result<()> {
        match self.registry.get(handle)? {
            Entity::LocalReader(_) => {}
            Entity::RemoteReader(reader) => forget(&reader.participant, reader.local, handle),
            _ => return Err(Error::Handle(handle)),
        }
        self.registry.remove(handle).map(drop)
    }

    fn sender(
        &self,
        aead: Aead,
        mode: Option<Mode>,
        max_blocks: u64,
    ) -> Result<Option<Arc<Sender>>> {
        let Some(mode) = mode else { return Ok(None) };
        let master = MasterKey::generate(Kind { aead, mode }, self.key_id(), &*self.random)?;
        Ok(Some(Arc::new(Sender::new(Arc::new(master), max_blocks, &*self.random)?)))
    }

    /// A sender's key as one receiver gets it, and what makes that receiver's tags.
    fn token(
        &self,
        sender: Option<&Arc<Sender>>,
        protection: Protection,
    ) -> Result<(Option<MasterKey>, Option<ReceiverTagger>)> {
        let Some(sender) = sender else { return Ok((None, None)) };
        if !protection.origin_authentication {
            return Ok((Some((*sender.master).clone()), None));
        }
        let token = sender.master.for_receiver(self.key_id(), &*self.random)?;
        Ok((Some(token.clone()), Some(ReceiverTagger::new(token))))
    }

    /// Never 0, which is the id of the key under which keys are exchanged, and says in tokens that
    /// there is no receiver-specific key.
    fn key_id(&self) -> KeyId {
        loop {
            let id = self.next_key_id.fetch_add(1, Ordering::Relaxed);
            if id != 0 {
                return id;
            }
        }
    }
}

impl Endpoint {
    /// Whatever a governance document says, keys are exchanged encrypted, and one receiver's key
    /// needs no receiver-specific tag (DDS Security 1.1, section 8.8.8.4).
    const fn checked(self) -> Self {
        if !self.is_volatile {
            return self;
        }
        Self { protection: Protection::new(true, true, false), payload: None, ..self }
    }
}

/// What a remote participant shares with a local one.
pub fn pair(remote: &RemoteParticipant, local: Handle) -> Result<Arc<Pair>> {
    remote.pairs.read().get(&local).cloned().ok_or(Error::Handle(local))
}

/// Removes what leads from a remote endpoint or participant to a local one.
pub fn forget(participant: &RemoteParticipant, local: Handle, remote: Handle) {
    let mut relations = participant.relations.write();
    relations.volatile.retain(|relation| relation.remote != remote);
    for related in relations.by_key.values_mut() {
        related.retain(|relation| relation.remote != remote);
    }
    relations.by_key.retain(|_, related| !related.is_empty());
    relations.specific.retain(|_, (owners, _)| *owners != [local, remote]);
}

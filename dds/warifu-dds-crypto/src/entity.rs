// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Participants, writers and readers, local and remote, by the handles that the core has of them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::algorithm::{Aead, Mode};
use crate::cipher::Tag;
use crate::error::{Error, Result};
use crate::keys::{KeyId, MasterKey};
use crate::protection::Protection;
use crate::session::{Receiver, Sender, Sessions, Ticket};

/// `DDS_Security_CryptoHandle`; 0 is none.
pub type Handle = i64;

/// Who we are in a domain.
pub struct LocalParticipant {
    /// Of its messages, and of its entities unless they choose another.
    pub aead: Aead,
    /// Of whole RTPS messages.
    pub protection: Protection,
    /// If they are protected.
    pub sender: Option<Arc<Sender>>,
    /// After how many blocks sessions of its entities are renewed.
    pub max_blocks: u64,
}

/// Whom we know. One for all local participants that know it.
pub struct RemoteParticipant {
    /// The authentication plugin's handle.
    pub identity: i64,
    /// What is shared with each local participant.
    pub pairs: Shared<HashMap<Handle, Arc<Pair>>>,
    /// Who is meant by the key ids of its messages.
    pub relations: Shared<Relations>,
}

/// What a local and a remote participant share.
pub struct Pair {
    /// The local one.
    pub local: Arc<LocalParticipant>,
    /// For what our BuiltinParticipantVolatileMessageSecureWriter sends.
    pub volatile_writer: Arc<Sender>,
    /// For what our BuiltinParticipantVolatileMessageSecureReader sends.
    pub volatile_reader: Arc<Sender>,
    /// For what theirs send.
    pub volatile: Arc<Receiver>,
    /// Our key for RTPS messages, as the remote one gets it.
    pub token: Option<MasterKey>,
    /// Our tags for the remote one.
    pub tags: Option<ReceiverTagger>,
    /// Their key for RTPS messages.
    pub receiver: Shared<Option<Arc<Receiver>>>,
}

/// Who is meant by a key id.
#[derive(Default)]
pub struct Relations {
    /// By the sender's key; several local readers may have matched one writer.
    pub by_key: HashMap<KeyId, Vec<Relation>>,
    /// Those of key id 0, under which keys are exchanged.
    pub volatile: Vec<Relation>,
    /// By the sender's key and the receiver's; with whom they belong to, local and remote.
    pub specific: HashMap<(KeyId, KeyId), ([Handle; 2], Arc<Receiver>)>,
}

/// Two endpoints that have matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// Whether the remote one writes or reads.
    pub category: Category,
    /// The local endpoint's participant.
    pub participant: Handle,
    /// The local endpoint.
    pub local: Handle,
    /// The remote one.
    pub remote: Handle,
}

/// `DDS_Security_SecureSubmessageCategory_t`, without INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// From a writer.
    Writer,
    /// From a reader.
    Reader,
}

/// A local writer.
pub struct LocalWriter {
    /// Its participant's handle.
    pub participant: Handle,
    /// Its cipher.
    pub aead: Aead,
    /// Of its submessages.
    pub protection: Protection,
    /// Of its samples.
    pub payload: Option<Mode>,
    /// If its submessages are protected.
    pub sender: Option<Arc<Sender>>,
    /// If its samples are.
    pub payload_sender: Option<Arc<Sender>>,
    /// BuiltinParticipantVolatileMessageSecureWriter, which carries keys.
    pub is_volatile: bool,
}

/// A local reader.
pub struct LocalReader {
    /// Its participant's handle.
    pub participant: Handle,
    /// Its cipher.
    pub aead: Aead,
    /// Of its submessages, and of those of writers that it matches.
    pub protection: Protection,
    /// Of the samples that it gets.
    pub payload: Option<Mode>,
    /// If its submessages are protected.
    pub sender: Option<Arc<Sender>>,
    /// BuiltinParticipantVolatileMessageSecureReader.
    pub is_volatile: bool,
}

/// A remote reader that has matched a local writer.
pub struct RemoteReader {
    /// Its participant.
    pub participant: Arc<RemoteParticipant>,
    /// The local writer's handle.
    pub local: Handle,
    /// The local writer.
    pub writer: Arc<LocalWriter>,
    /// The writer's keys as this reader gets them, the one for submessages first.
    pub tokens: Vec<MasterKey>,
    /// For submessages that it is to read.
    pub sender: Option<Arc<Sender>>,
    /// Our tags for it.
    pub tags: Option<ReceiverTagger>,
    /// Its key.
    pub receiver: Shared<Option<Arc<Receiver>>>,
}

/// A remote writer that has matched a local reader.
pub struct RemoteWriter {
    /// Its participant.
    pub participant: Arc<RemoteParticipant>,
    /// The local reader's handle.
    pub local: Handle,
    /// The local reader.
    pub reader: Arc<LocalReader>,
    /// The reader's key as this writer gets it.
    pub token: Option<MasterKey>,
    /// For submessages that it is to read.
    pub sender: Option<Arc<Sender>>,
    /// Our tags for it.
    pub tags: Option<ReceiverTagger>,
    /// Its keys.
    pub receivers: Shared<WriterKeys>,
}

/// Of a remote writer: what one opens is not taken from the other.
#[derive(Default)]
pub struct WriterKeys {
    /// For its submessages, if they are protected.
    pub submessages: Option<Arc<Receiver>>,
    /// For its samples, if they are.
    pub samples: Option<Arc<Receiver>>,
    /// Both are one key: Fast DDS has but one where both are signed, or both encrypted.
    pub is_shared: bool,
}

/// Makes the tags of one receiver.
pub struct ReceiverTagger {
    master: MasterKey,
    sessions: Sessions,
}

impl ReceiverTagger {
    /// With the receiver's key that is in `master`.
    pub const fn new(master: MasterKey) -> Self {
        Self { master, sessions: Sessions::new() }
    }

    /// The receiver's key id and its tag over the tag that all receivers check (DDS Security 1.1,
    /// section 9.5.3.3.4.1).
    pub fn tag(&self, ticket: &Ticket, common: &Tag) -> Result<(KeyId, Tag)> {
        let missing = || Error::Argument("a receiver-specific key");
        let id = self.master.receiver.as_ref().ok_or_else(missing)?.id;
        let session_id = ticket.session_id();
        let derive = || self.master.receiver_session(session_id).ok_or_else(missing)?;
        let session = self.sessions.find(session_id, derive)?;
        // A thread may be so late that its session is no longer remembered.
        let session = self.sessions.remember(&session).unwrap_or(session);
        let tag =
            session.cipher.sign(ticket.nonce(), common).ok_or(Error::TooLong(common.len()))?;
        Ok((id, tag))
    }
}

/// A value that many threads read and few change. A panic elsewhere leaves it as it was.
#[derive(Default)]
pub struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    /// With a first value.
    pub const fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// To read.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Anything that has a handle.
#[derive(Clone)]
pub enum Entity {
    /// See the type.
    LocalParticipant(Arc<LocalParticipant>),
    /// See the type.
    RemoteParticipant(Arc<RemoteParticipant>),
    /// See the type.
    LocalWriter(Arc<LocalWriter>),
    /// See the type.
    LocalReader(Arc<LocalReader>),
    /// See the type.
    RemoteWriter(Arc<RemoteWriter>),
    /// See the type.
    RemoteReader(Arc<RemoteReader>),
}

/// All entities. A handle is a place's number and how often it has been used, so that one that was
/// given back is not mistaken for the next.
#[derive(Default)]
pub struct Registry(Shared<Vec<Place>>);

#[derive(Default)]
struct Place {
    uses: u32,
    entity: Option<Entity>,
}

macro_rules! by_handle {
    ($($name:ident: $variant:ident;)*) => {
        $(
            /// The entity, if it is of this kind.
            pub fn $name(&self, handle: Handle) -> Result<Arc<$variant>> {
                let places = self.0.read();
                match entity(&places, handle) {
                    Some(Entity::$variant(found)) => Ok(Arc::clone(found)),
                    _ => Err(Error::Handle(handle)),
                }
            }
        )*
    };
}

impl Registry {
    /// The handle of a new entity.
    pub fn insert(&self, entity: Entity) -> Handle {
        let mut places = self.0.write();
        let free = places.iter().position(|place| place.entity.is_none());
        let index = free.unwrap_or_else(|| {
            places.push(Place::default());
            places.len() - 1
        });
        let place = &mut places[index];
        // 31 bits, so that a handle is positive.
        place.uses = place.uses.wrapping_add(1) & 0x7fff_ffff;
        place.entity = Some(entity);
        // More than 2^32 entities do not fit into memory.
        #[expect(clippy::cast_possible_wrap)]
        let low = (index + 1) as Handle;
        Handle::from(place.uses) << 32 | low
    }

    /// Takes it out.
    pub fn remove(&self, handle: Handle) -> Result<Entity> {
        let mut places = self.0.write();
        let index = index(&places, handle).ok_or(Error::Handle(handle))?;
        places[index].entity.take().ok_or(Error::Handle(handle))
    }

    /// What `read` makes of a local writer, without counting one more owner of it. No entity comes
    /// or goes meanwhile, and `read` must not ask for another.
    #[inline]
    pub fn with_local_writer<T>(
        &self,
        handle: Handle,
        read: impl FnOnce(&LocalWriter) -> Result<T>,
    ) -> Result<T> {
        let places = self.0.read();
        match entity(&places, handle) {
            Some(Entity::LocalWriter(found)) => read(found),
            _ => Err(Error::Handle(handle)),
        }
    }

    /// Any kind.
    pub fn get(&self, handle: Handle) -> Result<Entity> {
        entity(&self.0.read(), handle).cloned().ok_or(Error::Handle(handle))
    }

    /// All remote participants.
    pub fn remote_participants(&self) -> Vec<(Handle, Arc<RemoteParticipant>)> {
        let places = self.0.read();
        let handles = places.iter().enumerate().map(|(index, place)| {
            #[expect(clippy::cast_possible_wrap)]
            let low = (index + 1) as Handle;
            (Handle::from(place.uses) << 32 | low, &place.entity)
        });
        handles
            .filter_map(|(handle, entity)| match entity {
                Some(Entity::RemoteParticipant(found)) => Some((handle, Arc::clone(found))),
                _ => None,
            })
            .collect()
    }

    by_handle! {
        local_participant: LocalParticipant;
        remote_participant: RemoteParticipant;
        local_writer: LocalWriter;
        local_reader: LocalReader;
        remote_writer: RemoteWriter;
        remote_reader: RemoteReader;
    }
}

fn index(places: &[Place], handle: Handle) -> Option<usize> {
    let index = usize::try_from(handle & 0xffff_ffff).ok()?.checked_sub(1)?;
    (Handle::from(places.get(index)?.uses) == handle >> 32).then_some(index)
}

fn entity(places: &[Place], handle: Handle) -> Option<&Entity> {
    places[index(places, handle)?].entity.as_ref()
}

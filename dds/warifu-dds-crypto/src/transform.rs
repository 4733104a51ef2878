// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CryptoTransform: protects payloads, submessages and RTPS messages, and takes the protection off
//! (DDS Security 1.1, sections 8.5.1.9 and 9.5.3.3).

use std::sync::Arc;

use crate::algorithm::Mode;
use crate::cipher::Tag;
use crate::entity::{Handle, Relation, RemoteParticipant};
use crate::error::{Error, Result};
use crate::factory::{Factory, pair};
use crate::keys::KeyId;
use crate::protection::Protection;
use crate::session::{Receiver, Session, Ticket};
use crate::wire::{self, Form, Header, Protected, RTPS_HEADER_BYTES, Sink};

/// Makes the one buffer that a call allocates, of that capacity.
pub trait MakeSink<S>: FnOnce(usize) -> Result<S> {}

impl<S, F: FnOnce(usize) -> Result<S>> MakeSink<S> for F {}

impl Factory {
    /// A sample of a local writer.
    #[inline]
    pub fn encode_payload<S: Sink>(
        &self,
        writer: Handle,
        plain: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        self.registry.with_local_writer(writer, |writer| match &writer.payload_sender {
            Some(sender) => {
                let ticket = sender.ticket(plain.len())?;
                protect(Form::Payload, &ticket, [plain, &[]], NOBODY, sink)
            }
            None => copy(plain, sink),
        })
    }

    /// A sample of a remote writer for a local reader.
    pub fn decode_payload<S: Sink>(
        &self,
        reader: Handle,
        writer: Handle,
        encoded: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let writer = self.registry.remote_writer(writer)?;
        if writer.local != reader {
            return Err(Error::Handle(reader));
        }
        let protected = wire::payload(encoded)?;
        let (receiver, is_shared) = {
            let keys = writer.receivers.read();
            (by_key(keys.samples.as_ref(), &protected.header)?, keys.is_shared)
        };
        let expected = Protection { mode: writer.reader.payload, origin_authentication: false };
        let inside = if is_shared { Inside::SampleUnderSharedKey } else { Inside::Sample };
        unprotect(inside, &protected, &receiver, expected, &writer.participant, sink)
    }

    /// A submessage of a local writer, for all of `readers` at once.
    pub fn encode_writer_submessage<S: Sink>(
        &self,
        writer: Handle,
        readers: &[Handle],
        plain: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let writer = self.registry.local_writer(writer)?;
        let volatile;
        let sender = if writer.is_volatile {
            let reader = readers.first().ok_or(Error::Argument("the receiving reader"))?;
            volatile = self.registry.remote_reader(*reader)?;
            volatile.sender.as_ref()
        } else {
            writer.sender.as_ref()
        };
        let receivers = Receivers {
            handles: if writer.protection.origin_authentication { readers } else { &[] },
            tag: |reader, ticket: &_, common: &_| {
                let reader = self.registry.remote_reader(reader)?;
                reader.tags.as_ref().ok_or(NO_RECEIVER_KEY)?.tag(ticket, common)
            },
        };
        let ticket = sender.ok_or(NOT_PROTECTED)?.ticket(plain.len())?;
        protect(Form::Submessage, &ticket, [plain, &[]], receivers, sink)
    }

    /// A submessage of a local reader, for all of `writers`.
    pub fn encode_reader_submessage<S: Sink>(
        &self,
        reader: Handle,
        writers: &[Handle],
        plain: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let reader = self.registry.local_reader(reader)?;
        let volatile;
        let sender = if reader.is_volatile {
            let writer = writers.first().ok_or(Error::Argument("the receiving writer"))?;
            volatile = self.registry.remote_writer(*writer)?;
            volatile.sender.as_ref()
        } else {
            reader.sender.as_ref()
        };
        let receivers = Receivers {
            handles: if reader.protection.origin_authentication { writers } else { &[] },
            tag: |writer, ticket: &_, common: &_| {
                let writer = self.registry.remote_writer(writer)?;
                writer.tags.as_ref().ok_or(NO_RECEIVER_KEY)?.tag(ticket, common)
            },
        };
        let ticket = sender.ok_or(NOT_PROTECTED)?.ticket(plain.len())?;
        protect(Form::Submessage, &ticket, [plain, &[]], receivers, sink)
    }

    /// Whose submessage it is, and for whom.
    pub fn preprocess(&self, local: Handle, remote: Handle, encoded: &[u8]) -> Result<Relation> {
        let header = wire::submessage_header(encoded)?;
        let participant = self.registry.remote_participant(remote)?;
        let relations = participant.relations.read();
        let is_of = |relation: &&Relation| local == 0 || relation.participant == local;
        let found = match header.key_id {
            // Each local participant has a key of its own there.
            0 => relations.volatile.iter().find(is_of),
            id => {
                let related = relations.by_key.get(&id).ok_or(UNKNOWN_KEY)?;
                // One reader's decryption is enough for all of the process, and the core does not
                // always say for which of our participants a submessage is.
                related.iter().find(is_of).or(related.first())
            }
        };
        found.copied().ok_or(UNKNOWN_KEY)
    }

    /// A submessage of a remote writer for a local reader.
    pub fn decode_writer_submessage<S: Sink>(
        &self,
        reader: Handle,
        writer: Handle,
        encoded: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let writer = self.registry.remote_writer(writer)?;
        if writer.local != reader {
            return Err(Error::Handle(reader));
        }
        let protected = wire::submessage(encoded)?;
        let receiver = by_key(writer.receivers.read().submessages.as_ref(), &protected.header)?;
        let expected = writer.reader.protection;
        let sender = &writer.participant;
        unprotect(Inside::Submessage, &protected, &receiver, expected, sender, sink)
    }

    /// A submessage of a remote reader for a local writer.
    pub fn decode_reader_submessage<S: Sink>(
        &self,
        writer: Handle,
        reader: Handle,
        encoded: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let reader = self.registry.remote_reader(reader)?;
        if reader.local != writer {
            return Err(Error::Handle(writer));
        }
        let protected = wire::submessage(encoded)?;
        let receiver = by_key(reader.receiver.read().as_ref(), &protected.header)?;
        let expected = reader.writer.protection;
        let sender = &reader.participant;
        unprotect(Inside::Submessage, &protected, &receiver, expected, sender, sink)
    }

    /// An RTPS message of a local participant, for all of `receivers` at once.
    pub fn encode_message<S: Sink>(
        &self,
        local: Handle,
        receivers: &[Handle],
        plain: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let participant = self.registry.local_participant(local)?;
        let sender = participant.sender.as_ref().ok_or(NOT_PROTECTED)?;
        let (rtps, submessages) =
            plain.split_first_chunk().ok_or(Error::Malformed("it has no RTPS header"))?;
        let is_authenticated = participant.protection.origin_authentication;
        let receivers = Receivers {
            handles: if is_authenticated { receivers } else { &[] },
            tag: |receiver, ticket: &_, common: &_| {
                let pair = pair(&*self.registry.remote_participant(receiver)?, local)?;
                pair.tags.as_ref().ok_or(NO_RECEIVER_KEY)?.tag(ticket, common)
            },
        };
        let source = wire::info_source(rtps);
        let with_header = |capacity| {
            let mut out = sink(capacity)?;
            out.put(rtps);
            Ok(out)
        };
        let ticket = sender.ticket(source.len() + submessages.len())?;
        protect(Form::Message, &ticket, [&source, submessages], receivers, with_header)
    }

    /// An RTPS message of a remote participant for a local one.
    pub fn decode_message<S: Sink>(
        &self,
        local: Handle,
        remote: Handle,
        encoded: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let participant = self.registry.remote_participant(remote)?;
        let pair = pair(&participant, local)?;
        let (rtps, protected) = wire::message(encoded)?;
        // Cyclone asks for each of its participants that know the sender, until one says another
        // thing than this: of several in one process some may be of another cipher.
        let receiver = pair.receiver.read().clone();
        let receiver = receiver.ok_or(Error::NotForUs("it has no key of the sender's"))?;
        if receiver.master.id != protected.header.key_id {
            return Err(Error::NotForUs("it has another key of the sender's"));
        }
        let expected = pair.local.protection;
        unprotect(Inside::Message(rtps), &protected, &receiver, expected, &participant, sink)
    }
}

const NOT_PROTECTED: Error = Error::Argument("protection of the sender's messages");
const NO_RECEIVER_KEY: Error = Error::Argument("a receiver-specific key");
const UNKNOWN_KEY: Error = Error::UnknownKey;

fn copy<S: Sink>(plain: &[u8], sink: impl MakeSink<S>) -> Result<S> {
    let mut out = sink(plain.len())?;
    out.put(plain);
    Ok(out)
}

fn by_key(receiver: Option<&Arc<Receiver>>, header: &Header<'_>) -> Result<Arc<Receiver>> {
    let found = receiver.filter(|receiver| receiver.master.id == header.key_id);
    found.cloned().ok_or(UNKNOWN_KEY)
}

/// Those who get tags of their own, and what makes the tag of one.
struct Receivers<'a, F> {
    handles: &'a [Handle],
    tag: F,
}

type TagOf = fn(Handle, &Ticket, &Tag) -> Result<(KeyId, Tag)>;

const NOBODY: Receivers<'_, TagOf> =
    Receivers { handles: &[], tag: |_, _, _| Err(NO_RECEIVER_KEY) };

/// Signs or encrypts `parts` as one body, behind whatever the sink already holds.
#[inline(always)]
fn protect<S: Sink>(
    form: Form,
    ticket: &Ticket,
    parts: [&[u8]; 2],
    receivers: Receivers<'_, impl Fn(Handle, &Ticket, &Tag) -> Result<(KeyId, Tag)>>,
    sink: impl MakeSink<S>,
) -> Result<S> {
    let body = parts[0].len() + parts[1].len();
    let kind = ticket.kind;
    let mut out = sink(form.encoded_bytes(kind, body, receivers.handles.len()))?;
    form.begin(&mut out, kind, &ticket.header, body)?;
    let start = out.octets().len();
    for part in parts {
        if !part.is_empty() {
            out.put(part);
        }
    }
    let content = &mut out.octets()[start..];
    let tag = match kind.mode {
        Mode::Encrypt => ticket.cipher.seal(ticket.nonce(), &[], content),
        Mode::Sign => ticket.cipher.sign(ticket.nonce(), content),
    };
    let Some(tag) = tag else {
        content.fill(0);
        return Err(Error::TooLong(body));
    };
    form.end(&mut out, kind, body, &tag, receivers.handles.len())?;
    for receiver in receivers.handles {
        let (id, specific) = (receivers.tag)(*receiver, ticket, &tag)?;
        wire::put_receiver_tag(&mut out, id, &specific);
    }
    Ok(out)
}

/// What was protected, which decides what is made sure of when it is plain again.
#[derive(Clone, Copy)]
enum Inside<'a> {
    /// A sample's data.
    Sample,
    /// The same, under a key that opens submessages, too.
    SampleUnderSharedKey,
    /// A submessage.
    Submessage,
    /// What follows this header.
    Message(&'a [u8; RTPS_HEADER_BYTES]),
}

/// Gives what is authentic and new; of anything else nothing.
fn unprotect<S: Sink>(
    inside: Inside<'_>,
    protected: &Protected<'_>,
    receiver: &Receiver,
    expected: Protection,
    sender: &RemoteParticipant,
    sink: impl MakeSink<S>,
) -> Result<S> {
    let header = &protected.header;
    if header.kind != receiver.master.kind {
        return Err(Error::Protection("it names another cipher than its key's"));
    }
    match (expected.mode, header.kind.mode) {
        (Some(expected), found) if expected == found => {}
        (_, Mode::Encrypt) => {
            return Err(Error::Protection("it is encrypted, which is unexpected"));
        }
        (_, Mode::Sign) => return Err(Error::Protection("it is signed, which is unexpected")),
    }
    if expected.origin_authentication {
        // First of all: who has the sender's key, but is not the sender, must not get a session
        // remembered or a nonce taken for seen.
        check_receiver_tag(protected, sender)?;
    }
    let before: &[u8] = if let Inside::Message(rtps) = inside { rtps } else { &[] };
    let session = receiver.session(header.session_id())?;
    let cipher = &session.cipher;
    let mut out = match header.kind.mode {
        Mode::Sign => {
            cipher
                .verify(header.nonce, protected.body, protected.tag)
                .map_err(|_| Error::Forged("tag"))?;
            let mut out = sink(before.len() + protected.body.len())?;
            out.put(before);
            out.put(protected.body);
            out
        }
        Mode::Encrypt => {
            let mut out = sink(before.len() + protected.body.len())?;
            out.put(before);
            out.put(protected.body);
            let content = &mut out.octets()[before.len()..];
            if cipher.open(header.nonce, &[], content, protected.tag).is_err() {
                content.fill(0);
                return Err(Error::Forged("tag"));
            }
            out
        }
    };
    let content = &out.octets()[before.len()..];
    if let Err(refused) = accept(inside, receiver, &session, header.nonce, content) {
        out.octets().fill(0);
        return Err(refused);
    }
    Ok(out)
}

/// Whether an authentic content is what it should be, and has not been here before.
fn accept(
    inside: Inside<'_>,
    receiver: &Receiver,
    session: &Arc<Session>,
    nonce: &[u8],
    content: &[u8],
) -> Result<()> {
    let is_from_reader = match inside {
        Inside::Sample => false,
        // A representation begins with 0 (RTPS 2.2, section 10.2.1), and a submessage does not.
        Inside::SampleUnderSharedKey if content.first() == Some(&0) => false,
        Inside::SampleUnderSharedKey => {
            return Err(Error::Malformed("its content is no sample"));
        }
        Inside::Submessage => wire::check_content(content)?,
        Inside::Message(rtps) => {
            wire::check_sources(content, rtps)?;
            false
        }
    };
    let ours = receiver.exchange.iter().flat_map(|exchange| &exchange.ours);
    if ours.into_iter().any(|sender| sender.has_used(nonce)) {
        return Err(Error::Replayed);
    }
    let remembered = receiver.sessions_of(is_from_reader).remember(session);
    if matches!(inside, Inside::Sample | Inside::SampleUnderSharedKey) {
        // Fast DDS encrypts a sample once, and sends that again to readers that have missed it,
        // however late.
        return Ok(());
    }
    match remembered {
        Some(session) if session.is_new(nonce) => Ok(()),
        _ => Err(Error::Replayed),
    }
}

/// One of the receiver-specific tags has to be made with a key that the sender gave to us alone.
fn check_receiver_tag(protected: &Protected<'_>, sender: &RemoteParticipant) -> Result<()> {
    let header = &protected.header;
    let known = {
        let relations = sender.relations.read();
        protected.receivers.iter().find_map(|(id, tag)| {
            let (_, receiver) = relations.specific.get(&(header.key_id, id))?;
            Some((Arc::clone(receiver), tag))
        })
    };
    let (receiver, tag) = known.ok_or(Error::NotForUs("it has no tag for it"))?;
    let session_id = header.session_id();
    let derive = || receiver.master.receiver_session(session_id).ok_or(UNKNOWN_KEY)?;
    let session = receiver.receiver_sessions.find(session_id, derive)?;
    session
        .cipher
        .verify(header.nonce, protected.tag, tag)
        .map_err(|_| Error::Forged("receiver-specific tag"))?;
    // For its cipher alone; whether it is too old the session of the message says.
    let _ = receiver.receiver_sessions.remember(&session);
    Ok(())
}

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
use crate::session::{Receiver, Sender, Ticket};
use crate::wire::{self, Form, Header, Protected, RTPS_HEADER_BYTES, Sink};

/// Makes the one buffer that a call allocates, of that capacity.
pub trait MakeSink<S>: FnOnce(usize) -> Result<S> {}

impl<S, F: FnOnce(usize) -> Result<S>> MakeSink<S> for F {}

impl Factory {
    /// A sample of a local writer.
    pub fn encode_payload<S: Sink>(
        &self,
        writer: Handle,
        plain: &[u8],
        sink: impl MakeSink<S>,
    ) -> Result<S> {
        let writer = self.registry.local_writer(writer)?;
        match &writer.payload_sender {
            Some(sender) => protect(Form::Payload, sender, [plain, &[]], NOBODY, sink),
            None => copy(plain, sink),
        }
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
        let receiver = by_key(&writer.receivers.read(), &protected.header)?;
        let expected = Protection { mode: writer.reader.payload, origin_authentication: false };
        // Not checked for replays: Fast DDS encrypts a sample once, and sends that again to readers
        // that have missed it.
        unprotect(&protected, &receiver, expected, &writer.participant, &[], false, sink)
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
        protect(Form::Submessage, sender.ok_or(NOT_PROTECTED)?, [plain, &[]], receivers, sink)
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
        protect(Form::Submessage, sender.ok_or(NOT_PROTECTED)?, [plain, &[]], receivers, sink)
    }

    /// Whose submessage it is, and for whom.
    pub fn preprocess(&self, local: Handle, remote: Handle, encoded: &[u8]) -> Result<Relation> {
        let header = wire::submessage_header(encoded)?;
        let participant = self.registry.remote_participant(remote)?;
        let relations = participant.relations.read();
        let related = match header.key_id {
            0 => &relations.volatile,
            id => relations.by_key.get(&id).ok_or(UNKNOWN_KEY)?,
        };
        let ours = related.iter().find(|relation| local == 0 || relation.participant == local);
        // The core does not always say for which of our participants a submessage is.
        ours.or(related.first()).copied().ok_or(UNKNOWN_KEY)
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
        let receiver = by_key(&writer.receivers.read(), &protected.header)?;
        let expected = writer.reader.protection;
        unprotect(&protected, &receiver, expected, &writer.participant, &[], true, sink)
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
        let receiver = by_key(reader.receiver.read().as_slice(), &protected.header)?;
        let expected = reader.writer.protection;
        unprotect(&protected, &receiver, expected, &reader.participant, &[], true, sink)
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
        protect(Form::Message, sender, [&source, submessages], receivers, with_header)
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
        let receiver = pair.receiver.read().clone().ok_or(UNKNOWN_KEY)?;
        if receiver.master.id != protected.header.key_id {
            return Err(UNKNOWN_KEY);
        }
        let expected = pair.local.protection;
        let mut out = unprotect(&protected, &receiver, expected, &participant, rtps, true, sink)?;
        if !wire::begins_with_source(&out.octets()[RTPS_HEADER_BYTES..], rtps) {
            out.octets().fill(0);
            return Err(Error::Malformed("it begins with no INFO_SRC of its sender"));
        }
        Ok(out)
    }
}

const NOT_PROTECTED: Error = Error::Argument("protection of the sender's messages");
const NO_RECEIVER_KEY: Error = Error::Argument("a receiver-specific key");
const UNKNOWN_KEY: Error = Error::Protection("its key id is unknown");

fn copy<S: Sink>(plain: &[u8], sink: impl MakeSink<S>) -> Result<S> {
    let mut out = sink(plain.len())?;
    out.put(plain);
    Ok(out)
}

fn by_key(receivers: &[Arc<Receiver>], header: &Header<'_>) -> Result<Arc<Receiver>> {
    let found = receivers.iter().find(|receiver| receiver.master.id == header.key_id);
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
fn protect<S: Sink>(
    form: Form,
    sender: &Sender,
    parts: [&[u8]; 2],
    receivers: Receivers<'_, impl Fn(Handle, &Ticket, &Tag) -> Result<(KeyId, Tag)>>,
    sink: impl MakeSink<S>,
) -> Result<S> {
    let body = parts[0].len() + parts[1].len();
    let kind = sender.master.kind;
    let mut out = sink(form.encoded_bytes(kind, body, receivers.handles.len()))?;
    let ticket = sender.ticket(body)?;
    let header = Header { kind, key_id: sender.master.id, nonce: ticket.nonce() };
    form.begin(&mut out, &header, body)?;
    let start = out.octets().len();
    out.put(parts[0]);
    out.put(parts[1]);
    let content = &mut out.octets()[start..];
    let tag = match kind.mode {
        Mode::Encrypt => ticket.cipher.seal(header.nonce, &[], content),
        Mode::Sign => ticket.cipher.sign(header.nonce, content),
    };
    let Some(tag) = tag else {
        content.fill(0);
        return Err(Error::TooLong(body));
    };
    form.end(&mut out, &header, body, &tag, receivers.handles.len())?;
    for receiver in receivers.handles {
        let (id, specific) = (receivers.tag)(*receiver, &ticket, &tag)?;
        wire::put_receiver_tag(&mut out, id, &specific);
    }
    Ok(out)
}

/// Gives what is authentic, behind `before`; of anything else nothing.
fn unprotect<S: Sink>(
    protected: &Protected<'_>,
    receiver: &Receiver,
    expected: Protection,
    sender: &RemoteParticipant,
    before: &[u8],
    only_once: bool,
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
        check_receiver_tag(protected, sender)?;
    }
    let session_id = header.session_id();
    let derive = || receiver.master.session(session_id);
    let session = receiver.sessions.find(session_id, derive)?;
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
    let session = receiver.sessions.remember(session);
    if only_once && !session.is_new(header.nonce) {
        out.octets().fill(0);
        return Err(Error::Replayed);
    }
    Ok(out)
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
    let (receiver, tag) = known.ok_or(Error::Protection("it has no tag for this receiver"))?;
    let session_id = header.session_id();
    let derive = || receiver.master.receiver_session(session_id).ok_or(UNKNOWN_KEY)?;
    let session = receiver.receiver_sessions.find(session_id, derive)?;
    session
        .cipher
        .verify(header.nonce, protected.tag, tag)
        .map_err(|_| Error::Forged("receiver-specific tag"))?;
    receiver.receiver_sessions.remember(session);
    Ok(())
}

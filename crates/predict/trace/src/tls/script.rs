// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two programs written side by side, in the order in which a connection without delay would
//! run them. The writing knows how OpenSSL buffers: it is what makes records into writes.

use warifu_model::{
    Direction, HandshakeMessage, KeyStoreCall, Mark, Operation, Role, SystemCall, Tcp, Tls,
    TlsVersion,
};

use crate::tls::records::{self, HEADER, Protection};
use crate::trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

/// The buffer that OpenSSL puts before the socket during a handshake: `BIO_f_buffer` with its
/// default size (crypto/bio/bf_buff.c, OpenSSL 3.0).
const BUFFER: u32 = 4_096;

/// A TLS connection has one TCP connection.
const CHANNEL: ChannelId = ChannelId(0);

/// The trace while it is being written. Message numbers count per sender until `finish`.
pub(crate) struct Script<'a> {
    tls: &'a Tls,
    client: Side,
    server: Side,
}

struct Side {
    role: Role,
    steps: Vec<Step>,
    messages: Vec<Message>,
    /// Whether the buffer is there; it goes when the handshake is over.
    buffered: bool,
    /// The first message that has not been written, and what is in the buffer.
    unwritten: usize,
    pending: Bytes,
    /// What was written and the peer has not taken.
    outstanding: Vec<Sent>,
    /// Its close_notify.
    closing: Option<usize>,
}

/// A message with the pieces that carry it.
struct Sent {
    message: HandshakeMessage,
    content: Bytes,
    first: usize,
    count: usize,
}

impl<'a> Script<'a> {
    pub(crate) fn new(tls: &'a Tls) -> Self {
        Script { tls, client: Side::new(Role::Client), server: Side::new(Role::Server) }
    }

    /// The TCP connection, up to the point where both programs go on.
    pub(crate) fn connect(&mut self) {
        self.mark(Mark::Start);
        self.system(Role::Client, SystemCall::Connect, 0);
        self.client.steps.push(Step::Open { channel: CHANNEL });
        self.mark(Mark::Connected);
        self.server.steps.push(Step::Accept { channel: CHANNEL });
        self.system(Role::Server, SystemCall::Accept, 0);
    }

    /// Makes a handshake message.
    pub(crate) fn make(
        &mut self,
        from: Role,
        message: HandshakeMessage,
        content: Bytes,
        protection: Protection,
    ) {
        self.compute(Operation::Tls(from, Direction::Send, message), content);
        self.put(from, message, content, protection);
    }

    /// Makes nothing: the message was made beforehand.
    pub(crate) fn put(
        &mut self,
        from: Role,
        message: HandshakeMessage,
        content: Bytes,
        protection: Protection,
    ) {
        let label = match protection {
            Protection::Plain => message.name().to_owned(),
            Protection::Aead => format!("{{{}}}", message.name()),
        };
        self.put_labelled(from, message, content, protection, &label);
    }

    /// Application data under a label of its own; `made` now or beforehand.
    pub(crate) fn application(&mut self, from: Role, content: u32, label: &str, made: bool) {
        let content = Bytes::exactly(content);
        if made {
            let message = HandshakeMessage::ApplicationData;
            self.compute(Operation::Tls(from, Direction::Send, message), content);
        }
        let message = HandshakeMessage::ApplicationData;
        self.put_labelled(from, message, content, Protection::Aead, label);
    }

    /// The server's own signature.
    pub(crate) fn sign_server(&mut self) {
        self.compute(Operation::Sign(Role::Server), Bytes::exactly(0));
    }

    /// The client's signature, by its key store.
    pub(crate) fn sign_client(&mut self, session_open: bool) {
        let calls = match session_open {
            true => &[KeyStoreCall::SignInit, KeyStoreCall::Sign][..],
            false => &KeyStoreCall::ALL[..],
        };
        for &call in calls {
            self.client.steps.push(Step::KeyStore { call, resource: Resource::ClientLoop });
        }
    }

    /// The server's own work on a request's body.
    pub(crate) fn take_request_body(&mut self, body: u32) {
        self.system(Role::Server, SystemCall::HttpReceive, body);
    }

    /// The server's own work on a request.
    pub(crate) fn respond(&mut self, body: u32) {
        self.system(Role::Server, SystemCall::HttpRespond, body);
    }

    /// Ends the connection at one end: close_notify (RFC 8446 section 6.1, RFC 5246 section 7.2.1),
    /// then the carrier's own end.
    pub(crate) fn close(&mut self, from: Role) {
        let overhead = records::overhead(self.tls, Protection::Aead);
        let side = self.side(from);
        side.put_record(
            "{Alert close_notify}".into(),
            Bytes::exactly(records::ALERT + overhead),
            overhead,
        );
        if side.unwritten < side.messages.len() {
            side.write();
        }
        side.closing = side.messages.len().checked_sub(1);
        side.steps.push(Step::Close { channel: CHANNEL });
    }

    /// Takes the peer's close_notify, if it has written one.
    pub(crate) fn take_close(&mut self, to: Role) {
        if let Some(index) = self.peer(to).closing {
            let message = MessageId(index as u32);
            self.side(to).steps.push(Step::Receive { message });
        }
    }

    /// Writes what is in the buffer.
    pub(crate) fn flush(&mut self, from: Role) {
        let side = self.side(from);
        if side.unwritten < side.messages.len() {
            side.write();
        }
    }

    /// From now on each record is written at once.
    pub(crate) fn unbuffer(&mut self, from: Role) {
        self.flush(from);
        self.side(from).buffered = false;
    }

    /// Takes and processes all that the peer has written.
    pub(crate) fn deliver(&mut self, to: Role) {
        self.take(to, usize::MAX);
    }

    /// Takes and processes what the peer has written up to the next application data.
    pub(crate) fn take_handshake(&mut self, to: Role) {
        let handshake = |sent: &&Sent| sent.message != HandshakeMessage::ApplicationData;
        let count = self.peer(to).outstanding.iter().take_while(handshake).count();
        self.take(to, count);
    }

    /// Takes and processes the next messages that the peer has written, `most` at most.
    pub(crate) fn take(&mut self, to: Role, most: usize) {
        let peer = self.peer(to);
        // What is still in the peer's buffer has not left.
        let written = peer.outstanding.iter().take_while(|s| s.first + s.count <= peer.unwritten);
        let count = written.count().min(most);
        let taken: Vec<Sent> = peer.outstanding.drain(..count).collect();
        let tls13 = self.tls.version == TlsVersion::Tls13;
        let side = self.side(to);
        for sent in taken {
            for index in sent.first..sent.first + sent.count {
                side.steps.push(Step::Receive { message: MessageId(index as u32) });
            }
            // TLS 1.3 drops a ChangeCipherSpec unread (RFC 8446 section 5).
            if !(tls13 && sent.message == HandshakeMessage::ChangeCipherSpec) {
                side.compute(Operation::Tls(to, Direction::Receive, sent.message), sent.content);
            }
        }
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        self.client.steps.push(Step::Mark(mark));
    }

    /// The trace over a TCP connection, with the server's messages after the client's.
    pub(crate) fn finish(self, tcp: &Tcp) -> Trace {
        let offset = self.client.messages.len() as u32;
        let shifted = |steps: Vec<Step>, sends: u32, receives: u32| -> Vec<Step> {
            let shift = |step| match step {
                Step::Send { first, count, channel } => {
                    Step::Send { first: MessageId(first.0 + sends), count, channel }
                }
                Step::Receive { message } => {
                    Step::Receive { message: MessageId(message.0 + receives) }
                }
                other => other,
            };
            steps.into_iter().map(shift).collect()
        };
        let mut messages = self.client.messages;
        messages.extend(self.server.messages);
        let ends = [Party::CLIENT, Party::SERVER];
        Trace {
            channels: vec![Channel { carrier: Carrier::Tcp(tcp.clone()), ends }],
            messages,
            programs: vec![
                Program { party: Party::CLIENT, steps: shifted(self.client.steps, 0, offset) },
                Program { party: Party::SERVER, steps: shifted(self.server.steps, offset, 0) },
            ],
        }
    }

    fn put_labelled(
        &mut self,
        from: Role,
        message: HandshakeMessage,
        content: Bytes,
        protection: Protection,
        label: &str,
    ) {
        let overhead = records::overhead(self.tls, protection);
        let fragments = records::fragments(content);
        let side = self.side(from);
        let first = side.messages.len();
        let last = fragments.len();
        for (index, fragment) in fragments.into_iter().enumerate() {
            let label = match last {
                1 => label.to_owned(),
                _ => format!("{label} ({} of {last})", index + 1),
            };
            side.put_record(label, fragment.plus(overhead), overhead);
        }
        let count = side.messages.len() - first;
        side.outstanding.push(Sent { message, content, first, count });
    }

    fn compute(&mut self, operation: Operation, content: Bytes) {
        self.side(operation.role()).compute(operation, content);
    }

    fn system(&mut self, role: Role, call: SystemCall, bytes: u32) {
        self.compute(Operation::System(role, call), Bytes::exactly(bytes));
    }

    fn peer(&mut self, of: Role) -> &mut Side {
        match of {
            Role::Client => &mut self.server,
            Role::Server => &mut self.client,
        }
    }

    fn side(&mut self, role: Role) -> &mut Side {
        match role {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }
}

impl Side {
    fn new(role: Role) -> Self {
        Side {
            role,
            steps: Vec::new(),
            messages: Vec::new(),
            buffered: true,
            unwritten: 0,
            pending: Bytes::default(),
            outstanding: Vec::new(),
            closing: None,
        }
    }

    /// One record into the buffer, as `buffer_write` does it: what does not fit fills the
    /// buffer, which is written; a rest as large as the buffer is written at once. Where a
    /// record is cut, each piece is a message, and the pieces together are the record.
    fn put_record(&mut self, label: String, bytes: Bytes, overhead: u32) {
        if !self.buffered {
            self.push(label, bytes, overhead);
            self.write();
            return;
        }
        let room = BUFFER - self.pending.fixed.min(BUFFER);
        if bytes.fixed <= room {
            self.push(label, bytes, overhead);
            return;
        }
        if self.pending.fixed == 0 {
            self.push(label, bytes, overhead);
            self.write();
            return;
        }
        // The header is in the first piece; the tag, and what varies, in the second.
        let rest = Bytes { fixed: bytes.fixed - room, ..bytes };
        let rest_overhead = (overhead - room.min(HEADER)).min(rest.fixed);
        if room > 0 {
            let begun = format!("{label} (begun)");
            self.push(begun, Bytes::exactly(room), overhead - rest_overhead);
        }
        self.write();
        let at_once = rest.fixed >= BUFFER;
        let label = if room > 0 { format!("{label} (rest)") } else { label };
        self.push(label, rest, rest_overhead);
        if at_once {
            self.write();
        }
    }

    fn push(&mut self, label: String, bytes: Bytes, overhead: u32) {
        self.messages.push(Message {
            from: Party::first(self.role),
            channel: CHANNEL,
            label,
            bytes,
            overhead,
        });
        self.pending = self.pending + bytes;
    }

    fn write(&mut self) {
        let first = self.unwritten;
        let count = self.messages.len() - first;
        self.compute(Operation::System(self.role, SystemCall::Write), self.pending);
        self.steps.push(Step::Send {
            first: MessageId(first as u32),
            count: count as u32,
            channel: CHANNEL,
        });
        self.unwritten = self.messages.len();
        self.pending = Bytes::default();
    }

    fn compute(&mut self, operation: Operation, content: Bytes) {
        let resource = match self.role {
            Role::Client => Resource::ClientLoop,
            Role::Server => Resource::ServerWorker,
        };
        self.steps.push(Step::Compute { operation, bytes: content.fixed, resource });
    }
}

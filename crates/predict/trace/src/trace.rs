// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace: one program per party; programs meet only at messages.

use std::iter::Sum;
use std::ops::Add;

use warifu_model::{Coap, KeyStoreCall, Mark, Nanos, Operation, Role, Tcp};

/// What happens on one connection, without time: one program per party, which meet only at
/// messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What takes messages across, by [`ChannelId`].
    pub channels: Vec<Channel>,
    /// Everything that is sent. Per channel and sender, the order is that in which it is sent.
    pub messages: Vec<Message>,
    /// One program per party, the device's first.
    pub programs: Vec<Program>,
}

/// A party of a trace: its role, and which one of that role it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Party {
    /// Whose costs it has.
    pub role: Role,
    /// Counts the parties of a role from 0.
    pub index: u32,
}

/// The index of a channel in [`Trace::channels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// One connection of a carrier between two parties.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// How messages travel.
    pub carrier: Carrier,
    /// Who opens it, and who accepts.
    pub ends: [Party; 2],
}

/// The index of a message in [`Trace::messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

/// A unit that its receiver can process once its last byte is there: a TLS record, a CoAP message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who sends it.
    pub from: Party,
    /// On which channel.
    pub channel: ChannelId,
    /// What it is, for people: `ServerHello`, `{EncryptedExtensions}`, `[GET /]`.
    pub label: String,
    /// Bytes handed to the carrier.
    pub bytes: Bytes,
    /// How many of them the layer below the content adds: of a TLS record its header, explicit
    /// nonce, inner type and tag.
    pub overhead: u32,
}

/// A number of bytes, known but for the length of ECDSA signatures and the padding of tickets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// The number with every ECDSA signature at its shortest usual DER length, 70 bytes, and
    /// every ticket at its shorter length.
    pub fixed: u32,
    /// How many DER-coded ECDSA P-256 signatures are inside. Each holds two integers, uniform
    /// below the group's order (SEC 1 section 4.1.3). An integer is 33 bytes with probability
    /// 1/2, namely when its top bit is set (X.690 section 8.3), else 32: each adds one byte
    /// independently with probability 1/2. (It is 31 bytes or fewer with probability 2^-9.)
    pub ecdsa_signatures: u8,
    /// How many session tickets are inside whose length depends on chance: OpenSSL pads a
    /// ticket to whole AES blocks, and the random ticket_age_add in it takes one byte more
    /// with probability 1/2 (top bit set, X.690 section 8.3). Where that crosses a block's
    /// edge, the ticket is 16 bytes longer. (Nine leading zeros, probability 2^-9, can make a
    /// ticket a block shorter at another edge.)
    pub uncertain_tickets: u8,
}

/// One party's program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Whose it is.
    pub party: Party,
    /// Its steps, one after the other.
    pub steps: Vec<Step>,
}

/// One step of a program. A step that takes time names the resource it occupies.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Opens a channel; goes on when it is established.
    Open {
        /// Which.
        channel: ChannelId,
    },
    /// Goes on when a channel is open at this end.
    Accept {
        /// Which.
        channel: ChannelId,
    },
    /// Takes the party's processor.
    Compute {
        /// What is done, the key of its cost in a device profile.
        operation: Operation,
        /// How many bytes it is done to, for costs with a part per byte; 0 where only the
        /// operation counts.
        bytes: u32,
        /// Occupied meanwhile.
        resource: Resource,
    },
    /// Calls the party's key store. The caller's own resource stays occupied while it waits.
    KeyStore {
        /// The call.
        call: KeyStoreCall,
        /// The caller's resource; the key store itself is `Resource::Card`.
        resource: Resource,
    },
    /// Hands messages to a channel in one write.
    Send {
        /// The first message.
        first: MessageId,
        /// How many follow one another.
        count: u32,
        /// Which.
        channel: ChannelId,
    },
    /// Goes on when the whole of a message has arrived.
    Receive {
        /// The message.
        message: MessageId,
    },
    /// Closes a channel's sending direction: TCP's FIN follows what was written.
    Close {
        /// Which.
        channel: ChannelId,
    },
    /// Waits deliberately.
    Wait {
        /// How long.
        duration: Nanos,
    },
    /// The connection counts as failed if the program has not reached its last mark by then.
    Deadline {
        /// Counted from this step.
        duration: Nanos,
    },
    /// A point that metrics are taken between.
    Mark(Mark),
}

/// What takes messages across, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// TCP (RFC 9293): a byte stream; messages arrive in order, each once.
    Tcp(Tcp),
    /// UDP (RFC 768): each message is a datagram, which may be lost.
    Udp,
    /// CoAP's confirmable messages over UDP (RFC 7252 section 4.2): a request is sent again until
    /// its answer, which acknowledges it, is there.
    CoapConfirmable(Coap),
}

/// Something with a capacity that steps occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Resource {
    /// `client.loop`: the device's event loop.
    ClientLoop,
    /// `server.worker`: one of the server's workers.
    ServerWorker,
    /// `card`: the key store; serves one call at a time.
    Card,
}

impl Bytes {
    /// A known number.
    pub const fn exactly(fixed: u32) -> Bytes {
        Bytes { fixed, ecdsa_signatures: 0, uncertain_tickets: 0 }
    }

    /// The largest number possible.
    pub const fn most(self) -> u32 {
        self.fixed + 2 * self.ecdsa_signatures as u32 + 16 * self.uncertain_tickets as u32
    }

    /// The same and a known number more.
    pub const fn plus(self, more: u32) -> Bytes {
        Bytes { fixed: self.fixed + more, ..self }
    }
}

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, other: Bytes) -> Bytes {
        Bytes {
            fixed: self.fixed + other.fixed,
            ecdsa_signatures: self.ecdsa_signatures + other.ecdsa_signatures,
            uncertain_tickets: self.uncertain_tickets + other.uncertain_tickets,
        }
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(items: I) -> Bytes {
        items.fold(Bytes::default(), Add::add)
    }
}

impl Party {
    /// The device.
    pub const CLIENT: Party = Party { role: Role::Client, index: 0 };
    /// The server that it speaks with.
    pub const SERVER: Party = Party { role: Role::Server, index: 0 };

    /// The first party of a role.
    pub const fn first(role: Role) -> Party {
        Party { role, index: 0 }
    }

    /// `client`, `server`; beyond the first of a role with its number: `server 1`.
    pub fn name(self) -> String {
        match self.index {
            0 => self.role.name().into(),
            index => format!("{} {index}", self.role.name()),
        }
    }
}

impl Trace {
    /// A message by its index; `None` for an index of another trace.
    pub fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(id.0 as usize)
    }

    /// The program of a party; empty for a party without one.
    pub fn steps(&self, party: Party) -> &[Step] {
        self.programs.iter().find(|program| program.party == party).map_or(&[], |p| &p.steps)
    }

    /// All bytes that a party hands to its channels.
    pub fn bytes_from(&self, party: Party) -> Bytes {
        self.messages.iter().filter(|m| m.from == party).map(|m| m.bytes).sum()
    }
}

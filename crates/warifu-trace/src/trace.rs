// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace: one program per party; programs meet only at messages.

use warifu_model::{KeyStoreCall, Nanos, Operation, Role};

/// What happens on one connection, without time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Everything that is sent, in the order of the programs' `Send` steps: first all of the
    /// client's messages, then all of the server's. Per sender, the order is the byte stream's.
    pub messages: Vec<Message>,
    /// One program per party, at most one for each role.
    pub programs: Vec<Program>,
}

/// The index of a message in [`Trace::messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u16);

/// A unit that its receiver can process once its last byte is there: a TLS record.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who sends it.
    pub from: Party,
    /// What it is, for people: `ServerHello`, `{EncryptedExtensions}`, `[GET /]`.
    pub label: String,
    /// Bytes handed to the carrier.
    pub bytes: Bytes,
}

/// A number of bytes, known but for the length of ECDSA signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The number with every ECDSA signature at its shortest usual DER length, 70 bytes.
    pub fixed: u32,
    /// How many DER-coded ECDSA P-256 signatures are inside; each adds one byte for each of its
    /// two integers whose top bit is set (SEC 1 appendix C.8; X.690 section 8.3), independently
    /// with probability 1/2.
    pub ecdsa_signatures: u8,
}

/// A party; as yet the two ends of one connection.
pub type Party = Role;

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
    /// Opens the carrier's connection; goes on when it is established.
    Open {
        /// The carrier.
        carrier: Carrier,
    },
    /// Goes on when the carrier's connection is established at this end.
    Accept {
        /// The carrier.
        carrier: Carrier,
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
    /// Hands messages to the carrier in one write.
    Send {
        /// The first message.
        first: MessageId,
        /// How many follow one another.
        count: u16,
        /// The carrier.
        carrier: Carrier,
    },
    /// Goes on when the whole of a message has arrived.
    Receive {
        /// The message.
        message: MessageId,
    },
    /// Waits deliberately.
    Wait {
        /// How long.
        duration: Nanos,
    },
    /// The connection counts as failed if it has not reached its last mark by then.
    Deadline {
        /// Counted from the program's start.
        duration: Nanos,
    },
    /// A point that metrics are taken between.
    Mark(Mark),
}

/// Points on the client's way that metrics are taken between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mark {
    /// Just before connect().
    Start,
    /// connect() has completed and the program knows it.
    Connected,
    /// The TLS library reports the handshake as complete.
    HandshakeDone,
    /// The first byte of the HTTP response has been decrypted.
    FirstResponse,
}

/// What takes a message across.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// TCP (RFC 9293).
    Tcp,
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
        Bytes { fixed, ecdsa_signatures: 0 }
    }

    /// The largest number possible.
    pub const fn most(self) -> u32 {
        self.fixed + 2 * self.ecdsa_signatures as u32
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection in motion: two sockets, two programs, and what was written.

use crate::case_model::CaseModel;
use crate::outcome::ConnectionOutcome;
use crate::packet::Packet;
use crate::party::{Party, Spent, Written};
use crate::running::UNWRITTEN;
use crate::tcp::{Socket, Traffic};

/// One connection in motion. Pairs hold the client's first.
#[derive(Debug)]
pub(crate) struct Connection {
    pub sockets: [Socket; 2],
    pub parties: [Party; 2],
    pub traffic: Traffic,
    /// Of each message: its length, the end of its bytes in its stream (`UNWRITTEN` before it
    /// is written), and the write that it was part of.
    pub sizes: Vec<u32>,
    pub ends: Vec<u32>,
    pub write_of: Vec<u16>,
    pub writes: Vec<Written>,
    /// The SYN, its arrival, and the connection at the client, as the other end must know them.
    pub syn: Option<Written>,
    pub request: Option<Written>,
    pub opened: Option<Written>,
    /// The client's account just before connect().
    pub start: Spent,
    /// Bytes written so far by each end, and read by the client.
    pub written: [u32; 2],
    pub read: u32,
    pub deadline: u64,
    pub finished: bool,
    pub outcome: ConnectionOutcome,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            sockets: [Socket::new(), Socket::new()],
            parties: [Party::new(), Party::new()],
            traffic: Traffic::default(),
            sizes: Vec::new(),
            ends: Vec::new(),
            write_of: Vec::new(),
            writes: Vec::with_capacity(8),
            syn: None,
            request: None,
            opened: None,
            start: Spent::default(),
            written: [0; 2],
            read: 0,
            deadline: u64::MAX,
            finished: false,
            outcome: ConnectionOutcome::default(),
        }
    }

    /// Begins a trial; memory is kept.
    pub(crate) fn reset(&mut self, model: &CaseModel, sizes: &[u32]) {
        for socket in &mut self.sockets {
            socket.reset(&model.settings);
        }
        self.parties = [Party::new(), Party::new()];
        self.traffic = Traffic::default();
        self.sizes.clear();
        self.sizes.extend_from_slice(sizes);
        self.ends.clear();
        self.ends.resize(sizes.len(), UNWRITTEN);
        self.write_of.clear();
        self.write_of.resize(sizes.len(), 0);
        self.writes.clear();
        self.syn = None;
        self.request = None;
        self.opened = None;
        self.start = Spent::default();
        self.written = [0; 2];
        self.read = 0;
        self.deadline = u64::MAX;
        self.finished = false;
        self.outcome = ConnectionOutcome::default();
    }

    /// The SYN has come to the server.
    pub(crate) fn note_request(&mut self, packet: &Packet) {
        self.request =
            self.syn.map(|syn| Written { time: packet.arrival, spent: syn.arrived(packet, true) });
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A party: one program being run, and where its time went.

use warifu_model::{Role, Stage};

use crate::packet::{Packet, Transit};

/// Time by stage; the sum is the time since the start.
pub(crate) type Spent = [u64; Stage::ALL.len()];

/// What a party waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For its own time to come: its next step acts on the world.
    Time,
    /// For the end of a pause, in which others may use its resource.
    Pause,
    /// For a channel to be open.
    Channel(u32),
    /// For a message.
    Message(u32),
    /// For its resource, taken by others.
    Resource,
    /// For the key store, taken by others.
    KeyStore,
    /// Nothing: its program is over.
    Done,
}

/// One program being run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub role: Role,
    /// Where the queue has the time at which it goes on.
    pub place: u32,
    pub at: u32,
    pub waiting: Waiting,
    /// Whether it has run at all.
    pub begun: bool,
    /// Whether its processor's caches are cold.
    pub cold: bool,
    /// Whether it holds its resource.
    pub holds: bool,
    /// Whether the key store has been given to it.
    pub key_store_granted: bool,
    /// Its own time, ns: never before what happens, and ahead of it while it computes.
    pub time: u64,
    pub spent: Spent,
}

/// A write, as its receiver must know it: when it was made, and what the time before went to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub time: u64,
    pub spent: Spent,
}

impl Party {
    pub(crate) fn new(role: Role, place: u32) -> Party {
        Party {
            role,
            place,
            at: 0,
            waiting: Waiting::Time,
            begun: false,
            cold: true,
            holds: false,
            key_store_granted: false,
            time: 0,
            spent: [0; Stage::ALL.len()],
        }
    }

    /// Lets time pass in a stage.
    #[inline]
    pub(crate) fn spend(&mut self, stage: Stage, ns: u64) {
        self.time += ns;
        self.spent[stage as usize] += ns;
    }

    /// Lets time pass until an instant.
    pub(crate) fn spend_until(&mut self, stage: Stage, time: u64) {
        self.spend(stage, time.saturating_sub(self.time));
    }
}

impl Written {
    /// What the time went to when `packet` has brought what was written: the sender's account,
    /// what the packet went through, and the rest, which is waiting for a retransmission, or,
    /// for a packet that left late the first time, waiting for the window or Nagle.
    ///
    /// `whole`: whether the packet holds the last byte of what was waited for; otherwise it
    /// filled a hole before it.
    pub(crate) fn arrived(&self, packet: &Packet, whole: bool) -> Spent {
        self.came(packet.arrival, &packet.transit, packet.first_sent, whole)
    }

    /// The same of a packet by when it arrives, what it goes through, and when its content was
    /// first sent.
    #[inline]
    pub(crate) fn came(
        &self,
        arrival: u64,
        transit: &Transit,
        first_sent: u64,
        whole: bool,
    ) -> Spent {
        let mut spent = self.spent;
        let mut left = arrival.saturating_sub(self.time);
        let Transit { sent, queue, serialisation, client_interface, server_interface } = *transit;
        let (client, server) = (u64::from(client_interface), u64::from(server_interface));
        let propagation = (arrival - sent).saturating_sub(queue + serialisation + client + server);
        let mut take = |stage: Stage, ns: u64| {
            let ns = ns.min(left);
            spent[stage as usize] += ns;
            left -= ns;
        };
        // A packet sent before the write (which it can only be where packets overtake) did part
        // of its way at a time that is accounted for already: the end of the way counts.
        take(Stage::Propagation, propagation);
        take(Stage::Serialisation, serialisation);
        take(Stage::LinkQueue, queue);
        take(Stage::ClientSystem, client);
        take(Stage::ServerSystem, server);
        if whole {
            take(Stage::SendWait, first_sent.saturating_sub(self.time));
        }
        take(Stage::LossRecovery, u64::MAX);
        spent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::{Body, Fragment};
    use crate::route::Heading;
    use crate::route::{End, Route};

    proptest! {
        /// Not a nanosecond is lost or counted twice, whatever the packet went through.
        #[test]
        fn stages_of_an_arrival_add_up(
            start in 0_u64..1_000_000,
            first in 0_u64..2_000_000,
            again in 0_u64..2_000_000,
            parts in prop::array::uniform5(0_u32..100_000),
            whole: bool,
        ) {
            let mut spent = [0; Stage::ALL.len()];
            spent[0] = start;
            let written = Written { time: start, spent };
            let sent = first + again;
            let [queue, serialisation, client, server, propagation] = parts.map(u64::from);
            let arrival = sent + queue + serialisation + client + server + propagation;
            prop_assume!(arrival >= start);
            let packet = Packet {
                arrival,
                transit: Transit {
                    sent,
                    queue,
                    serialisation,
                    client_interface: client as u32,
                    server_interface: server as u32,
                },
                first_sent: first,
                route: Route {
                    instance: 0,
                    channel: 0,
                    to: End::Acceptor,
                    heading: Heading::Up,
                    clock: 0,
                },
                body: Body::Udp(Fragment { message: 0, transmission: 0, of: 1 }),
            };
            let after = written.arrived(&packet, whole);
            prop_assert_eq!(after.iter().sum::<u64>(), arrival);
        }
    }
}

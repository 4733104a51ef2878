// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP (RFC 768): each message is a datagram; one beyond the MTU travels as IP fragments (RFC 791
//! section 3.2), all of which must arrive.

use warifu_model::Link;

use super::{Arrival, Carrier, CarrierStream, Net};
use crate::clock::Clock;
use crate::event_queue::{Timer, Timers};
use crate::packet::{Body, Fragment, Packet};
use crate::route::End;

/// The IPv4 header without options (RFC 791 section 3.1).
const IP_HEADER: u32 = 20;
/// Ports, length and checksum (RFC 768).
const UDP_HEADER: u32 = 8;
/// Fragments but the last carry a multiple of this many bytes (RFC 791 section 3.1).
const FRAGMENT_UNIT: u32 = 8;

/// UDP compiled for a case.
#[derive(Clone, Debug)]
pub(crate) struct UdpModel {
    mtu: u32,
}

/// A UDP channel in motion.
#[derive(Debug)]
pub(crate) struct Udp {
    mtu: u32,
    first: u32,
    /// Whether each message has arrived.
    arrived: Vec<bool>,
    /// Of which some fragments are here. Only those of one transmission make up a datagram again.
    incomplete: Vec<Incomplete>,
}

/// A transmission of which fragments are missing.
#[derive(Clone, Copy, Debug)]
struct Incomplete {
    message: u32,
    transmission: u32,
    missing: u32,
}

impl UdpModel {
    pub(crate) fn new(link: &Link) -> UdpModel {
        UdpModel { mtu: u32::from(link.mtu) }
    }
}

impl Udp {
    pub(crate) fn new(model: &UdpModel, first: u32, messages: u32) -> Udp {
        let arrived = vec![false; messages as usize];
        Udp { mtu: model.mtu, first, arrived, incomplete: Vec::new() }
    }

    /// Begins a trial.
    pub(super) fn begin(&mut self) {
        self.arrived.fill(false);
        self.incomplete.clear();
    }

    /// Sends a message that left `transmission` times before, the first at `first_sent`, ns;
    /// `again` if this copy is its sender's own retransmission.
    pub(super) fn send(
        &mut self,
        net: &mut Net<'_>,
        message: u32,
        size: u32,
        transmission: u32,
        first_sent: u64,
        again: bool,
    ) {
        let payload = UDP_HEADER + size;
        let room = (self.mtu - IP_HEADER) / FRAGMENT_UNIT * FRAGMENT_UNIT;
        let whole = payload <= self.mtu - IP_HEADER;
        let of = if whole { 1 } else { payload.div_ceil(room) };
        let mut left = payload;
        for index in 0..of {
            let bytes = if index + 1 == of { left } else { room };
            left -= bytes;
            let fragment = Body::Udp(Fragment { message, transmission, of });
            net.send(IP_HEADER + bytes, first_sent, again, fragment);
        }
    }

    /// Takes a datagram or a fragment; the message that is complete now, and had not been before
    /// in this transmission.
    pub(super) fn take(&mut self, fragment: &Fragment) -> Option<u32> {
        if fragment.of > 1 && !self.completes(fragment) {
            return None;
        }
        self.arrived[(fragment.message - self.first) as usize] = true;
        Some(fragment.message)
    }

    /// Whether a message has arrived.
    pub(super) fn has_arrived(&self, message: u32) -> bool {
        self.arrived.get((message - self.first) as usize).copied().unwrap_or(false)
    }

    /// Whether a fragment was the last that was missing of its transmission.
    fn completes(&mut self, fragment: &Fragment) -> bool {
        let Fragment { message, transmission, of } = *fragment;
        let same = |one: &Incomplete| one.message == message && one.transmission == transmission;
        let Some(index) = self.incomplete.iter().position(same) else {
            self.incomplete.push(Incomplete { message, transmission, missing: of - 1 });
            return false;
        };
        self.incomplete[index].missing -= 1;
        let complete = self.incomplete[index].missing == 0;
        if complete {
            self.incomplete.swap_remove(index);
        }
        complete
    }
}

impl Carrier for Udp {
    fn reset(&mut self, _: CarrierStream) {
        self.begin();
    }

    /// A socket needs nobody's consent.
    fn open(&mut self, _: End, _: &mut Net<'_>) {}

    fn is_open(&self, _: End) -> bool {
        true
    }

    fn write(&mut self, _: End, net: &mut Net<'_>, first: u32, sizes: &[u32]) {
        let now = net.clock.now;
        for (message, &size) in (first..).zip(sizes) {
            self.send(net, message, size, 0, now, false);
        }
    }

    fn close(&mut self, _: End, _: &mut Net<'_>) {}

    fn receive(&mut self, _: End, _: &mut Net<'_>, packet: &Packet) -> Arrival {
        match &packet.body {
            Body::Udp(fragment) if self.take(fragment).is_some() => Arrival::Content,
            _ => Arrival::Nothing,
        }
    }

    fn has(&self, _: End, message: u32) -> bool {
        self.has_arrived(message)
    }

    fn carries_last_byte(&self, _: End, message: u32, packet: &Packet) -> bool {
        matches!(&packet.body, Body::Udp(fragment) if fragment.message == message)
    }

    fn acts_on_read(&mut self, _: End) -> bool {
        false
    }

    fn read(&mut self, _: End, _: &mut Net<'_>) {}

    fn on_timer(&mut self, _: End, _: &mut Net<'_>, _: Timer) {}

    fn timers(&mut self, _: End, _: &Clock) -> Timers {
        Timers::default()
    }

    fn has_failed(&self, _: End) -> bool {
        false
    }

    fn doubt_timers(&self, _: End, _: &Clock) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_of_two_transmissions_in_between() {
        let mut udp = Udp::new(&UdpModel { mtu: 1_500 }, 7, 2);
        let fragment = |transmission| Fragment { message: 8, transmission, of: 2 };
        assert_eq!(udp.take(&fragment(0)), None);
        assert_eq!(udp.take(&fragment(1)), None);
        assert!(!udp.has_arrived(8));
        assert_eq!(udp.take(&fragment(0)), Some(8));
        assert!(udp.has_arrived(8) && !udp.has_arrived(7));
        assert_eq!(udp.take(&fragment(1)), Some(8));
        udp.begin();
        assert!(!udp.has_arrived(8) && udp.incomplete.is_empty());
    }
}

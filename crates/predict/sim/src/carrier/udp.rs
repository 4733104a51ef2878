// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP (RFC 768): each message is a datagram; one beyond the MTU travels as IP fragments (RFC 791
//! section 3.2), all of which must arrive.

use warifu_model::Link;

use super::{Arrival, Carrier, CarrierStream, Net};
use crate::clock::Clock;
use crate::event_queue::TIMERS;
use crate::packet::{Body, Fragment, Packet};
use crate::route::End;
use crate::time::Time;

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
    datagrams: Vec<Datagram>,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Datagram {
    /// Fragments that are still missing, by transmission: only those of one transmission make up a
    /// datagram again.
    missing: u32,
    transmission: u32,
    arrived: bool,
}

impl UdpModel {
    pub(crate) fn new(link: &Link) -> UdpModel {
        UdpModel { mtu: u32::from(link.mtu) }
    }
}

impl Udp {
    pub(crate) fn new(model: &UdpModel, first: u32, messages: u32) -> Udp {
        let datagrams = vec![Datagram::default(); messages as usize];
        Udp { mtu: model.mtu, first, datagrams }
    }

    /// Begins a trial.
    pub(super) fn begin(&mut self) {
        self.datagrams.fill(Datagram::default());
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
        let datagram = &mut self.datagrams[(fragment.message - self.first) as usize];
        if datagram.missing == 0 || datagram.transmission != fragment.transmission {
            datagram.missing = fragment.of;
            datagram.transmission = fragment.transmission;
        }
        datagram.missing -= 1;
        if datagram.missing > 0 {
            return None;
        }
        datagram.arrived = true;
        Some(fragment.message)
    }

    /// Whether a message has arrived.
    pub(super) fn has_arrived(&self, message: u32) -> bool {
        self.datagrams.get((message - self.first) as usize).is_some_and(|one| one.arrived)
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

    fn on_timer(&mut self, _: End, _: &mut Net<'_>, _: usize) {}

    fn timers(&mut self, _: End, _: &Clock) -> [Time; TIMERS] {
        [Time::NONE; TIMERS]
    }

    fn has_failed(&self, _: End) -> bool {
        false
    }

    fn doubt_timers(&self, _: End, _: &Clock) {}
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP's confirmable messages over UDP (RFC 7252 section 4.2), as libcoap 4.3.1 has them.
//!
//! A request of the opener's is sent again, each time after twice the time, until the response is
//! there, which is piggybacked on the acknowledgement (section 5.2.1). libcoap's server keeps no
//! record of message IDs: each copy of a request is processed and answered afresh, one after the
//! other (section 4.5 allows it for idempotent requests).

use warifu_model::{Evidence, FigureOf, Input, Kind, Link, Nanos};

use super::udp::{Udp, UdpModel};
use super::{Arrival, Carrier, CarrierStream, Net};
use crate::clock::Clock;
use crate::event_queue::{Timer, Timers};
use crate::packet::{Body, Packet};
use crate::random::Stream;
use crate::route::End;
use crate::time::Time;

/// Confirmable messages compiled for a case.
#[derive(Clone, Debug)]
pub(crate) struct CoapModel {
    timeouts: Timeouts,
    udp: UdpModel,
}

/// A CoAP channel in motion. The opener sends requests, the acceptor responses, by turns: NSTART is
/// 1 (section 4.7).
#[derive(Debug)]
pub(crate) struct Coap {
    timeouts: Timeouts,
    udp: Udp,
    luck: Luck,
    /// The number of the last request that was written.
    last_request: u32,
    request: Request,
    response: Response,
    failed: bool,
}

/// Where timeouts are drawn from; most trials draw none.
#[derive(Debug)]
enum Luck {
    Unused(CarrierStream),
    Drawn(Stream),
}

/// The opener's request.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// None has been sent, or the last was answered.
    Idle,
    /// Sent, and not answered yet.
    Outstanding { message: u32, size: u32, sent: u64, retransmit: Retransmit },
}

/// The timer of a request (section 4.2).
#[derive(Clone, Copy, Debug)]
struct Retransmit {
    expires_at: u64,
    timeout: u64,
    count: u32,
}

/// The acceptor's side of the exchange.
#[derive(Clone, Copy, Debug)]
enum Response {
    /// No request has come.
    Idle,
    /// The request has come, at that time, and is worked on; so many copies wait.
    Due { since: u64, waiting: u32 },
    /// Answered.
    Given(Given),
}

/// A response that was sent.
#[derive(Clone, Copy, Debug)]
struct Given {
    message: u32,
    size: u32,
    sent: u64,
    /// How long the work took.
    turnaround: u64,
    /// How often it was sent.
    copies: u32,
    /// Copies of the request that are not answered yet.
    waiting: u32,
    /// When the first of them will be.
    again_at: Option<u64>,
}

/// The timeouts of a case, in the fixed point that libcoap has them in: 64ths
/// (`coap_calc_timeout`, src/net.c of libcoap 4.3.1).
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    ack_timeout: u64,
    ack_random_factor: u64,
    max_retransmit: u8,
}

/// FRAC_BITS of src/net.c of libcoap 4.3.1.
const FRACTION_BITS: u32 = 6;
/// MAX_BITS of the same: a timeout is drawn by one random byte.
const RANDOM_BITS: u32 = 8;
/// COAP_TICKS_PER_SECOND (include/coap3/coap_time.h of libcoap 4.3.1).
const TICKS_PER_SECOND: u64 = 1_000;
const TICK: u64 = 1_000_000;
/// How much later than at its tick a timeout is acted on, see [`lateness`].
const LATENESS: u64 = 45_000;

/// The figure of [`LATENESS`], for reports.
pub(super) fn lateness() -> Input {
    Input {
        of: FigureOf::Carrier,
        owner: "coap".into(),
        key: "timeout lateness".into(),
        value: Nanos(LATENESS).into(),
        unit: "ns".into(),
        source: "20 to 70 us with libcoap 4.3.1 on Linux 6.18, a virtual machine, \
                 22 November 2026"
            .into(),
        kind: Kind::Measured,
        evidence: Some(Evidence::Measured),
    }
}

impl Timeouts {
    fn new(coap: &warifu_model::Coap) -> Timeouts {
        // libcoap has both as an integer and thousandths (coap_fixed_point_t).
        let fixed = |thousandths: u64| (thousandths << FRACTION_BITS) / 1_000;
        Timeouts {
            ack_timeout: fixed(coap.ack_timeout.0 / TICK),
            ack_random_factor: fixed(u64::from(coap.ack_random_factor_percent) * 10),
            max_retransmit: coap.max_retransmit,
        }
    }

    /// The first timeout, ns: from ACK_TIMEOUT to ACK_TIMEOUT times ACK_RANDOM_FACTOR.
    fn first(self, random: u8) -> u64 {
        let rounded = |value: u64, bits: u32| (value + (1 << (bits - 1))) >> bits;
        let one = 1 << FRACTION_BITS;
        let spread = rounded((self.ack_random_factor - one) * u64::from(random), RANDOM_BITS);
        let timeout = rounded((spread + one) * self.ack_timeout, FRACTION_BITS);
        rounded(TICKS_PER_SECOND * timeout, FRACTION_BITS) * TICK
    }
}

impl CoapModel {
    pub(crate) fn new(coap: &warifu_model::Coap, link: &Link) -> CoapModel {
        CoapModel { timeouts: Timeouts::new(coap), udp: UdpModel::new(link) }
    }
}

impl Coap {
    pub(crate) fn new(model: &CoapModel, first: u32, messages: u32) -> Coap {
        Coap {
            timeouts: model.timeouts,
            udp: Udp::new(&model.udp, first, messages),
            luck: Luck::Unused(CarrierStream::default()),
            last_request: first,
            request: Request::Idle,
            response: Response::Idle,
            failed: false,
        }
    }

    fn random_byte(&mut self) -> u8 {
        if let Luck::Unused(stream) = self.luck {
            self.luck = Luck::Drawn(stream.begin());
        }
        match &mut self.luck {
            Luck::Drawn(stream) => (stream.bits() >> 56) as u8,
            Luck::Unused(_) => 0,
        }
    }

    fn receive_request(&mut self, now: u64, message: u32) -> Arrival {
        match &mut self.response {
            // A late copy of an earlier request: nobody waits for what it would be answered with.
            _ if message != self.last_request => {}
            Response::Idle => {
                self.response = Response::Due { since: now, waiting: 0 };
                return Arrival::Content;
            }
            Response::Due { waiting, .. } => *waiting += 1,
            Response::Given(given) => {
                given.waiting += 1;
                given.again_at = given.again_at.or(Some(now + given.turnaround));
            }
        }
        Arrival::Nothing
    }
}

impl Carrier for Coap {
    fn reset(&mut self, stream: CarrierStream) {
        self.udp.begin();
        self.luck = Luck::Unused(stream);
        self.request = Request::Idle;
        self.response = Response::Idle;
        self.failed = false;
    }

    /// UDP needs nobody's consent.
    fn open(&mut self, _: End, _: &mut Net<'_>) {}

    fn is_open(&self, _: End) -> bool {
        true
    }

    fn write(&mut self, end: End, net: &mut Net<'_>, first: u32, sizes: &[u32]) {
        let now = net.clock.now;
        for (message, &size) in (first..).zip(sizes) {
            self.udp.send(net, message, size, 0, now, false);
            if end == End::Opener {
                let timeout = self.timeouts.first(self.random_byte());
                let expires_at = now + timeout + LATENESS;
                let retransmit = Retransmit { expires_at, timeout, count: 0 };
                self.request = Request::Outstanding { message, size, sent: now, retransmit };
                self.last_request = message;
                self.response = Response::Idle;
            } else if let Response::Due { since, waiting } = self.response {
                let turnaround = now - since;
                let again_at = (waiting > 0).then(|| now + turnaround);
                self.response = Response::Given(Given {
                    message,
                    size,
                    sent: now,
                    turnaround,
                    copies: 1,
                    waiting,
                    again_at,
                });
            }
        }
    }

    fn close(&mut self, _: End, _: &mut Net<'_>) {}

    fn receive(&mut self, end: End, net: &mut Net<'_>, packet: &Packet) -> Arrival {
        let Body::Udp(fragment) = &packet.body else { return Arrival::Nothing };
        if self.udp.take(fragment).is_none() {
            return Arrival::Nothing;
        }
        if end == End::Acceptor {
            return self.receive_request(net.clock.now, fragment.message);
        }
        // A late copy of the response to an earlier request answers none.
        if !matches!(&self.response, Response::Given(given) if given.message == fragment.message) {
            return Arrival::Nothing;
        }
        match std::mem::replace(&mut self.request, Request::Idle) {
            Request::Outstanding { sent, .. } => {
                // With a shorter first timeout it would have been sent again before.
                net.clock.doubt(net.clock.now - sent >= self.timeouts.first(0));
                Arrival::Content
            }
            // A second copy of the response.
            Request::Idle => Arrival::Nothing,
        }
    }

    fn has(&self, _: End, message: u32) -> bool {
        self.udp.has_arrived(message)
    }

    fn carries_last_byte(&self, end: End, message: u32, packet: &Packet) -> bool {
        self.udp.carries_last_byte(end, message, packet)
    }

    fn acts_on_read(&mut self, _: End) -> bool {
        false
    }

    fn read(&mut self, _: End, _: &mut Net<'_>) {}

    fn on_timer(&mut self, end: End, net: &mut Net<'_>, _: Timer) {
        if end == End::Opener {
            let Request::Outstanding { message, size, sent, retransmit } = &mut self.request else {
                return;
            };
            if retransmit.count >= u32::from(self.timeouts.max_retransmit) {
                self.failed = true;
                self.request = Request::Idle;
                return;
            }
            retransmit.count += 1;
            retransmit.timeout *= 2;
            retransmit.expires_at = net.clock.now + retransmit.timeout + LATENESS;
            self.udp.send(net, *message, *size, retransmit.count, *sent, true);
        } else if let Response::Given(given) = &mut self.response {
            given.waiting -= 1;
            given.again_at = (given.waiting > 0).then(|| net.clock.now + given.turnaround);
            self.udp.send(net, given.message, given.size, given.copies, given.sent, false);
            given.copies += 1;
        }
    }

    fn timers(&mut self, end: End, _: &Clock) -> Timers {
        let expires_at = match (end, &self.request, &self.response) {
            (End::Opener, Request::Outstanding { retransmit, .. }, _) => {
                Some(retransmit.expires_at)
            }
            (End::Acceptor, _, Response::Given(given)) => given.again_at,
            _ => None,
        };
        Timers { retransmit: Time::of(expires_at), ..Timers::default() }
    }

    fn has_failed(&self, _: End) -> bool {
        self.failed
    }

    fn doubt_timers(&self, _: End, _: &Clock) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use warifu_model::CoapMessageType;

    fn timeouts(ack_timeout_ms: u64, ack_random_factor_percent: u16) -> Timeouts {
        Timeouts::new(&warifu_model::Coap {
            message_type: CoapMessageType::Confirmable,
            ack_timeout: Nanos::from_millis(ack_timeout_ms),
            ack_random_factor_percent,
            max_retransmit: 4,
        })
    }

    /// What libcoap's formula gives for RFC 7252's parameters.
    #[test]
    fn first_timeouts_of_the_defaults() {
        let defaults = timeouts(2_000, 150);
        let mut weights: BTreeMap<u64, u32> = BTreeMap::new();
        for random in 0..=255 {
            let timeout = defaults.first(random);
            let step = (32 * u64::from(random) + 128) >> 8;
            assert_eq!(timeout, ((2_000 * (64 + step) + 32) >> 6) * TICK);
            *weights.entry(timeout).or_default() += 1;
        }
        assert_eq!(weights.len(), 33);
        let weights: Vec<(u64, u32)> = weights.into_iter().collect();
        assert_eq!((weights[0], weights[32]), ((2_000 * TICK, 4), (3_000 * TICK, 4)));
        assert!(weights[1..32].iter().all(|&(_, weight)| weight == 8));
        // 31.25 ms apart, to the tick.
        assert_eq!((weights[1].0, weights[2].0), (2_031 * TICK, 2_063 * TICK));
    }

    #[test]
    fn first_timeout_without_spread() {
        assert!((0..=255).all(|random| timeouts(1_500, 100).first(random) == 1_500 * TICK));
    }

    /// 2.3 s are 147.2 64ths: libcoap cuts them to 147.
    #[test]
    fn first_timeout_in_64ths() {
        assert_eq!(timeouts(2_300, 100).first(0), 2_297 * TICK);
    }
}

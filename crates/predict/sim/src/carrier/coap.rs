// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP's confirmable messages over UDP (RFC 7252 section 4.2).
//!
//! A request of the opener's is sent again, each time after twice the time, until the response is
//! there, which is piggybacked on the acknowledgement (section 5.2.1). A server that gets a request
//! again answers again (section 4.5 lets a server of an idempotent request do so); its work is done
//! again, too, and takes as long as it did.

use warifu_model::Link;

use super::udp::{Udp, UdpModel};
use super::{ACCEPTOR, Arrival, Carrier, CarrierStream, Net, OPENER, TIMERS};
use crate::clock::Clock;
use crate::packet::{Body, Packet};
use crate::random::Stream;

/// Confirmable messages compiled for a case.
#[derive(Clone, Debug)]
pub(crate) struct CoapModel {
    coap: warifu_model::Coap,
    udp: UdpModel,
}

/// A CoAP channel in motion. The opener sends requests, the acceptor responses, by turns: NSTART is
/// 1 (section 4.7).
#[derive(Debug)]
pub(crate) struct Coap {
    coap: warifu_model::Coap,
    udp: Udp,
    luck: Luck,
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
    /// The request has come, at that time, and is worked on.
    Due { since: u64 },
    /// Answered.
    Given {
        message: u32,
        size: u32,
        sent: u64,
        /// How long the work took.
        turnaround: u64,
        /// How often it was sent.
        copies: u32,
        /// Until when the same work is done for a request that came again.
        again_at: Option<u64>,
    },
}

impl CoapModel {
    pub(crate) fn new(coap: &warifu_model::Coap, link: &Link) -> CoapModel {
        CoapModel { coap: coap.clone(), udp: UdpModel::new(link) }
    }
}

impl Coap {
    pub(crate) fn new(model: &CoapModel, first: u32, messages: u32) -> Coap {
        Coap {
            coap: model.coap.clone(),
            udp: Udp::new(&model.udp, first, messages),
            luck: Luck::Unused(CarrierStream::default()),
            request: Request::Idle,
            response: Response::Idle,
            failed: false,
        }
    }

    /// The first timeout: uniform from ACK_TIMEOUT to ACK_TIMEOUT times ACK_RANDOM_FACTOR
    /// (section 4.2). Drawn when a request is sent.
    fn first_timeout(&mut self) -> u64 {
        if let Luck::Unused(stream) = self.luck {
            self.luck = Luck::Drawn(stream.begin());
        }
        let uniform = match &mut self.luck {
            Luck::Drawn(stream) => stream.uniform(),
            Luck::Unused(_) => 0.0,
        };
        let least = self.coap.ack_timeout.0 as f64;
        let spread = f64::from(self.coap.ack_random_factor_percent) / 100.0 - 1.0;
        (least * (1.0 + spread * uniform)) as u64
    }

    fn receive_request(&mut self, now: u64) -> Arrival {
        match &mut self.response {
            Response::Idle => {
                self.response = Response::Due { since: now };
                Arrival::Content
            }
            // The answer to the first copy will do for this one.
            Response::Due { .. } => Arrival::Nothing,
            Response::Given { turnaround, again_at, .. } => {
                *again_at = Some(now + *turnaround);
                Arrival::Nothing
            }
        }
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
    fn open(&mut self, _: usize, _: &mut Net<'_>) {}

    fn is_open(&self, _: usize) -> bool {
        true
    }

    fn write(&mut self, end: usize, net: &mut Net<'_>, first: u32, sizes: &[u32]) {
        let now = net.clock.now;
        for (message, &size) in (first..).zip(sizes) {
            self.udp.send(net, message, size, 0, now);
            if end == OPENER {
                let timeout = self.first_timeout();
                let retransmit = Retransmit { expires_at: now + timeout, timeout, count: 0 };
                self.request = Request::Outstanding { message, size, sent: now, retransmit };
                self.response = Response::Idle;
            } else if let Response::Due { since } = self.response {
                self.response = Response::Given {
                    message,
                    size,
                    sent: now,
                    turnaround: now - since,
                    copies: 1,
                    again_at: None,
                };
            }
        }
    }

    fn close(&mut self, _: usize, _: &mut Net<'_>) {}

    fn receive(&mut self, end: usize, net: &mut Net<'_>, packet: &Packet) -> Arrival {
        let Body::Udp(fragment) = &packet.body else { return Arrival::Nothing };
        if self.udp.take(fragment).is_none() {
            return Arrival::Nothing;
        }
        if end == ACCEPTOR {
            return self.receive_request(net.clock.now);
        }
        match std::mem::replace(&mut self.request, Request::Idle) {
            Request::Outstanding { .. } => Arrival::Content,
            // A second copy of the response.
            Request::Idle => Arrival::Nothing,
        }
    }

    fn has(&self, _: usize, message: u32) -> bool {
        self.udp.has_arrived(message)
    }

    fn carries_last_byte(&self, end: usize, message: u32, packet: &Packet) -> bool {
        self.udp.carries_last_byte(end, message, packet)
    }

    fn is_read(&mut self, _: usize) -> bool {
        false
    }

    fn read(&mut self, _: usize, _: &mut Net<'_>) {}

    fn on_timer(&mut self, end: usize, net: &mut Net<'_>, _: usize) {
        if end == OPENER {
            let Request::Outstanding { message, size, sent, retransmit } = &mut self.request else {
                return;
            };
            if retransmit.count >= u32::from(self.coap.max_retransmit) {
                self.failed = true;
                self.request = Request::Idle;
                return;
            }
            retransmit.count += 1;
            retransmit.timeout *= 2;
            retransmit.expires_at = net.clock.now + retransmit.timeout;
            self.udp.send(net, *message, *size, retransmit.count, *sent);
        } else if let Response::Given { message, size, sent, copies, again_at, .. } =
            &mut self.response
        {
            *again_at = None;
            self.udp.send(net, *message, *size, *copies, *sent);
            *copies += 1;
        }
    }

    fn timers(&mut self, end: usize, _: &Clock) -> [Option<u64>; TIMERS] {
        let expires_at = match (end, &self.request, &self.response) {
            (OPENER, Request::Outstanding { retransmit, .. }, _) => Some(retransmit.expires_at),
            (ACCEPTOR, _, Response::Given { again_at, .. }) => *again_at,
            _ => None,
        };
        [expires_at, None]
    }

    fn has_failed(&self, _: usize) -> bool {
        self.failed
    }

    fn doubt_timers(&self, _: &Clock) {}
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carriers: what takes messages across the link.
//!
//! A carrier gets messages at one end of a channel and gives them out at the other. Between the
//! two it owns packetising, acknowledgements, timers, loss recovery and fragments; nobody else
//! knows of them. One that needs another below it, as CoAP's confirmable layer needs UDP, or TCP
//! in a tunnel the tunnel's carrier, holds it and is its driver.

pub(crate) mod coap;
pub(crate) mod tcp;
pub(crate) mod udp;

use warifu_model::{Case, Catalog, Counter, Error, Input};
use warifu_trace::Carrier as Kind;

use crate::capture::PacketEvent;
use crate::clock::{Clock, Jiffy};
use crate::event_queue::{Timer, Timers};
use crate::link::{Path, PathModel};
use crate::packet::{Body, Packet};
use crate::random::{Purpose, Stream};
use crate::recording::Log;
use crate::replay::Replay;
use crate::route::{End, Heading, Route};
use crate::tape::Recorder;
use coap::{Coap, CoapModel};
use tcp::wire::SYN;
use tcp::{Tcp, TcpModel};
use udp::{Udp, UdpModel};

/// What an instance has counted so far, by [`Counter`].
pub(crate) type Counters = [u64; Counter::COUNT];

/// What a packet did at the end that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing that a program could see.
    Nothing,
    /// The peer asked to open the channel; this end has answered.
    Request,
    /// The channel is open at this end.
    Open {
        /// Whether content came with it.
        with_content: bool,
    },
    /// Content is there that was not: some message may be complete now.
    Content,
}

/// One channel of a carrier: both ends of one connection.
///
/// # How it is driven
///
/// 1. [`Carrier::reset`] begins a trial; before it, nothing else may be called.
/// 2. A program at the opener's end calls [`open`](Carrier::open) once; both ends may write when
///    [`is_open`](Carrier::is_open) says so. Messages are written in the order of their numbers.
/// 3. [`receive`](Carrier::receive) gets each packet when it arrives, at the end it is for. After
///    an [`Arrival::Content`], [`has`](Carrier::has) tells which messages are complete.
/// 4. Whenever a program reads, whether or not a message is complete, [`read`](Carrier::read) is
///    called, for carriers to which reading matters (TCP acknowledges then), or
///    [`acts_on_read`](Carrier::acts_on_read) first, which may tell that it is not needed.
/// 5. At the end of every event in which a call took a [`Net`], the driver asks
///    [`timers`](Carrier::timers) of that end, and calls [`on_timer`](Carrier::on_timer) when, and
///    only when, one of them expires. A timer that has no time has been stopped.
/// 6. After a timer, [`has_failed`](Carrier::has_failed) tells whether the carrier gave up; nothing
///    more comes from it then.
///
/// A carrier has no clock: the time is in the [`Net`]. What it draws comes from its own stream, so
/// that a carrier that draws more does not shift the luck of anything else.
pub(crate) trait Carrier {
    /// Begins a trial; memory is kept.
    fn reset(&mut self, stream: CarrierStream);

    /// Opens the channel from this end.
    fn open(&mut self, end: End, net: &mut Net<'_>);

    /// Whether messages may be written at this end.
    fn is_open(&self, end: End) -> bool;

    /// Takes messages in one write: the number of the first, and the length of each, B.
    fn write(&mut self, end: End, net: &mut Net<'_>, first: u32, sizes: &[u32]);

    /// Ends this end's sending direction.
    fn close(&mut self, end: End, net: &mut Net<'_>);

    /// Takes a packet for this end.
    fn receive(&mut self, end: End, net: &mut Net<'_>, packet: &Packet) -> Arrival;

    /// Whether a message of the peer's is complete at this end.
    fn has(&self, end: End, message: u32) -> bool;

    /// Whether a packet carries the last byte of a message, which is complete at this end; if not,
    /// it filled a hole before it.
    fn carries_last_byte(&self, end: End, message: u32, packet: &Packet) -> bool;

    /// The program at this end is about to read what is there; whether the carrier acts on that,
    /// so that [`read`](Carrier::read) must be called.
    fn acts_on_read(&mut self, end: End) -> bool;

    /// The program at this end reads what is there.
    fn read(&mut self, end: End, net: &mut Net<'_>);

    /// One of this end's timers has expired.
    fn on_timer(&mut self, end: End, net: &mut Net<'_>, timer: Timer);

    /// When this end's timers expire.
    fn timers(&mut self, end: End, clock: &Clock) -> Timers;

    /// Whether this end has given up.
    fn has_failed(&self, end: End) -> bool;

    /// Tells an end's clock of its timers that are set and might have expired at another phase of
    /// its ticks.
    fn doubt_timers(&self, end: End, clock: &Clock);
}

/// What a carrier's random stream comes from; one that never draws makes no stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CarrierStream {
    trial_seed: u64,
    instance: u32,
    channel: u32,
}

/// A carrier's access to the world: the time, and the link in the direction away from its end.
#[derive(Debug)]
pub(crate) struct Net<'a> {
    pub clock: &'a Clock,
    pub path: &'a mut Path,
    pub model: &'a PathModel,
    /// Where what is sent goes.
    pub route: &'a Route,
    pub counters: &'a mut Counters,
    pub log: &'a mut Option<Log>,
    pub replay: &'a mut Option<Replay>,
    pub tape: &'a mut Option<Box<Recorder>>,
}

/// A carrier compiled for a case.
#[derive(Clone, Debug)]
pub(crate) enum CarrierModel {
    Tcp(TcpModel),
    Udp(UdpModel),
    Coap(CoapModel),
}

/// A channel in motion, of any carrier.
#[derive(Debug)]
pub(crate) enum AnyCarrier {
    Tcp(Box<Tcp>),
    Udp(Box<Udp>),
    Coap(Box<Coap>),
}

impl CarrierModel {
    /// The model of a carrier with the profiles of a case.
    pub(crate) fn compile(carrier: &Kind, case: &Case, catalog: &Catalog) -> Result<Self, Error> {
        Ok(match carrier {
            Kind::Tcp(tcp) => CarrierModel::Tcp(TcpModel::compile(tcp, case, catalog)?),
            Kind::Udp => CarrierModel::Udp(UdpModel::new(&case.link)),
            Kind::CoapConfirmable(coap) => CarrierModel::Coap(CoapModel::new(coap, &case.link)),
        })
    }

    /// The figures that a carrier rests on beside those of profiles.
    pub(crate) fn inputs(carrier: &Kind) -> Vec<Input> {
        match carrier {
            Kind::CoapConfirmable(_) => vec![coap::lateness()],
            Kind::Tcp(_) | Kind::Udp => Vec::new(),
        }
    }

    /// The ticks of the opener's and the acceptor's kernel, where they matter.
    pub(crate) fn jiffies(&self) -> Option<[Jiffy; 2]> {
        match self {
            CarrierModel::Tcp(model) => Some(model.jiffies()),
            CarrierModel::Udp(_) | CarrierModel::Coap(_) => None,
        }
    }

    /// A channel of this model, which takes `messages` messages from the number `first` on.
    pub(crate) fn channel(&self, first: u32, messages: u32) -> AnyCarrier {
        match self {
            CarrierModel::Tcp(model) => AnyCarrier::Tcp(Box::new(Tcp::new(model, first, messages))),
            CarrierModel::Udp(model) => AnyCarrier::Udp(Box::new(Udp::new(model, first, messages))),
            CarrierModel::Coap(model) => {
                AnyCarrier::Coap(Box::new(Coap::new(model, first, messages)))
            }
        }
    }
}

macro_rules! delegate {
    ($($(#[$inline:meta])* fn $name:ident(&self $(, $argument:ident: $type:ty)*)
        $(-> $result:ty)?;)+ ;
     $($(#[$inline_mut:meta])* fn $name_mut:ident(&mut self $(, $argument_mut:ident: $type_mut:ty)*)
        $(-> $result_mut:ty)?;)+) => {
        impl Carrier for AnyCarrier {
            $($(#[$inline])* fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                match self {
                    AnyCarrier::Tcp(carrier) => carrier.$name($($argument),*),
                    AnyCarrier::Udp(carrier) => carrier.$name($($argument),*),
                    AnyCarrier::Coap(carrier) => carrier.$name($($argument),*),
                }
            })+
            $($(#[$inline_mut])* fn $name_mut(&mut self $(, $argument_mut: $type_mut)*)
                $(-> $result_mut)? {
                match self {
                    AnyCarrier::Tcp(carrier) => carrier.$name_mut($($argument_mut),*),
                    AnyCarrier::Udp(carrier) => carrier.$name_mut($($argument_mut),*),
                    AnyCarrier::Coap(carrier) => carrier.$name_mut($($argument_mut),*),
                }
            })+
        }
    };
}

delegate! {
    #[inline] fn is_open(&self, end: End) -> bool;
    #[inline] fn has(&self, end: End, message: u32) -> bool;
    #[inline] fn carries_last_byte(&self, end: End, message: u32, packet: &Packet) -> bool;
    #[inline] fn has_failed(&self, end: End) -> bool;
    fn doubt_timers(&self, end: End, clock: &Clock);
    ;
    fn reset(&mut self, stream: CarrierStream);
    fn open(&mut self, end: End, net: &mut Net<'_>);
    #[inline] fn write(&mut self, end: End, net: &mut Net<'_>, first: u32, sizes: &[u32]);
    fn close(&mut self, end: End, net: &mut Net<'_>);
    #[inline] fn receive(&mut self, end: End, net: &mut Net<'_>, packet: &Packet) -> Arrival;
    #[inline] fn acts_on_read(&mut self, end: End) -> bool;
    #[inline] fn read(&mut self, end: End, net: &mut Net<'_>);
    #[inline] fn on_timer(&mut self, end: End, net: &mut Net<'_>, timer: Timer);
    #[inline] fn timers(&mut self, end: End, clock: &Clock) -> Timers;
}

impl CarrierStream {
    /// The stream of a channel of an instance.
    pub(crate) fn new(trial_seed: u64, instance: u32, channel: u32) -> CarrierStream {
        CarrierStream { trial_seed, instance, channel }
    }

    /// The stream itself.
    pub(crate) fn begin(self) -> Stream {
        let place = u64::from(self.instance) << 32 | u64::from(self.channel);
        Stream::numbered(self.trial_seed, Purpose::Carrier, place)
    }
}

impl Net<'_> {
    /// Puts a packet of so many bytes on the link; `first_sent` is when its content was sent first,
    /// and `again` whether that was before.
    pub(crate) fn send(&mut self, bytes: u32, first_sent: u64, again: bool, body: Body) {
        let now = self.clock.now;
        let route = *self.route;
        self.counters[Counter::Packets as usize] += 1;
        self.counters[Counter::PacketBytes as usize] += u64::from(bytes);
        self.counters[Counter::Retransmitted as usize] += u64::from(again);
        if again && route.heading == Heading::Up {
            let counter = match &body {
                Body::Tcp(segment) if segment.flags & SYN != 0 => Counter::SynRetransmitted,
                _ => Counter::ClientRetransmitted,
            };
            self.counters[counter as usize] += 1;
        }
        let arrives = match self.replay {
            None => self.path.carry(self.model, route.heading, now, bytes),
            Some(replay) => {
                let fate = replay.fate(route.heading, &body, now);
                self.path.carry_to_fate(self.model, now, (bytes, fate))
            }
        };
        if let Some(tape) = self.tape {
            tape.counted(route.clock, self.clock.ticks_relied_on());
            tape.sent(route.heading, bytes, arrives.as_ref().map(|(arrival, _)| *arrival));
            if first_sent != now {
                tape.spoil();
            }
        }
        if self.log.is_some() {
            self.note(bytes, again, &body, arrives.as_ref().map(|(arrival, _)| *arrival));
        }
        if let Some((arrival, transit)) = arrives {
            self.path.insert(Packet { arrival, transit, first_sent, route, body });
        }
    }

    #[cold]
    fn note(&mut self, bytes: u32, again: bool, body: &Body, arrives: Option<u64>) {
        if let Some(log) = self.log
            && log.is_of(self.route.instance)
        {
            let content = (bytes, again, body);
            log.packets.push(PacketEvent::new(self.clock.now, self.route, content, arrives));
        }
    }
}

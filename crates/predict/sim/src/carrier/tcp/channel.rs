// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TCP connection as a carrier: messages become positions in two byte streams.

use std::num::NonZeroU32;

use warifu_model::{Case, Catalog, Error, ProfileKind};

use super::kernel::Kernel;
use super::wire::{TcpSegment, segment_bytes};
use super::{Context, Settings, Socket, State};
use crate::carrier::{Arrival, Carrier, CarrierStream, Net};
use crate::clock::{Clock, Jiffy};
use crate::event_queue::{Timer, Timers};
use crate::packet::{Body, Packet};
use crate::profiles::missing;
use crate::route::End;

/// TCP compiled for a case: the settings of both ends.
#[derive(Clone, Debug)]
pub(crate) struct TcpModel {
    settings: [Settings; 2],
}

/// A TCP connection in motion.
#[derive(Debug)]
pub(crate) struct Tcp {
    settings: [Settings; 2],
    sockets: [Socket; 2],
    /// The number of the first message that may be written.
    first: u32,
    /// Of each message, the end of its bytes in its sender's stream; `None` before it is written.
    ends: Vec<Option<NonZeroU32>>,
    /// Bytes written so far by each end.
    written: [u32; 2],
}

impl TcpModel {
    pub(crate) fn compile(
        tcp: &warifu_model::Tcp,
        case: &Case,
        catalog: &Catalog,
    ) -> Result<TcpModel, Error> {
        let settings = |key: &str, name: &str| -> Result<Settings, Error> {
            let profile =
                catalog.tcp(name).ok_or_else(|| missing(catalog, ProfileKind::Tcp, key, name))?;
            Ok(Settings {
                kernel: Kernel::new(profile)?,
                mss: segment_bytes(case.link.mtu),
                initcwnd: u32::from(tcp.initcwnd.max(1)),
                nagle: tcp.nagle,
                congestion_control: tcp.congestion_control,
            })
        };
        Ok(TcpModel {
            settings: [settings("device.tcp", &tcp.device)?, settings("server.tcp", &tcp.server)?],
        })
    }

    /// The ticks of both ends.
    pub(crate) fn jiffies(&self) -> [Jiffy; 2] {
        [self.settings[0].kernel.jiffy, self.settings[1].kernel.jiffy]
    }
}

impl Tcp {
    pub(crate) fn new(model: &TcpModel, first: u32, messages: u32) -> Tcp {
        Tcp {
            settings: model.settings.clone(),
            sockets: [Socket::new(), Socket::new()],
            first,
            ends: vec![None; messages as usize],
            written: [0; 2],
        }
    }

    /// Lets a socket act.
    #[inline]
    fn socket<'a, 'n>(
        &'a mut self,
        end: End,
        net: &'a mut Net<'n>,
    ) -> (&'a mut Socket, Context<'a, 'n>) {
        let context = Context { clock: net.clock, settings: &self.settings[end as usize], net };
        (&mut self.sockets[end as usize], context)
    }

    /// Where a message that was written ends in its sender's stream.
    #[inline]
    fn end_of(&self, message: u32) -> Option<u32> {
        self.ends.get((message - self.first) as usize).copied().flatten().map(NonZeroU32::get)
    }
}

impl Carrier for Tcp {
    fn reset(&mut self, _: CarrierStream) {
        for (socket, settings) in self.sockets.iter_mut().zip(&self.settings) {
            socket.reset(settings);
        }
        self.ends.fill(None);
        self.written = [0; 2];
    }

    fn open(&mut self, end: End, net: &mut Net<'_>) {
        let (socket, mut context) = self.socket(end, net);
        socket.connect(&mut context);
    }

    #[inline]
    fn is_open(&self, end: End) -> bool {
        self.sockets[end as usize].state == State::Established
    }

    fn write(&mut self, end: End, net: &mut Net<'_>, first: u32, sizes: &[u32]) {
        let before = self.written[end as usize];
        let begin = (first - self.first) as usize;
        for (message, size) in self.ends[begin..begin + sizes.len()].iter_mut().zip(sizes) {
            self.written[end as usize] += size;
            // The SYN took sequence number 0.
            *message = NonZeroU32::new(1 + self.written[end as usize]);
        }
        let bytes = self.written[end as usize] - before;
        let (socket, mut context) = self.socket(end, net);
        socket.write(&mut context, bytes);
    }

    fn close(&mut self, end: End, net: &mut Net<'_>) {
        let (socket, mut context) = self.socket(end, net);
        socket.close(&mut context);
    }

    fn receive(&mut self, end: End, net: &mut Net<'_>, packet: &Packet) -> Arrival {
        let Body::Tcp(segment) = &packet.body else { return Arrival::Nothing };
        let (socket, mut context) = self.socket(end, net);
        socket.receive(&mut context, segment)
    }

    #[inline]
    fn has(&self, end: End, message: u32) -> bool {
        self.end_of(message).is_some_and(|at| at <= self.sockets[end as usize].receiver.rcv_nxt)
    }

    #[inline]
    fn carries_last_byte(&self, _: End, message: u32, packet: &Packet) -> bool {
        let Body::Tcp(TcpSegment { seq, end, .. }) = packet.body else { return false };
        self.end_of(message).is_some_and(|at| seq < at && at <= end)
    }

    #[inline]
    fn acts_on_read(&mut self, end: End) -> bool {
        self.sockets[end as usize].owes_ack()
    }

    #[inline]
    fn read(&mut self, end: End, net: &mut Net<'_>) {
        let (socket, mut context) = self.socket(end, net);
        socket.after_read(&mut context);
    }

    fn on_timer(&mut self, end: End, net: &mut Net<'_>, timer: Timer) {
        let (socket, mut context) = self.socket(end, net);
        match timer {
            Timer::Retransmit => socket.on_write_timer(&mut context),
            Timer::DelayedAck => socket.on_delack_timer(&mut context),
        }
    }

    #[inline]
    fn timers(&mut self, end: End, clock: &Clock) -> Timers {
        let socket = &mut self.sockets[end as usize];
        Timers {
            retransmit: socket.write_timer.expires_at(clock),
            delayed_ack: socket.delack_timer.expires_at(clock),
        }
    }

    fn has_failed(&self, end: End) -> bool {
        self.sockets[end as usize].state == State::Failed
    }

    fn doubt_timers(&self, end: End, clock: &Clock) {
        let socket = &self.sockets[end as usize];
        socket.rely_on_timers(clock);
        socket.write_timer.doubt(clock);
        socket.delack_timer.doubt(clock);
    }
}

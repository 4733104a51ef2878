// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TCP as Linux does it (6.18, `profiles/tcp/`), one end of a connection.
//!
//! A [`Socket`] has no clock and draws nothing: it is told the time, a segment or a timer, and
//! gives segments to the link. Names of fields and functions follow the kernel's where there is
//! a counterpart, so that the two can be read side by side. Left out, because no handshake and no
//! response of 64 KiB is long enough to meet it: the receiver's window (taken as wide enough; in
//! the kernel its growth adds a quick acknowledgement now and then), SACK compression, waiting for
//! a larger segment to offload (`tcp_tso_should_defer`), pacing, ECN, HyStart, and that CUBIC's
//! clock stands still while a connection is idle. Left out because it is a matter of chance:
//! segments that arrive while the program reads are acknowledged together
//! (`tcp_backlog_ack_defer`); a blocked program reads at the instant of arrival, not when it has
//! woken; and a second unread segment is always acknowledged at once, where the kernel looks at the
//! memory that unread segments take (`__tcp_select_window`). Of both comes an acknowledgement
//! without data more or less (studies/accuracy/README.md, "One packet more or less").

mod ack;
mod channel;
mod congestion;
mod flags;
mod kernel;
mod open;
mod output;
mod queue;
mod rack;
mod receive;
mod recovery;
mod round_trip;
mod sack;
mod timers;
mod undo;
pub(crate) mod wire;

use warifu_model::CongestionControl;

use crate::carrier::Net;
use crate::clock::Clock;
use crate::packet::Body;
pub(crate) use channel::{Tcp, TcpModel};
use kernel::Kernel;
use timers::WheelTimer;
use wire::{ACK, AGAIN, Range, SACK_BLOCKS, TcpSegment};

use congestion::Congestion;
use queue::Queue;
use receive::Receiver;
use recovery::Recovery;
use round_trip::RoundTrip;

/// The settings of a socket that a case chooses.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub kernel: Kernel,
    pub mss: u32,
    pub initcwnd: u32,
    pub nagle: bool,
    pub congestion_control: CongestionControl,
}

/// What a socket needs to act: the time, its settings, and the link in its direction.
pub(crate) struct Context<'a, 'n> {
    pub clock: &'a Clock,
    pub settings: &'a Settings,
    net: &'a mut Net<'n>,
}

/// The state of a connection (RFC 9293 section 3.3.2), as far as a handshake needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    SynSent,
    /// The server has answered a SYN and holds a request, not yet a socket.
    SynReceived,
    Established,
    /// Gave up.
    Failed,
}

/// Congestion state (`enum tcp_ca_state`), in the kernel's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaState {
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

/// What the one timer for sending is set for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    None,
    Retransmit,
    LossProbe,
    Reorder,
}

/// One end of a TCP connection.
#[derive(Debug)]
pub(crate) struct Socket {
    pub state: State,
    pub ca_state: CaState,
    pub pending: Pending,
    /// The timer for sending; also the request's timer of a server.
    pub write_timer: WheelTimer,
    /// The timer for a delayed acknowledgement.
    pub delack_timer: WheelTimer,

    pub snd_una: u32,
    pub snd_nxt: u32,
    /// The end of what the program has written.
    pub write_seq: u32,
    /// The end of the last segment sent that was not full (Nagle, as Minshall has it).
    pub snd_sml: u32,
    /// Whether the last sequence number of `write_seq` is a FIN.
    pub fin: bool,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub queue: Queue,
    /// Jiffy of the last data sent, and its event.
    pub lsndtime: u32,
    pub last_sent_at: u16,
    /// What the running timers rest on, where that is noted.
    write_bounds: timers::Bounds,
    delack_bounds: timers::Bounds,
    /// Timeouts since the last progress, and in all.
    pub retransmits: u32,
    pub total_rto: u32,
    pub total_retrans: u32,
    /// Segments of data sent, with those sent again.
    pub transmissions: u32,
    /// Segments delivered in all.
    pub delivered: u32,
    pub snd_wl1: u32,

    pub round_trip: RoundTrip,
    pub congestion: Congestion,
    pub recovery: Recovery,
    pub receiver: Receiver,
    pub request: open::Request,
}

impl Socket {
    /// A closed socket.
    pub(crate) fn new() -> Socket {
        Socket::with(Queue::new(), Receiver::default())
    }

    fn with(queue: Queue, receiver: Receiver) -> Socket {
        Socket {
            state: State::Closed,
            ca_state: CaState::Open,
            pending: Pending::None,
            write_timer: WheelTimer::Stopped,
            delack_timer: WheelTimer::Stopped,
            snd_una: 0,
            snd_nxt: 0,
            write_seq: 1,
            snd_sml: 0,
            fin: false,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            queue,
            lsndtime: 0,
            last_sent_at: 0,
            write_bounds: timers::Bounds::default(),
            delack_bounds: timers::Bounds::default(),
            retransmits: 0,
            total_rto: 0,
            total_retrans: 0,
            transmissions: 0,
            delivered: 0,
            snd_wl1: 0,
            round_trip: RoundTrip::default(),
            congestion: Congestion::default(),
            recovery: Recovery::default(),
            receiver,
            request: open::Request::default(),
        }
    }

    /// Closes the socket for the next trial; memory is kept.
    pub(crate) fn reset(&mut self, settings: &Settings) {
        let mut queue = std::mem::replace(&mut self.queue, Queue::empty());
        queue.clear();
        let mut receiver = std::mem::take(&mut self.receiver);
        receiver.reset();
        *self = Socket::with(queue, receiver);
        self.round_trip.reset(&settings.kernel);
        self.recovery.reset(&settings.kernel);
        self.congestion.reset();
    }

    /// Sets the timer for sending.
    fn arm(&mut self, context: &Context<'_, '_>, delay: u32) {
        let clock = context.clock;
        if clock.is_noting() {
            self.write_timer.rely(clock, &self.write_bounds);
            self.write_bounds = self.bounds_of_write_timer(context, delay);
        }
        self.write_timer.set(clock, delay);
    }

    /// Stops the timer for sending.
    fn disarm(&mut self, clock: &Clock) {
        self.write_timer.rely(clock, &self.write_bounds);
        self.write_timer.stop(clock);
    }

    /// Segments that are believed to be in the network (`tcp_packets_in_flight`).
    #[inline]
    pub(crate) fn packets_in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.left_out())
    }

    /// Segments that have left the network (`tcp_left_out`).
    #[inline]
    pub(crate) fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    /// A segment of this end as it is now, as yet without selective acknowledgements.
    fn segment(&self, context: &Context<'_, '_>, seq: u32, end: u32, flags: u8) -> TcpSegment {
        TcpSegment {
            seq,
            end,
            ack: self.receiver.rcv_nxt,
            stamp: context.clock.stamp,
            echo: self.receiver.ts_recent,
            flags,
            sacks: 0,
            sack: [Range::default(); SACK_BLOCKS],
        }
    }

    /// Sends an acknowledgement at once (`tcp_send_ack`).
    pub(crate) fn send_ack(&mut self, context: &mut Context<'_, '_>) {
        let mut packet = self.segment(context, self.snd_nxt, self.snd_nxt, ACK);
        self.transmit(context, &mut packet, context.clock.now);
    }

    /// Gives a segment to the link; what acknowledges also clears what was to be
    /// acknowledged (`tcp_event_ack_sent`).
    fn transmit(
        &mut self,
        context: &mut Context<'_, '_>,
        packet: &mut TcpSegment,
        first_sent: u64,
    ) {
        if packet.flags & ACK != 0 {
            self.receiver.write_sacks(packet);
            self.receiver.ack_sent(context.settings.kernel.ato_min);
            self.delack_timer.rely(context.clock, &self.delack_bounds);
            self.delack_timer.stop(context.clock);
        }
        context.send(packet, first_sent);
    }
}

impl Context<'_, '_> {
    /// Puts a segment on the link whose bytes were first sent then, ns.
    fn send(&mut self, segment: &TcpSegment, first_sent: u64) {
        let again = segment.flags & AGAIN != 0;
        self.net.send(segment.wire_bytes(), first_sent, again, Body::Tcp(*segment));
    }
}

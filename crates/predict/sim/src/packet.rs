// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An IP packet on the link.

use crate::carrier::tcp::wire::TcpSegment;
use crate::route::Route;

/// An IP packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When the receiver's end of its channel gets it, ns.
    pub arrival: u64,
    /// What it went through.
    pub transit: Transit,
    /// When its content was first sent, ns.
    pub first_sent: u64,
    /// Where it goes.
    pub route: Route,
    /// What its carrier put in.
    pub body: Body,
}

/// What a carrier puts into a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp(TcpSegment),
    Udp(Fragment),
}

/// A UDP datagram, or an IP fragment of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// Which message it carries.
    pub message: u32,
    /// How often the message was sent before.
    pub transmission: u32,
    /// How many fragments the datagram has.
    pub of: u32,
}

/// What a packet went through; what is missing to its arrival is propagation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transit {
    /// When its carrier gave it out, ns.
    pub sent: u64,
    /// Behind other packets, ns.
    pub queue: u64,
    /// Its own bits, ns.
    pub serialisation: u64,
    /// In the ends' network interfaces, ns.
    pub client_interface: u32,
    pub server_interface: u32,
}

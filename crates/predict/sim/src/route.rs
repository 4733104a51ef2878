// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where packets go.

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// An end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The one that opened it.
    Opener,
    /// The one that accepted.
    Acceptor,
}

/// Where packets from one end of a channel go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub instance: u32,
    pub channel: u32,
    /// The end that gets them.
    pub to: End,
    pub heading: Heading,
    /// Which of the clocks is that of the sending end.
    pub clock: u8,
}

impl End {
    /// Both, in the order of pairs by end.
    pub(crate) const BOTH: [End; 2] = [End::Opener, End::Acceptor];

    /// The other end.
    #[inline]
    pub(crate) fn peer(self) -> End {
        match self {
            End::Opener => End::Acceptor,
            End::Acceptor => End::Opener,
        }
    }
}

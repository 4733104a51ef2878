// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs that measure: plain sockets in the two namespaces, as ordinary programs would use
//! them.

use super::Bench;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use warifu_link::LinkError;
use warifu_link::clock::received_at;
use warifu_link::netns;
use warifu_link::random::Direction;
use warifu_model::{BitsPerSecond, Nanos};
use warifu_os::clock::{now, sleep_until};

/// IPv4 header without options (RFC 791 section 3.1) and UDP header (RFC 768).
pub const UDP_OVERHEAD_BYTES: usize = 20 + 8;
/// How long a receiver waits for what may never come.
const PATIENCE: Duration = Duration::from_millis(500);

/// Enabling receive stamps is left to a kernel worker (Linux net/core/dev.c,
/// `net_enable_timestamp`).
const KERNEL_BEGINS_TO_STAMP: Nanos = Nanos(100_000_000);

/// Round trips, each list ascending.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// From just before a packet is sent until the other end's network stack has it, and back: what
    /// the link makes of it.
    pub link_ns: Vec<u64>,
    /// As the sending program sees it, with the time that two programs take to wake up.
    pub programs_ns: Vec<u64>,
}

/// Two UDP sockets that know each other.
pub struct Pair {
    /// Where packets start.
    pub sender: UdpSocket,
    /// Where they arrive.
    pub receiver: UdpSocket,
}

impl Pair {
    /// A pair across the link, for packets in `direction`.
    pub fn across(bench: &Bench, direction: Direction) -> Result<Pair, LinkError> {
        let a = (bench.a.name(), bench.config.address_a);
        let b = (bench.b.name(), bench.config.address_b);
        let (from, to) = if direction == Direction::AToB { (a, b) } else { (b, a) };
        Pair::between(from, to)
    }

    /// A pair on the loopback device of namespace A.
    pub fn loopback(bench: &Bench) -> Result<Pair, LinkError> {
        let end = (bench.a.name(), Ipv4Addr::LOCALHOST);
        Pair::between(end, end)
    }

    fn between(from: (&str, Ipv4Addr), to: (&str, Ipv4Addr)) -> Result<Pair, LinkError> {
        let open = |(name, address): (&str, Ipv4Addr)| {
            netns::enter(name, || os("opening a UDP socket", UdpSocket::bind((address, 0))))
        };
        let (sender, receiver) = (open(from)?, open(to)?);
        let address = |socket: &UdpSocket| os("asking a socket's address", socket.local_addr());
        os("connecting a UDP socket", sender.connect(address(&receiver)?))?;
        os("connecting a UDP socket", receiver.connect(address(&sender)?))?;
        for socket in [&sender, &receiver] {
            os("setting a timeout", socket.set_read_timeout(Some(PATIENCE)))?;
        }
        Ok(Pair { sender, receiver })
    }

    /// Sends `count` packets at fixed intervals whatever comes back.
    pub fn round_trips(&self, count: u64, interval: Nanos) -> RoundTrips {
        for socket in [&self.sender, &self.receiver] {
            // The first question has the kernel stamp what comes.
            let _ = received_at(socket);
        }
        sleep_until(now() + KERNEL_BEGINS_TO_STAMP);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| echo_stamped(&self.receiver, &done));
            let receiving = scope.spawn(|| self.receive_stamped(count));
            let start = now();
            for number in 0..count {
                sleep_until(start + Nanos(number * interval.0));
                // A full socket loses a sample, which the count then shows.
                let _ = self.sender.send(&stamps([now(), Nanos::ZERO, Nanos::ZERO]));
            }
            let round_trips = receiving.join().unwrap_or_default();
            done.store(true, Ordering::Relaxed);
            round_trips
        })
    }

    fn receive_stamped(&self, count: u64) -> RoundTrips {
        let mut round_trips = RoundTrips::default();
        let mut message = [0_u8; 24];
        while (round_trips.programs_ns.len() as u64) < count
            && self.sender.recv(&mut message).is_ok_and(|length| length == 24)
        {
            let seen = now();
            let Some(back) = received_at(&self.sender) else { continue };
            let [sent, there, turned] = [0, 8, 16].map(|at| {
                let bytes = message[at..at + 8].try_into().unwrap_or_default();
                Nanos(u64::from_le_bytes(bytes))
            });
            round_trips.programs_ns.push((seen - sent).0);
            round_trips.link_ns.push(((there - sent) + (back - turned)).0);
        }
        round_trips.programs_ns.sort_unstable();
        round_trips.link_ns.sort_unstable();
        round_trips
    }

    /// Sends a packet, waits for it to come back, pauses, and so on; the round trips in ascending
    /// nanoseconds.
    pub fn ping_pong(&self, count: u64, pause: Nanos) -> Vec<u64> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| echo(&self.receiver, &done));
            let mut round_trips = Vec::with_capacity(count as usize);
            let mut message = [0_u8; 64];
            for _ in 0..count {
                if pause > Nanos::ZERO {
                    sleep_until(now() + pause);
                }
                let sent = now();
                if self.sender.send(&message).is_ok() && self.sender.recv(&mut message).is_ok() {
                    round_trips.push((now() - sent).0);
                }
            }
            done.store(true, Ordering::Relaxed);
            ascending(round_trips)
        })
    }

    /// Sends `count` packets of `payload` bytes at a rate of IP packets; the instants at which
    /// packets arrived.
    pub fn flood(&self, count: u64, payload: usize, rate: BitsPerSecond) -> Vec<Nanos> {
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut arrivals = Vec::with_capacity(count as usize);
                let mut message = vec![0_u8; payload];
                while self.receiver.recv(&mut message).is_ok() {
                    arrivals.push(now());
                }
                arrivals
            });
            let message = vec![0_u8; payload];
            let start = now();
            let mut sent_bytes = 0;
            for _ in 0..count {
                let due = start + warifu_link::queue::serialisation_time(sent_bytes, rate);
                // A thread cannot sleep for less than the kernel needs to wake it, so the shortest
                // gaps become small bursts.
                if due - now() > Nanos(50_000) {
                    sleep_until(due);
                }
                let _ = self.sender.send(&message);
                sent_bytes += (payload + UDP_OVERHEAD_BYTES) as u64;
            }
            receiving.join().unwrap_or_default()
        })
    }
}

/// Bits of payload per second that one TCP connection carries in `direction` for `length`.
pub fn tcp_throughput_bps(
    bench: &Bench,
    direction: Direction,
    length: Nanos,
) -> Result<f64, LinkError> {
    let a = (bench.a.name(), bench.config.address_a);
    let b = (bench.b.name(), bench.config.address_b);
    let (from, to) = if direction == Direction::AToB { (a, b) } else { (b, a) };
    let listener = netns::enter(to.0, || os("listening", TcpListener::bind((to.1, 0))))?;
    let address: SocketAddr = os("asking a socket's address", listener.local_addr())?;
    let mut outgoing =
        netns::enter(from.0, || os("connecting over the link", TcpStream::connect(address)))?;
    let (mut incoming, _) = os("accepting", listener.accept())?;
    let end = now() + length;
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let block = vec![0_u8; 128 * 1024];
            while now() < end {
                outgoing.write_all(&block)?;
            }
            outgoing.shutdown(std::net::Shutdown::Write)
        });
        let mut block = vec![0_u8; 256 * 1024];
        let (start, mut bytes) = (now(), 0_u64);
        let finish = loop {
            match incoming.read(&mut block) {
                Ok(0) => break now(),
                Ok(length) => bytes += length as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return os("receiving over the link", Err(error)),
            }
        };
        os("sending over the link", sending.join().unwrap_or(Ok(())))?;
        Ok(bytes as f64 * 8e9 / (finish - start).0 as f64)
    })
}

/// Sends back what comes until `done`.
fn echo(socket: &UdpSocket, done: &AtomicBool) {
    let mut message = [0_u8; 64];
    while !done.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut message) {
            let _ = socket.send(&message[..length]);
        }
    }
}

/// Sends back what comes until `done`, with the instants at which it came and went.
fn echo_stamped(socket: &UdpSocket, done: &AtomicBool) {
    let mut message = [0_u8; 24];
    while !done.load(Ordering::Relaxed) {
        if socket.recv(&mut message).is_ok()
            && let Some(there) = received_at(socket)
        {
            let sent = message[..8].try_into().unwrap_or_default();
            let _ = socket.send(&stamps([Nanos(u64::from_le_bytes(sent)), there, now()]));
        }
    }
}

fn stamps(instants: [Nanos; 3]) -> [u8; 24] {
    let mut message = [0_u8; 24];
    for (to, instant) in message.chunks_exact_mut(8).zip(instants) {
        to.copy_from_slice(&instant.0.to_le_bytes());
    }
    message
}

fn ascending(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

fn os<T>(doing: &str, result: std::io::Result<T>) -> Result<T, LinkError> {
    result.map_err(|source| LinkError::Os { doing: doing.to_owned(), source })
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A CoAP server on loopback that answers in ways in which coap-server does not.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a server answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// In the acknowledgement of a CON; a NON by a NON.
    Piggybacked,
    /// By an empty ACK, then by a CON of its own.
    Separate,
    /// By a CON of its own alone: the empty ACK was lost.
    Unacknowledged,
    /// From the given datagram of each client on; those before are lost.
    From(u32),
    /// When that many clients have asked, all of them.
    Together(usize),
    /// When the request has come twice, to both.
    Late,
    /// Twice the same.
    Twice,
    /// By 4.04.
    NotFound,
    /// By an RST.
    Resets,
    /// Not at all.
    Silent,
}

/// What each response carries.
pub const BODY: &[u8] = b"23.5 Cel";

/// A server with a thread of its own, which ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Seen>>,
}

/// What a server received, by the client's port.
pub type Seen = HashMap<u16, Vec<Vec<u8>>>;

impl Server {
    pub fn start(manner: Manner) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::<AtomicBool>::default();
        let wish = stop.clone();
        let thread = std::thread::spawn(move || serve(&socket, manner, &wish));
        Server { address, stop, thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; what it received.
    pub fn seen(mut self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn serve(socket: &UdpSocket, manner: Manner, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::new();
    let mut waiting = Vec::new();
    let mut buffer = [0; 2_048];
    // What was sent before the request to stop is still read.
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            if stop.load(Ordering::Relaxed) {
                return seen;
            }
            continue;
        };
        let request = buffer[..length].to_vec();
        let of_client = seen.entry(from.port()).or_default();
        of_client.push(request.clone());
        let is_request = (1..32).contains(&request[1]);
        if !is_request {
            continue;
        }
        let count = of_client.len() as u32;
        waiting.push((request, from));
        if matches!(manner, Manner::Together(clients) if waiting.len() < clients) {
            continue;
        }
        for (request, from) in waiting.drain(..) {
            for answer in answers(manner, &request, count) {
                socket.send_to(&answer, from).unwrap();
            }
        }
    }
}

fn answers(manner: Manner, request: &[u8], count: u32) -> Vec<Vec<u8>> {
    let piggybacked = if message_type(request) == 0 { 2 } else { 1 };
    let id = message_id(request);
    let response = || message(piggybacked, 69, id, request, BODY);
    let separate = || message(0, 69, id.wrapping_add(0x100), request, BODY);
    match manner {
        Manner::Piggybacked | Manner::Together(_) => vec![response()],
        Manner::Separate => vec![empty(2, id), separate()],
        Manner::Unacknowledged => vec![separate()],
        Manner::From(first) if count >= first => vec![response()],
        Manner::Late if count == 2 => vec![response(), response()],
        Manner::From(_) | Manner::Late | Manner::Silent => vec![],
        Manner::Twice => vec![response(), response()],
        Manner::NotFound => vec![message(piggybacked, 0x84, id, request, b"")],
        Manner::Resets => vec![empty(3, id)],
    }
}

/// The type in a datagram's header (RFC 7252 section 3).
pub fn message_type(datagram: &[u8]) -> u8 {
    datagram[0] >> 4 & 3
}

/// The message ID in a datagram's header.
pub fn message_id(datagram: &[u8]) -> u16 {
    u16::from_be_bytes([datagram[2], datagram[3]])
}

fn empty(message_type: u8, id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![0x40 | message_type << 4, 0, high, low]
}

fn message(message_type: u8, code: u8, id: u16, request: &[u8], body: &[u8]) -> Vec<u8> {
    let token_bytes = request[0] & 15;
    let mut message = empty(message_type, id);
    message[0] |= token_bytes;
    message[1] = code;
    message.extend(&request[4..4 + usize::from(token_bytes)]);
    if !body.is_empty() {
        message.push(0xff);
        message.extend(body);
    }
    message
}

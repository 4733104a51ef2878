// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What libcoap does for one exchange, seen from both of its sides: what it calls back, and every
//! datagram that it gives to the kernel or takes from it.
//!
//! libcoap 4.3 tells nobody of its retransmissions, and counts neither bytes nor datagrams. It
//! reaches the kernel by libc's send() and recv(), so this program has a send() and a recv() of its
//! own, which the dynamic linker finds before libc's. They do what libc's do, by way of sendto()
//! and recvfrom(), and note the datagram for the exchange on whose behalf libcoap runs.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::time::Instant;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::ffi::{
    self, COAP_MESSAGE_ACK, COAP_MESSAGE_CON, COAP_MESSAGE_RST, COAP_NACK_NOT_DELIVERABLE,
    COAP_NACK_RST, COAP_NACK_TOO_MANY_RETRIES, COAP_RESPONSE_CODE_CHANGED,
    COAP_RESPONSE_CODE_CONTENT, COAP_RESPONSE_OK, CoapPdu, CoapSession,
};
use crate::outcome::{Datagram, Direction};

/// Version, type and token length; code; message ID: RFC 7252 section 3.
const HEADER_BYTES: usize = 4;

thread_local! {
    /// The exchange on whose behalf libcoap runs on this thread.
    static CURRENT: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

type Shared = Rc<RefCell<Record>>;

/// The record of an exchange, to be shared with what libcoap calls.
pub(crate) struct Observed(Shared);

/// What was seen of an exchange so far.
pub(crate) struct Record {
    begun: Instant,
    random: Xoshiro256PlusPlus,
    pub datagrams: Vec<Datagram>,
    /// Times that a socket call found the server unreachable.
    pub unreachable: u32,
    pub end: Option<End>,
}

/// How libcoap ended an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By a response.
    Response {
        /// When it was decoded, ns.
        at_ns: u64,
        /// How many datagrams had been sent or received by then.
        datagrams: usize,
        /// Its code, as in the header.
        code: u8,
        /// The length of its body.
        body_bytes: u64,
    },
    /// Without one.
    Failure(&'static str),
}

impl Observed {
    /// `seed` decides what libcoap draws.
    pub(crate) fn new(seed: u64) -> Observed {
        Observed(Rc::new(RefCell::new(Record {
            begun: Instant::now(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            datagrams: Vec::new(),
            unreachable: 0,
            end: None,
        })))
    }

    /// Calls libcoap on behalf of this exchange.
    pub(crate) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        struct Restore(Option<Shared>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.0.clone())));
        call()
    }

    /// Looks at the record or changes it; never while libcoap runs for it.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Record) -> T) -> T {
        look(&mut self.0.borrow_mut())
    }
}

impl Record {
    pub(crate) fn start(&mut self) {
        self.begun = Instant::now();
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn draw(&mut self, bytes: &mut [u8]) {
        self.random.fill_bytes(bytes);
    }

    /// Whether an RST was received.
    pub(crate) fn was_reset(&self) -> bool {
        self.received().any(|datagram| datagram.message_type == COAP_MESSAGE_RST)
    }

    /// When an empty ACK was read, ns.
    pub(crate) fn acknowledged_ns(&self) -> Option<u64> {
        let is_empty_ack = |one: &&Datagram| one.message_type == COAP_MESSAGE_ACK && one.code == 0;
        self.received().find(is_empty_ack).map(|datagram| datagram.at_ns)
    }

    /// When the first datagram with a response code was read, ns (RFC 7252 section 12.1: class 2
    /// to 5).
    pub(crate) fn response_ns(&self) -> Option<u64> {
        self.received().find(|one| (2..=5).contains(&(one.code >> 5))).map(|one| one.at_ns)
    }

    /// Confirmable messages whose message ID was sent before.
    pub(crate) fn retransmissions(&self) -> impl Iterator<Item = &Datagram> {
        let is_con = |one: &Datagram| {
            one.direction == Direction::Sent && c_int::from(one.message_type) == COAP_MESSAGE_CON
        };
        self.datagrams.iter().enumerate().filter_map(move |(index, one)| {
            let same = |other: &Datagram| is_con(other) && other.message_id == one.message_id;
            (is_con(one) && self.datagrams[..index].iter().any(same)).then_some(one)
        })
    }

    fn received(&self) -> impl Iterator<Item = &Datagram> {
        self.datagrams.iter().filter(|one| one.direction == Direction::Received)
    }

    fn note(&mut self, direction: Direction, at: Instant, bytes: &[u8]) {
        let header = bytes.first_chunk::<HEADER_BYTES>().copied().unwrap_or_default();
        self.datagrams.push(Datagram {
            direction,
            at_ns: nanos(at, self.begun),
            bytes: bytes.len() as u64,
            message_type: header[0] >> 4 & 3,
            code: header[1],
            message_id: u16::from_be_bytes([header[2], header[3]]),
        });
    }
}

/// Has libcoap call this module on behalf of a context.
pub(crate) fn register(context: *mut ffi::CoapContext) {
    // SAFETY: the context is alive, and the handlers live as long as the program.
    unsafe {
        ffi::coap_register_response_handler(context, on_response);
        ffi::coap_register_nack_handler(context, on_nack);
    }
}

fn current<T>(look: impl FnOnce(&mut Record) -> T) -> Option<T> {
    // A thread that ends, or a nested call, is not an exchange's.
    CURRENT
        .try_with(|current| {
            let current = current.try_borrow().ok()?;
            let mut record = current.as_ref()?.try_borrow_mut().ok()?;
            Some(look(&mut record))
        })
        .ok()
        .flatten()
}

extern "C" fn on_response(
    _session: *mut CoapSession,
    _sent: *const CoapPdu,
    received: *const CoapPdu,
    _message_id: c_int,
) -> c_int {
    let now = Instant::now();
    let (mut length, mut offset, mut total) = (0, 0, 0);
    let mut data = std::ptr::null();
    // SAFETY: libcoap passes a PDU that is alive during this call, and writes four values.
    let (code, has_body) = unsafe {
        let code = ffi::coap_pdu_get_code(received);
        let has_body = ffi::coap_get_data_large(
            received,
            &raw mut length,
            &raw mut data,
            &raw mut offset,
            &raw mut total,
        );
        (code, has_body == 1)
    };
    current(|record| {
        // A second response, to a request that was sent again, changes nothing.
        if record.end.is_none() {
            record.end = Some(End::Response {
                at_ns: nanos(now, record.begun),
                datagrams: record.datagrams.len(),
                code: u8::try_from(code).unwrap_or(u8::MAX),
                body_bytes: if has_body { length as u64 } else { 0 },
            });
        }
    });
    COAP_RESPONSE_OK
}

extern "C" fn on_nack(
    _session: *mut CoapSession,
    _sent: *const CoapPdu,
    reason: c_int,
    _message_id: c_int,
) {
    let why = match reason {
        COAP_NACK_TOO_MANY_RETRIES => "not acknowledged",
        COAP_NACK_NOT_DELIVERABLE => "not deliverable",
        COAP_NACK_RST => "reset",
        // An ICMP message: libcoap keeps the request, and sends it again when its time has come.
        _ => return,
    };
    current(|record| *record.end.get_or_insert(End::Failure(why)));
}

/// `coap_rand_func_t` for libcoap: bytes of the current exchange's own stream.
pub(crate) extern "C" fn random(out: *mut c_void, length: usize) -> c_int {
    // SAFETY: libcoap passes a buffer of that length.
    let bytes = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), length) };
    c_int::from(current(|record| record.draw(bytes)).is_some())
}

/// libc's send(), seen.
///
/// # Safety
///
/// As send(2): `length` bytes can be read at `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    socket: c_int,
    data: *const c_void,
    length: usize,
    flags: c_int,
) -> isize {
    let at = Instant::now();
    // SAFETY: send() is sendto() without an address (send(2)).
    let sent = unsafe { libc::sendto(socket, data, length, flags, std::ptr::null(), 0) };
    if let Ok(count) = usize::try_from(sent) {
        // SAFETY: the kernel has just read that many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), count) };
        current(|record| record.note(Direction::Sent, at, bytes));
    } else {
        note_unreachable();
    }
    sent
}

/// libc's recv(), seen.
///
/// # Safety
///
/// As recv(2): `length` bytes can be written at `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    socket: c_int,
    data: *mut c_void,
    length: usize,
    flags: c_int,
) -> isize {
    let nobody = std::ptr::null_mut();
    // SAFETY: recv() is recvfrom() without an address (recv(2)).
    let received =
        unsafe { libc::recvfrom(socket, data, length, flags, nobody, std::ptr::null_mut()) };
    if let Ok(count) = usize::try_from(received) {
        let at = Instant::now();
        // SAFETY: the kernel has just written that many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), count) };
        current(|record| record.note(Direction::Received, at, bytes));
    } else {
        note_unreachable();
    }
    received
}

/// Notes an ICMP message, and leaves errno as it is.
fn note_unreachable() {
    // SAFETY: errno is this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    if [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH].contains(&errno) {
        current(|record| record.unreachable += 1);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
}

fn nanos(now: Instant, begun: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(begun).as_nanos()).unwrap_or(u64::MAX)
}

/// A code as text: `4.04`.
pub(crate) fn code_text(code: u8) -> String {
    format!("{}.{:02}", code >> 5, code & 0x1f)
}

/// Whether a response says 2.05 Content to a GET, or 2.04 Changed to a PUT.
pub(crate) fn is_success(code: u8, uploads: bool) -> bool {
    let expected = if uploads { COAP_RESPONSE_CODE_CHANGED } else { COAP_RESPONSE_CODE_CONTENT };
    c_int::from(code) == expected
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        (one, other)
    }

    #[test]
    fn datagrams_are_noted_for_the_current_exchange_alone() {
        let (one, other) = pair();
        let observed = Observed::new(0);
        // CON, token of 1 B, GET, message ID 0x1234.
        observed.during(|| one.send(&[0x41, 0x01, 0x12, 0x34, 0x07])).unwrap();
        other.send(&[0x61, 0x45, 0x12, 0x34, 0x07, 0xff, b'x']).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(observed.during(|| one.recv(&mut buffer)).unwrap(), 7);
        observed.with(|record| {
            let [request, response] = record.datagrams[..] else { panic!("two datagrams") };
            assert_eq!((request.direction, request.bytes), (Direction::Sent, 5));
            assert_eq!((request.message_type, request.code, request.message_id), (0, 1, 0x1234));
            assert_eq!((response.direction, response.bytes), (Direction::Received, 7));
            assert_eq!((response.message_type, response.code), (2, 69));
            assert!(record.response_ns() == Some(response.at_ns) && !record.was_reset());
        });
    }

    #[test]
    fn same_message_id_counts_as_retransmission() {
        let (one, _other) = pair();
        let observed = Observed::new(0);
        let request = [0x40, 0x01, 0x00, 0x01];
        // A NON is never sent again by the protocol; another message ID is another message.
        for datagram in [request, request, [0x50, 1, 0, 1], [0x40, 1, 0, 2], request] {
            observed.during(|| one.send(&datagram)).unwrap();
        }
        assert_eq!(observed.with(|record| record.retransmissions().count()), 2);
    }

    #[test]
    fn closed_port_counts_as_unreachable() {
        let (one, other) = pair();
        drop(other);
        let observed = Observed::new(0);
        observed.during(|| one.send(&[0x40, 1, 0, 1])).unwrap();
        let refused = observed.during(|| one.recv(&mut [0; 16])).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(observed.with(|record| record.unreachable), 1);
    }

    #[test]
    fn random_stream_repeats_by_seed() {
        let drawn = |seed| {
            let observed = Observed::new(seed);
            let mut bytes = [0_u8; 12];
            let done = observed.during(|| random(bytes.as_mut_ptr().cast::<c_void>(), bytes.len()));
            assert_eq!(done, 1);
            bytes
        };
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
        let mut bytes = [0_u8; 1];
        assert_eq!(random(bytes.as_mut_ptr().cast::<c_void>(), 1), 0, "nobody's exchange");
    }

    #[test]
    fn codes_read_as_in_rfc_7252() {
        assert_eq!((code_text(0x84), code_text(69)), ("4.04".into(), "2.05".into()));
        assert!(is_success(69, false) && !is_success(0x84, false));
        assert!(is_success(68, true) && !is_success(69, true) && !is_success(68, false));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection, from its preparation to the end of the response.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use openssl::ssl::{ErrorCode, ShutdownState, Ssl, SslSession, SslStream};
use socket2::{Domain, Protocol, Socket, Type};
use warifu_os::clock::now;

use super::outcome::Outcome;
use super::sessions::Seen;
use super::wire::Wire;
use crate::error::Error;
use crate::ffi;

/// The longest record, and nginx's buffer (`ssl_buffer_size 16k`).
const BUFFER_BYTES: usize = 16_384;
/// The head of nginx's response is below 300 B; a longer one is not an answer to our request.
const MOST_HEAD_BYTES: usize = 65_536;

/// What a connection is made of.
pub(super) struct Blueprint<'a> {
    pub address: SocketAddr,
    pub nagle: bool,
    pub request: &'a [u8],
    /// The TLS object and what watches it; `None` speaks plain HTTP.
    pub tls: Option<(Ssl, Arc<Seen>)>,
    /// The request goes as early data.
    pub early: bool,
    /// ClientHello is made before the connection opens.
    pub prepared: bool,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Early,
    Handshake,
    Request,
    Response,
    Done,
}

enum Channel {
    Plain(Wire),
    Tls(Box<SslStream<Wire>>),
}

/// Whether a connection has more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Waits,
    Done,
}

/// A connection under way.
pub(super) struct Connection {
    channel: Channel,
    seen: Option<Arc<Seen>>,
    socket: Option<Socket>,
    address: SocketAddr,
    stage: Stage,
    early: bool,
    request: Vec<u8>,
    /// How much of it plain HTTP has written.
    written: usize,
    response: Response,
    begun: Instant,
    /// What TCP had sent again when the connection was there, and at the first response.
    resent: Resent,
    pub outcome: Outcome,
}

impl Connection {
    /// Makes everything that can be made before the clock starts.
    pub(super) fn prepare(trial: u32, blueprint: Blueprint<'_>) -> Result<Connection, Error> {
        let system = |what| move |source| Error::System { what, source };
        let domain = Domain::for_address(blueprint.address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
            .map_err(system("creating a socket"))?;
        socket.set_nonblocking(true).map_err(system("making a socket non-blocking"))?;
        socket.set_tcp_nodelay(!blueprint.nagle).map_err(system("setting TCP_NODELAY"))?;
        let wire = Wire::new();
        let (channel, seen) = match blueprint.tls {
            None => (Channel::Plain(wire), None),
            Some((mut ssl, seen)) => {
                ffi::watch(&mut ssl, seen.clone(), false)?;
                (Channel::Tls(Box::new(SslStream::new(ssl, wire)?)), Some(seen))
            }
        };
        let mut connection = Connection {
            channel,
            seen,
            socket: Some(socket),
            address: blueprint.address,
            stage: Stage::Connecting,
            early: blueprint.early,
            request: blueprint.request.to_vec(),
            written: 0,
            response: Response::default(),
            begun: Instant::now(),
            resent: Resent::default(),
            outcome: Outcome { trial, ..Outcome::default() },
        };
        if blueprint.prepared {
            connection.make_client_hello().map_err(Error::Tls)?;
        }
        Ok(connection)
    }

    /// Starts the clock and calls connect(). The socket is to be watched for becoming writable.
    pub(super) fn start(&mut self) -> Result<TcpStream, String> {
        let Some(socket) = self.socket.take() else {
            return Err("the connection was started twice".into());
        };
        self.outcome.start_ns = now().0;
        self.begun = Instant::now();
        match socket.connect(&self.address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(cause(&error)),
        }
        // The kernel has chosen it; the answer is still on its way.
        self.outcome.port = socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket())
            .map_or(0, |a| a.port());
        Ok(TcpStream::from_std(socket.into()))
    }

    /// The socket became ready: connect() has completed, one way or the other.
    pub(super) fn connected(&mut self, socket: TcpStream) -> Result<Progress, String> {
        match socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(cause(&error)),
        }
        self.outcome.connect_ns = self.elapsed_ns();
        let tls = matches!(self.channel, Channel::Tls(_));
        self.wire().connect(socket).map_err(|error| cause(&error))?;
        self.stage = match (tls, self.early && self.stage == Stage::Connecting) {
            (false, _) => Stage::Request,
            (true, true) => Stage::Early,
            (true, false) => Stage::Handshake,
        };
        self.drive()
    }

    /// Does all that can be done now, and then notes what TCP sent again, so that asking it takes
    /// no time of what is measured.
    pub(super) fn drive(&mut self) -> Result<Progress, String> {
        let progress = self.step_on();
        if self.outcome.connect_ns > 0 && self.resent.connected.is_none() {
            self.resent.connected = self.total_retransmitted();
        }
        if self.outcome.first_ns > 0 && self.resent.responded.is_none() {
            self.resent.responded = self.total_retransmitted();
        }
        progress
    }

    fn total_retransmitted(&mut self) -> Option<u32> {
        Some(tcp_info(self.wire().socket()?)?.tcpi_total_retrans)
    }

    fn step_on(&mut self) -> Result<Progress, String> {
        loop {
            let goes_on = match self.stage {
                Stage::Connecting => false,
                Stage::Early => self.write_early()?,
                Stage::Handshake => self.handshake()?,
                Stage::Request => self.write_request()?,
                Stage::Response => self.read()?,
                Stage::Done => return Ok(Progress::Done),
            };
            if !goes_on {
                return Ok(Progress::Waits);
            }
        }
    }

    /// Takes the socket from the connection, to end watching it, and notes what TCP says of it.
    pub(super) fn close(&mut self) -> Option<&mut TcpStream> {
        if let Channel::Tls(stream) = &mut self.channel {
            // A session whose connection was freed without a shutdown is not resumable.
            stream.set_shutdown(ShutdownState::SENT | ShutdownState::RECEIVED);
            self.outcome.resumed = stream.ssl().session_reused();
            self.outcome.early_data = ffi::early_data_accepted(stream.ssl());
        }
        if let Some(seen) = &self.seen {
            (self.outcome.signatures, self.outcome.sizes) = seen.told();
        }
        let Resent { connected, responded } = self.resent;
        self.outcome.syn_timeouts = connected.unwrap_or(0);
        self.outcome.retransmissions =
            responded.unwrap_or(0).saturating_sub(self.outcome.syn_timeouts);
        (self.outcome.sent_all, self.outcome.received_all) =
            (self.wire().sent, self.wire().received);
        let info = self.wire().socket().and_then(|socket| tcp_info(socket));
        if let Some(info) = info {
            self.outcome.retransmitted = info.tcpi_total_retrans;
            self.outcome.retransmitted_bytes = info.tcpi_bytes_retrans;
            self.outcome.rto_us = info.tcpi_rto;
            self.outcome.rtt_us = info.tcpi_rtt;
            self.outcome.cwnd = info.tcpi_snd_cwnd;
        }
        self.wire().socket()
    }

    /// The session that a later connection can resume.
    pub(super) fn session(&self) -> Option<SslSession> {
        match &self.channel {
            Channel::Plain(_) => None,
            Channel::Tls(stream) => stream.ssl().session().map(ToOwned::to_owned),
        }
    }

    /// How long it has been under way.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wire(&mut self) -> &mut Wire {
        match &mut self.channel {
            Channel::Plain(wire) => wire,
            Channel::Tls(stream) => stream.get_mut(),
        }
    }

    /// Steps the handshake once; the wire holds ClientHello, and early data, back.
    fn make_client_hello(&mut self) -> Result<(), String> {
        if self.early {
            self.stage = Stage::Early;
            self.write_early()?;
        }
        self.handshake()?;
        Ok(())
    }

    fn tls<T>(
        &mut self,
        call: impl FnOnce(&mut SslStream<Wire>) -> Result<T, openssl::ssl::Error>,
    ) -> Result<Option<T>, String> {
        let Channel::Tls(stream) = &mut self.channel else {
            return Err("TLS on a plain connection".into());
        };
        match call(stream) {
            Ok(value) => Ok(Some(value)),
            Err(error) => match error.code() {
                ErrorCode::WANT_READ | ErrorCode::WANT_WRITE => Ok(None),
                ErrorCode::ZERO_RETURN => Err("closed".into()),
                _ => Err(match (error.io_error(), error.ssl_error()) {
                    (Some(error), _) => cause(error),
                    // The end of the stream without close_notify.
                    (None, None) => "closed".into(),
                    (None, Some(_)) => error.to_string(),
                }),
            },
        }
    }

    fn write_early(&mut self) -> Result<bool, String> {
        let request = std::mem::take(&mut self.request);
        self.tls(|stream| stream.write_early_data(&request))?;
        self.request = request;
        self.stage = Stage::Handshake;
        Ok(true)
    }

    fn handshake(&mut self) -> Result<bool, String> {
        if self.tls(|stream| stream.do_handshake())?.is_none() {
            return Ok(false);
        }
        self.outcome.handshake_ns = self.elapsed_ns();
        let accepted = match &self.channel {
            Channel::Tls(stream) => self.early && ffi::early_data_accepted(stream.ssl()),
            Channel::Plain(_) => false,
        };
        self.stage = if accepted { Stage::Response } else { Stage::Request };
        Ok(true)
    }

    fn write_request(&mut self) -> Result<bool, String> {
        let request = std::mem::take(&mut self.request);
        let written = match &mut self.channel {
            Channel::Tls(_) => self.tls(|stream| stream.ssl_write(&request))?,
            Channel::Plain(wire) => {
                self.outcome.handshake_ns = self.outcome.connect_ns;
                while self.written < request.len() {
                    match wire.write(&request[self.written..]) {
                        Ok(count) => self.written += count,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(cause(&error)),
                    }
                }
                (self.written == request.len()).then_some(self.written)
            }
        };
        self.request = request;
        // What does not fit the socket's buffer is written when there is room again.
        if written.is_some() {
            self.stage = Stage::Response;
        }
        Ok(written.is_some())
    }

    fn read(&mut self) -> Result<bool, String> {
        let mut buffer = [0; BUFFER_BYTES];
        let count = match &mut self.channel {
            Channel::Tls(_) => match self.tls(|stream| stream.ssl_read(&mut buffer)) {
                Ok(None) => return Ok(false),
                Ok(Some(count)) => count,
                Err(closed) if closed == "closed" => 0,
                Err(error) => return Err(error),
            },
            Channel::Plain(wire) => match wire.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(cause(&error)),
            },
        };
        if count == 0 {
            return Err("closed".into());
        }
        if self.outcome.first_ns == 0 {
            self.outcome.first_ns = self.elapsed_ns();
            (self.outcome.sent, self.outcome.received) = (self.wire().sent, self.wire().received);
        }
        if self.response.take(&buffer[..count])? {
            self.outcome.done_ns = self.elapsed_ns();
            self.stage = Stage::Done;
        }
        Ok(true)
    }
}

/// Segments that TCP had sent again at two moments, SYNs included.
#[derive(Clone, Copy, Default)]
struct Resent {
    connected: Option<u32>,
    responded: Option<u32>,
}

/// How much of the response is still to come.
#[derive(Default)]
struct Response {
    head: Vec<u8>,
    body_left: Option<u64>,
}

impl Response {
    /// Takes bytes; whether the response is whole.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, String> {
        if let Some(left) = &mut self.body_left {
            *left = left.saturating_sub(bytes.len() as u64);
            return Ok(*left == 0);
        }
        self.head.extend_from_slice(bytes);
        let Some(end) = self.head.windows(4).position(|window| window == b"\r\n\r\n") else {
            return match self.head.len() {
                0..=MOST_HEAD_BYTES => Ok(false),
                _ => Err("the response has no end of its head".into()),
            };
        };
        let head = String::from_utf8_lossy(&self.head[..end]).into_owned();
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("the server answered {:?}", head.lines().next().unwrap_or("")));
        }
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse::<u64>().ok())
            .ok_or("the response has no Content-Length")?;
        let left = length.saturating_sub((self.head.len() - end - 4) as u64);
        self.body_left = Some(left);
        Ok(left == 0)
    }
}

/// A word for what can be expected, the system's words for the rest.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused".into(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset".into(),
        io::ErrorKind::TimedOut => "timeout".into(),
        _ => error.to_string(),
    }
}

fn tcp_info(socket: &TcpStream) -> Option<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `info`,
    // which is plain numbers and valid when zeroed.
    unsafe {
        let done = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        );
        (done == 0).then(|| info.assume_init())
    }
}

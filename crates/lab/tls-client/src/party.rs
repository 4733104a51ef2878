// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two programs of an HTTPS exchange, each over a pipe in memory: a party is
//! woken with bytes, does all that it can, and leaves the bytes that it wrote.

use std::io::{self, Read, Write};
use std::mem;

use openssl::ssl::{ErrorCode, ShutdownState, Ssl, SslRef, SslSession, SslStream};
use serde::Serialize;

use crate::error::Error;
use crate::ffi;

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// It connects.
    Client,
    /// It accepts.
    Server,
}

/// One call into libssl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `SSL_write_early_data`.
    WriteEarly,
    /// `SSL_read_early_data`.
    ReadEarly,
    /// `SSL_do_handshake`.
    Handshake,
    /// `SSL_write`.
    Write,
    /// `SSL_read`.
    Read,
    /// `SSL_shutdown`.
    Shutdown,
}

/// What is told of a party's calls, besides what [`Watch`](crate::Watch) sees inside them.
pub trait Observer {
    /// A call begins.
    fn begin(&mut self, _call: Call) {}
    /// It has returned; `took_data` if it read application data.
    fn end(&mut self, _call: Call, _took_data: bool) {}
}

impl Observer for () {}

/// A stream in memory that remembers each write call.
#[derive(Default)]
pub struct Pipe {
    inbound: Vec<u8>,
    taken: usize,
    /// What was written since it was last taken, one item for each write call.
    pub writes: Vec<Vec<u8>>,
}

impl Pipe {
    /// Makes bytes readable.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken == self.inbound.len() {
            self.inbound.clear();
            self.taken = 0;
        }
        self.inbound.extend_from_slice(bytes);
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = &self.inbound[self.taken..];
        if ready.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.taken += count;
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is asked and answered once the connection is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The client's request, one `SSL_write`.
    pub request: Vec<u8>,
    /// Length of the server's whole response, headers included.
    pub response_bytes: usize,
}

impl Exchange {
    /// The lab's request for `path`, and a response of `response_bytes`.
    pub fn get(path: &str, response_bytes: usize) -> Self {
        Self { request: request(path), response_bytes }
    }
}

impl Default for Exchange {
    /// `GET /` answered by 256 bytes.
    fn default() -> Self {
        Self::get("/", 256)
    }
}

/// The text of the lab's request.
pub fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: warifu.test\r\nConnection: close\r\n\r\n").into_bytes()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Early,
    Handshake,
    Request,
    Response,
    Close,
    Done,
}

/// One end of a connection with its program.
pub struct Party {
    /// Which end it is.
    pub from: From,
    stream: SslStream<Pipe>,
    stage: Stage,
    exchange: Exchange,
    received: Vec<u8>,
    early_sent: bool,
    answered: bool,
}

/// nginx fills records of this size (`ssl_buffer_size 16k`), the protocol's greatest.
const RECORD_BYTES: usize = 16_384;

impl Party {
    /// A client that sends the request as soon as it may; with `early`, as early data.
    pub fn client(ssl: Ssl, exchange: Exchange, early: bool) -> Result<Self, Error> {
        Self::new(From::Client, ssl, exchange, early)
    }

    /// A server that answers and closes; with `early`, it takes early data as nginx does.
    pub fn server(mut ssl: Ssl, exchange: Exchange, early: bool) -> Result<Self, Error> {
        ssl.set_accept_state();
        Self::new(From::Server, ssl, exchange, early)
    }

    fn new(from: From, ssl: Ssl, exchange: Exchange, early: bool) -> Result<Self, Error> {
        let stage = if early { Stage::Early } else { Stage::Handshake };
        Ok(Self {
            from,
            stream: SslStream::new(ssl, Pipe::default())?,
            stage,
            exchange,
            received: Vec::new(),
            early_sent: false,
            answered: false,
        })
    }

    /// Gives it bytes from the peer.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.stream.get_mut().feed(bytes);
    }

    /// Takes what it wrote, one item for each write call.
    pub fn take_writes(&mut self) -> Vec<Vec<u8>> {
        mem::take(&mut self.stream.get_mut().writes)
    }

    /// Whether its program has ended.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        !matches!(self.stage, Stage::Early | Stage::Handshake)
    }

    /// Application bytes received so far.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// The connection, to be asked about.
    pub fn ssl(&self) -> &SslRef {
        self.stream.ssl()
    }

    /// The session that a later connection can resume.
    pub fn session(&self) -> Option<SslSession> {
        self.stream.ssl().session().map(ToOwned::to_owned)
    }

    /// Does all that it can with the bytes that it has.
    pub fn wake(&mut self, observer: &mut impl Observer) -> Result<(), Error> {
        loop {
            let before = self.stage;
            let waits = match (self.from, self.stage) {
                (From::Client, Stage::Early) => self.write_early(observer)?,
                (From::Server, Stage::Early) => self.read_early(observer)?,
                (_, Stage::Handshake) => self.handshake(observer)?,
                (From::Client, Stage::Request) => self.write_request(observer)?,
                (From::Client, Stage::Response) => self.read(observer)?,
                (From::Server, Stage::Request) => self.read_request(observer)?,
                (From::Server, Stage::Response) => self.write_response(observer)?,
                (_, Stage::Close) => self.close(observer)?,
                (_, Stage::Done) => true,
            };
            if waits || self.stage == Stage::Done && before == Stage::Done {
                return Ok(());
            }
        }
    }

    fn call<T>(
        &mut self,
        observer: &mut impl Observer,
        call: Call,
        body: impl FnOnce(&mut SslStream<Pipe>) -> Result<T, openssl::ssl::Error>,
    ) -> Result<Option<T>, Error> {
        observer.begin(call);
        let result = body(&mut self.stream);
        observer.end(call, false);
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write_early(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let request = self.exchange.request.clone();
        self.call(observer, Call::WriteEarly, |stream| stream.write_early_data(&request))?;
        self.early_sent = true;
        self.stage = Stage::Handshake;
        Ok(false)
    }

    /// nginx answers early data at once, before the client's Finished
    /// (`ngx_ssl_recv_early`, `ngx_ssl_write_early`).
    fn read_early(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let mut buffer = [0; 4096];
        observer.begin(Call::ReadEarly);
        let result = self.stream.read_early_data(&mut buffer);
        observer.end(Call::ReadEarly, matches!(result, Ok(count) if count > 0));
        match result {
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(true),
            Err(error) => Err(error.into()),
            Ok(0) => {
                self.stage = Stage::Handshake;
                Ok(false)
            }
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                if self.request_is_whole() && !self.answered {
                    let response = response(self.exchange.response_bytes);
                    for record in response.chunks(RECORD_BYTES) {
                        self.call(observer, Call::WriteEarly, |stream| {
                            stream.write_early_data(record)
                        })?;
                    }
                    self.answered = true;
                }
                Ok(false)
            }
        }
    }

    fn handshake(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        if self.call(observer, Call::Handshake, |stream| stream.do_handshake())?.is_none() {
            return Ok(true);
        }
        let early = self.early_sent && ffi::early_data_accepted(self.ssl());
        self.stage = match self.from {
            From::Client if early => Stage::Response,
            From::Server if self.answered => Stage::Close,
            _ => Stage::Request,
        };
        Ok(false)
    }

    fn write_request(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let request = self.exchange.request.clone();
        self.call(observer, Call::Write, |stream| stream.ssl_write(&request))?;
        self.stage = Stage::Response;
        Ok(false)
    }

    fn read(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let mut buffer = [0; RECORD_BYTES];
        observer.begin(Call::Read);
        let result = self.stream.ssl_read(&mut buffer);
        observer.end(Call::Read, result.is_ok());
        match result {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(false)
            }
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(true),
            Err(error) if error.code() == ErrorCode::ZERO_RETURN => {
                self.stage = Stage::Close;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_request(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let waits = self.read(observer)?;
        if !self.request_is_whole() {
            return Ok(waits);
        }
        self.stage = Stage::Response;
        Ok(false)
    }

    fn request_is_whole(&self) -> bool {
        self.received.len() >= self.exchange.request.len()
    }

    fn write_response(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        let response = response(self.exchange.response_bytes);
        for record in response.chunks(RECORD_BYTES) {
            self.call(observer, Call::Write, |stream| stream.ssl_write(record))?;
        }
        self.stage = Stage::Close;
        Ok(false)
    }

    /// Sends close_notify. The peer's is not waited for: nginx closes at once, and a
    /// client is told to close by the server's.
    fn close(&mut self, observer: &mut impl Observer) -> Result<bool, Error> {
        self.call(observer, Call::Shutdown, |stream| stream.shutdown())?;
        self.stage = Stage::Done;
        Ok(false)
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // A session whose connection was freed without a shutdown is not resumable.
        self.stream.set_shutdown(ShutdownState::SENT | ShutdownState::RECEIVED);
    }
}

fn response(bytes: usize) -> Vec<u8> {
    vec![b'w'; bytes]
}

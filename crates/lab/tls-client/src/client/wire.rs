// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes below TLS: a socket that counts, and that holds writes back until it is connected.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

/// A socket that does not block, before and after it is connected.
pub(super) struct Wire {
    socket: Option<TcpStream>,
    /// Written before the connection was up: a ClientHello made beforehand.
    held: Vec<u8>,
    /// Bytes written to the socket.
    pub sent: u64,
    /// Bytes read from the socket.
    pub received: u64,
}

impl Wire {
    pub(super) fn new() -> Wire {
        Wire { socket: None, held: Vec::new(), sent: 0, received: 0 }
    }

    /// Takes a connected socket, and writes what was held back in one call.
    pub(super) fn connect(&mut self, socket: TcpStream) -> io::Result<()> {
        self.socket = Some(socket);
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        // A fresh socket's buffer takes far more than any first flight.
        match self.write(&held)? {
            count if count == held.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    pub(super) fn socket(&mut self) -> Option<&mut TcpStream> {
        self.socket.as_mut()
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(socket) = &mut self.socket else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let count = socket.read(buffer)?;
        self.received += count as u64;
        Ok(count)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(socket) = &mut self.socket else {
            self.held.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        let count = socket.write(bytes)?;
        self.sent += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Unix socket of `warifu-card-server`: a length of 4 bytes, the most significant first, then
//! an APDU. A length of 0 asks for a reset; its answer is the answer to reset.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warifu_os::DeadlineStream;
use zeroize::Zeroizing;

use super::{Transport, TransportError, checked, permission_denied};

/// More than any APDU: extended lengths end at 65536 bytes of data.
const FRAME_MAX_BYTES: usize = 70_000;

/// A connection to the virtual card's socket.
pub struct Unix {
    path: PathBuf,
    /// None before the first connection, and after an error that may leave an answer pending:
    /// closing the connection discards late answers.
    stream: Option<DeadlineStream>,
}

impl Unix {
    /// A transport that connects when it is first used.
    #[must_use]
    pub fn new(path: &Path) -> Unix {
        Unix { path: path.to_owned(), stream: None }
    }

    fn stream(&mut self, deadline: Instant) -> Result<&DeadlineStream, TransportError> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => DeadlineStream::connect(&self.path, deadline)
                .map_err(|error| self.missing(&error))?,
        };
        Ok(self.stream.insert(stream))
    }

    fn missing(&self, error: &io::Error) -> TransportError {
        let at = self.path.display();
        TransportError::Gone(match error.kind() {
            io::ErrorKind::TimedOut => return TransportError::Timeout(self.name()),
            // The socket of a killed server remains.
            io::ErrorKind::ConnectionRefused => format!(
                "the server of the virtual card at {at} has ended; start it with: warifu card serve"
            ),
            io::ErrorKind::PermissionDenied => {
                permission_denied("the virtual card", &self.path, |user| {
                    format!(
                        "share it by an agent of its owner, with uid = {user} in a [[caller]] of \
                         agent.toml, and set WARIFU_CARD to agent:SOCKET"
                    )
                })
            }
            _ => format!(
                "no virtual card at {at}: {error}; start one with: warifu card serve; for one that \
                 runs already, set WARIFU_CARD to what it printed"
            ),
        })
    }

    fn round_trip(&mut self, body: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let stream = self.stream(deadline)?;
        let answer = send_and_receive(stream, body, deadline);
        answer.map_err(|error| {
            self.stream = None;
            match error.kind() {
                io::ErrorKind::TimedOut => TransportError::Timeout(self.name()),
                io::ErrorKind::InvalidData => TransportError::Garbled(error.to_string()),
                _ => TransportError::Gone(format!(
                    "the virtual card at {} closed the connection",
                    self.path.display()
                )),
            }
        })
    }
}

fn send_and_receive(
    stream: &DeadlineStream,
    body: &[u8],
    deadline: Instant,
) -> io::Result<Vec<u8>> {
    let mut frame = Zeroizing::new(Vec::with_capacity(4 + body.len()));
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(body);
    stream.write_all(&frame, deadline)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length, deadline)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX_BYTES {
        let text = format!("invalid answer length from the virtual card: {length} B");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer, deadline)?;
    Ok(answer)
}

impl Transport for Unix {
    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        self.stream(deadline).map(drop)
    }

    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        // Another client may have used the card: the caller must open its channel again.
        if self.stream.is_none() {
            self.stream(deadline)?;
            return Err(TransportError::CardReset);
        }
        let answer = self.round_trip(apdu, deadline)?;
        if answer.is_empty() {
            // The server's answer if the card was reset at this command.
            return Err(TransportError::CardReset);
        }
        checked(answer, "the virtual card").inspect_err(|_| self.stream = None)
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        self.stream = None;
        self.round_trip(&[], deadline)
    }

    /// The server gives every client channels of its own.
    fn shares_channels(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        format!("unix:{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn empty_answer_is_a_card_reset_and_keeps_the_connection() {
        let folder = std::env::temp_dir().join(format!("warifu-unix-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("card.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in [&[0, 0, 0, 0][..], &[0, 0, 0, 2, 0x90, 0]] {
                let mut frame = [0; 8];
                stream.read_exact(&mut frame).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        let end = Instant::now() + Duration::from_secs(20);
        let mut transport = Unix::new(&path);
        transport.connect(end).unwrap();
        let apdu = [0x80, 0xca, 0, 0];
        assert_eq!(transport.exchange(&apdu, end), Err(TransportError::CardReset));
        assert_eq!(transport.exchange(&apdu, end), Ok(vec![0x90, 0]));
        server.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn connect_to_a_stopped_server_ends_at_the_deadline() {
        let folder = std::env::temp_dir().join(format!("warifu-queue-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("card.sock");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        // Fills the queue of the listener.
        let first = DeadlineStream::connect(&path, Instant::now()).unwrap();
        let (done, ended) = std::sync::mpsc::channel();
        let asked = path.clone();
        thread::spawn(move || {
            let end = Instant::now() + Duration::from_millis(50);
            // After a failure there is no receiver.
            let _ = done.send(Unix::new(&asked).connect(end));
        });
        let said =
            ended.recv_timeout(Duration::from_secs(20)).expect("no end of the connection attempt");
        assert_eq!(said, Err(TransportError::Timeout(format!("unix:{}", path.display()))));
        drop(first);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

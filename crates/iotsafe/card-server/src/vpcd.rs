// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card in the virtual reader of vsmartcard: a TCP connection to `vpcd`, the driver within
//! pcscd.
//!
//! A message is a length of 2 bytes, the most significant first, and its content. From the reader,
//! one byte is a [`Control`] and more is a command APDU; the card answers a request for the ATR and
//! commands, nothing else. The connection itself is the card's presence.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use warifu_os::clock;

use crate::error::ServerError;
use crate::host::{Client, Reply};

/// Where vpcd's first reader listens.
pub const PORT: u16 = 35963;

/// How long a removed card stays away, so that pcscd, which polls every 0.4 s, notices.
const AWAY: Duration = Duration::from_millis(1000);
/// The timeout for connecting to the reader again.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// The interval between connection attempts.
const RETRY: Duration = Duration::from_millis(20);

/// A control message of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// 0.
    PowerOff,
    /// 1.
    PowerOn,
    /// 2.
    Reset,
    /// 4: requests the answer to reset.
    AnswerToReset,
}

/// A message from the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Power, reset, ATR.
    Control(Control),
    /// A command APDU, even if it is malformed: the card refuses it.
    Command(Vec<u8>),
}

impl Message {
    /// Parses the content of a message.
    #[must_use]
    pub fn of(content: Vec<u8>) -> Message {
        match *content {
            [0] => Message::Control(Control::PowerOff),
            [1] => Message::Control(Control::PowerOn),
            [2] => Message::Control(Control::Reset),
            [4] => Message::Control(Control::AnswerToReset),
            _ => Message::Command(content),
        }
    }
}

/// Reads the content of a message; `before_each` is called before each read of the source.
///
/// # Errors
/// `UnexpectedEof` if the reader has closed the connection; errors of the source.
pub fn read<R: Read>(from: &mut R, before_each: fn(&R)) -> io::Result<Vec<u8>> {
    let mut fill = |mut room: &mut [u8]| {
        while !room.is_empty() {
            before_each(from);
            match from.read(room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => room = &mut std::mem::take(&mut room)[bytes..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let mut length = [0; 2];
    fill(&mut length)?;
    let mut content = vec![0; usize::from(u16::from_be_bytes(length))];
    fill(&mut content)?;
    Ok(content)
}

/// Sends a message in one write.
///
/// # Errors
/// `InvalidInput` for more than 65535 bytes; errors of the destination.
pub fn write(to: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let length = u16::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut message = Vec::with_capacity(2 + content.len());
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(content);
    to.write_all(&message)
}

/// Connects to vpcd, which may not listen yet.
///
/// # Errors
/// [`ServerError::Missing`] if it still refuses after `patience`, or if `gave_up` returns true.
pub fn connect(
    address: SocketAddr,
    patience: Duration,
    gave_up: &mut dyn FnMut() -> Option<ServerError>,
) -> Result<TcpStream, ServerError> {
    let until = clock::now().0 + patience.as_nanos() as u64;
    loop {
        let error = match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(|error| ServerError::os("TCP_NODELAY", error))?;
                return Ok(stream);
            }
            Err(error) => error,
        };
        if let Some(reason) = gave_up() {
            return Err(reason);
        }
        if clock::now().0 > until {
            return Err(ServerError::Missing(format!(
                "no virtual reader at {address} ({error}): start pcscd with vsmartcard-vpcd \
                 (`apt-get install pcscd vsmartcard-vpcd`), or use --pcsc, which starts both"
            )));
        }
        std::thread::sleep(RETRY);
    }
}

/// Serves the card to the reader until that closes the connection; `found` is called once, when
/// programs can connect to the card.
///
/// # Errors
/// Why the connection ended.
pub fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    client: &Client,
    found: &mut dyn FnMut(),
) -> Result<(), ServerError> {
    let lost = |error| {
        ServerError::os(format!("the virtual reader at {address} has closed the connection"), error)
    };
    let mut finding = Some(Finding::default());
    loop {
        // Linux ends quick ACKs by itself. Without this before every read, the driver, which writes
        // length and content separately, waits 40 ms for the delayed ACK of the length (tcp(7)).
        let content = read(&mut stream, |stream| {
            let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
        });
        let received = clock::now();
        let message = Message::of(content.map_err(lost)?);
        if finding.as_mut().is_some_and(|finding| finding.ends_with(&message)) {
            finding = None;
            found();
        }
        let answer = match message {
            Message::Control(Control::AnswerToReset) => warifu_card::ATR.to_vec(),
            Message::Control(Control::PowerOn) => continue,
            Message::Control(Control::PowerOff | Control::Reset) => {
                client.reset();
                continue;
            }
            Message::Command(apdu) => match client.transmit(&apdu, received) {
                Reply::Answer(answer) => answer,
                // A reader reports a missing answer after its waiting time (ISO 7816-3 section
                // 7.2), which vpcd does not have: the card is removed and inserted instead.
                Reply::Lost | Reply::Absent | Reply::Reset => {
                    drop(stream);
                    client.reset();
                    std::thread::sleep(AWAY);
                    stream = connect(address, BACK_WITHIN, &mut || None)?;
                    continue;
                }
            },
        };
        write(&mut stream, &answer).map_err(lost)?;
    }
}

/// How far pcscd has come in finding the card.
///
/// It requests the answer to reset to detect a card, powers the card, and requests it once more;
/// only then programs see the card. Its next poll, 0.4 s later, is the first message that can only
/// come after that.
#[derive(Debug, Default)]
struct Finding {
    powered: bool,
    told: bool,
}

impl Finding {
    /// Whether the card has been found, after this message.
    fn ends_with(&mut self, message: &Message) -> bool {
        match message {
            Message::Control(Control::PowerOn) => self.powered = true,
            Message::Control(Control::AnswerToReset) if self.told => return true,
            Message::Control(Control::AnswerToReset) => self.told = self.powered,
            Message::Control(Control::PowerOff | Control::Reset) => {}
            // From a program.
            Message::Command(_) => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_after_power_on_finds_the_card() {
        let order = [4, 4, 1, 4, 4].map(|control| Message::of(vec![control]));
        let mut finding = Finding::default();
        assert_eq!(order.map(|one| finding.ends_with(&one)), [false, false, false, false, true]);
        assert!(Finding::default().ends_with(&Message::Command(vec![0x80, 0x84, 0, 0, 8])));
    }

    #[test]
    fn message_round_trip() {
        let mut stream = Vec::new();
        for content in [&[4][..], &[0x00, 0xa4, 0x04, 0x00], &[], &[7]] {
            write(&mut stream, content).unwrap();
        }
        assert_eq!(stream[..9], [0, 1, 4, 0, 4, 0x00, 0xa4, 0x04, 0x00]);
        let mut source = &stream[..];
        let mut next = || read(&mut source, |_| {}).map(Message::of).map_err(|error| error.kind());
        assert_eq!(next(), Ok(Message::Control(Control::AnswerToReset)));
        assert_eq!(next(), Ok(Message::Command(vec![0x00, 0xa4, 0x04, 0x00])));
        assert_eq!(next(), Ok(Message::Command(vec![])));
        assert_eq!(next(), Ok(Message::Command(vec![7])));
        assert_eq!(next(), Err(io::ErrorKind::UnexpectedEof));
        assert!(write(&mut Vec::new(), &vec![0; 65_536]).is_err());
    }
}

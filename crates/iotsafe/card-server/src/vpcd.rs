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

/// How long a card that was removed stays away: pcscd, which looks every 0.4 s, is to notice.
const AWAY: Duration = Duration::from_millis(1000);
/// How long the reader may take to take it back.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// How often a connection is tried that is refused.
const RETRY: Duration = Duration::from_millis(20);

/// What the reader tells the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// 0.
    PowerOff,
    /// 1.
    PowerOn,
    /// 2.
    Reset,
    /// 4: it wants the answer to reset.
    AnswerToReset,
}

/// A message from the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Power, reset, ATR.
    Control(Control),
    /// A command APDU; one that is no control, however short, is for the card to refuse.
    Command(Vec<u8>),
}

impl Message {
    /// The message of a content.
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
/// `UnexpectedEof` where the reader is gone; else the source's.
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
/// `InvalidInput` for more than 65535 bytes; else the destination's.
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
/// [`ServerError::Missing`] when it still refuses after `patience`, or `gave_up` says to stop.
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
                 (`apt-get install pcscd vsmartcard-vpcd`), or give --pcsc and leave both to this program"
            )));
        }
        std::thread::sleep(RETRY);
    }
}

/// Serves the card to the reader until the reader is gone; `found` is told, once, when programs can
/// connect to the card.
///
/// # Errors
/// How the connection ended.
pub fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    client: &Client,
    found: &mut dyn FnMut(),
) -> Result<(), ServerError> {
    let lost = |error| ServerError::os(format!("the virtual reader at {address} is gone"), error);
    let mut finding = Some(Finding::default());
    loop {
        // Linux leaves quick ACKs by itself. Without this before every read the driver, which
        // writes length and content apart, waits 40 ms for the delayed ACK of the length (tcp(7)).
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
                // A reader that gets no answer says so after its waiting time (ISO 7816-3
                // section 7.2), and vpcd has none: the card goes and comes back.
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

/// How far pcscd is with a card that it finds.
///
/// It asks for the answer to reset to see that a card is there, powers it and asks once more; only
/// then does it tell programs of the card. Its next look, 0.4 s later, is the first message that
/// can only come after that.
#[derive(Debug, Default)]
struct Finding {
    powered: bool,
    told: bool,
}

impl Finding {
    /// Whether the card has been found, by what the reader says now.
    fn ends_with(&mut self, message: &Message) -> bool {
        match message {
            Message::Control(Control::PowerOn) => self.powered = true,
            Message::Control(Control::AnswerToReset) if self.told => return true,
            Message::Control(Control::AnswerToReset) => self.told = self.powered,
            Message::Control(Control::PowerOff | Control::Reset) => {}
            // A program's.
            Message::Command(_) => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_the_look_after_its_power() {
        let order = [4, 4, 1, 4, 4].map(|control| Message::of(vec![control]));
        let mut finding = Finding::default();
        assert_eq!(order.map(|one| finding.ends_with(&one)), [false, false, false, false, true]);
        assert!(Finding::default().ends_with(&Message::Command(vec![0x80, 0x84, 0, 0, 8])));
    }

    #[test]
    fn messages_are_read_and_written() {
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A modem's line (ITU-T V.250): commands out, lines in, up to the final one.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{ControlModes, OptionalActions, QueueSelector};
use warifu_os::{DeadlineStream, printable};

use super::channel_record::ChannelRecord;
use crate::transport::TransportError;

/// The most bytes of a line, enough for any short APDU.
const LINE_MAX_BYTES: usize = 4096;
/// The most lines before the final one: echo, empty lines, unsolicited results.
const LINES_MAX: usize = 64;
/// How long the answer to AT may take after an error that belonged to an earlier command: the modem
/// answers AT without the SIM.
const AT_TIMEOUT: Duration = Duration::from_secs(1);

/// An open line, and whether an answer may still be on its way.
pub(super) struct Line {
    stream: DeadlineStream,
    /// Read, not yet made into lines.
    buffer: Vec<u8>,
    pub(super) synchronised: bool,
    /// The answer to AT+CCHC may still come.
    bare_pending: bool,
    /// Opened, but after the program had given up.
    late_sessions: Vec<u8>,
    pub(super) channels: ChannelRecord,
}

/// What the lines of an answer come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// OK, after this line of information if there was one.
    Ok(Option<Information>),
    /// ERROR, +CME ERROR, +CMS ERROR: the line itself.
    Error(String),
}

/// A line of information that belongs to a command of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Information {
    /// `+CSIM` or `+CGLA`: the card's answer.
    Apdu(Vec<u8>),
    /// `+CCHO`: the number of a session.
    Session(u8),
}

impl Line {
    /// Opens and locks the line of the modem at `path`.
    pub(super) fn open(path: &Path, baud: u32) -> Result<Line, TransportError> {
        let at = path.display();
        let gone = |error: io::Error| {
            TransportError::Gone(format!(
                "no modem at {at}: {error}; is it plugged in, and are you in its group (dialout)?"
            ))
        };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| gone(e.into()))?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            Errno::WOULDBLOCK => {
                TransportError::Gone(format!("the modem at {at} is in use by another program"))
            }
            _ => gone(e.into()),
        })?;
        if !rustix::termios::isatty(&fd) {
            return Err(TransportError::Gone(format!(
                "{at} is no serial line: name the modem's, such as csim:/dev/ttyUSB2"
            )));
        }
        let mut modes = rustix::termios::tcgetattr(&fd).map_err(|e| gone(e.into()))?;
        modes.make_raw();
        modes.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        modes
            .set_speed(baud)
            .and_then(|()| rustix::termios::tcsetattr(&fd, OptionalActions::Now, &modes))
            .map_err(|e| gone(e.into()))?;
        let modes = rustix::termios::tcgetattr(&fd).map_err(|e| gone(e.into()))?;
        if !is_near(modes.output_speed(), baud) {
            return Err(TransportError::Gone(format!(
                "the line at {at} cannot do {} baud (it took {}): give csim:{at},BAUD with the \
                 modem's",
                baud,
                modes.output_speed()
            )));
        }
        let _ = rustix::termios::tcflush(&fd, QueueSelector::IOFlush);
        let device = rustix::fs::fstat(&fd).map_err(|e| gone(e.into()))?.st_rdev;
        Ok(Line {
            stream: DeadlineStream::terminal(fd),
            buffer: Vec::new(),
            synchronised: false,
            bare_pending: false,
            late_sessions: Vec::new(),
            channels: ChannelRecord::of_device(device),
        })
    }

    /// Sends a command, with its `\r`, and waits for its end.
    pub(super) fn command(&mut self, text: &str, deadline: Instant) -> io::Result<Outcome> {
        self.stream.write_all(text.as_bytes(), deadline)?;
        self.outcome(deadline)
    }

    /// Discards pending answers. A modem answers in order, and a late answer to AT+CSIM is a
    /// `+CSIM` line with OK, or an error: an OK without such a line must be the answer to the bare
    /// AT, and then nothing is pending. Switches echo off; a modem that keeps it works too.
    /// Sessions that were opened too late are closed.
    ///
    /// `ConnectionRefused`, with its answer, if it accepts no command.
    pub(super) fn synchronise(&mut self, deadline: Instant) -> io::Result<()> {
        self.stream.drain();
        self.buffer.clear();
        let mut said = String::new();
        for command in ["ATE0\r", "AT\r"] {
            self.stream.write_all(command.as_bytes(), deadline)?;
            match self.until_ok(deadline)? {
                None => {
                    if std::mem::take(&mut self.bare_pending) {
                        self.until_silent(deadline)?;
                    }
                    self.synchronised = true;
                    return self.close_late_sessions(deadline);
                }
                Some(error) => said = error,
            }
        }
        Err(io::Error::new(io::ErrorKind::ConnectionRefused, said))
    }

    fn close_late_sessions(&mut self, deadline: Instant) -> io::Result<()> {
        while let Some(number) = self.late_sessions.pop() {
            self.close_session(number, deadline)?;
        }
        Ok(())
    }

    /// Sends AT+CCHC, whose answer is OK, perhaps after a line `+CCHC`.
    pub(super) fn close_session(&mut self, number: u8, deadline: Instant) -> io::Result<Outcome> {
        self.bare_pending = true;
        let outcome = self.command(&format!("AT+CCHC={number}\r"), deadline)?;
        self.bare_pending = false;
        Ok(outcome)
    }

    /// Reads what comes until nothing does: an answer to AT+CCHC looks like one to AT.
    fn until_silent(&mut self, deadline: Instant) -> io::Result<()> {
        loop {
            match self.outcome(deadline.min(Instant::now() + AT_TIMEOUT)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads up to the OK of a bare command; returns the error that came instead, if nothing
    /// follows.
    fn until_ok(&mut self, deadline: Instant) -> io::Result<Option<String>> {
        let (mut until, mut refused) = (deadline, None);
        loop {
            match self.outcome(until) {
                Ok(Outcome::Ok(None)) => return Ok(None),
                Ok(Outcome::Ok(Some(Information::Session(number)))) => {
                    self.late_sessions.push(number);
                }
                Ok(Outcome::Ok(Some(Information::Apdu(_)))) => {}
                Ok(Outcome::Error(text)) => {
                    until = deadline.min(Instant::now() + AT_TIMEOUT);
                    refused = Some(text);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut && refused.is_some() => {
                    return Ok(refused);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads lines up to the final one.
    fn outcome(&mut self, deadline: Instant) -> io::Result<Outcome> {
        let mut answer = None;
        for _ in 0..LINES_MAX {
            let line = self.line(deadline)?;
            match Kind::of(&line) {
                Kind::Final(outcome) => return Ok(outcome.unwrap_or(Outcome::Ok(answer))),
                Kind::Information(information) => answer = Some(information),
                Kind::Garbled => {
                    let text = format!("malformed line: {line}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                Kind::Other => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "too many lines without a final one"))
    }

    /// The next line that is not empty.
    fn line(&mut self, deadline: Instant) -> io::Result<String> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| matches!(byte, b'\r' | b'\n'))
            {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                // An error's text reaches people's terminals.
                let text = printable(String::from_utf8_lossy(&line).trim());
                if !text.is_empty() {
                    return Ok(text);
                }
            }
            if self.buffer.len() > LINE_MAX_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            let mut room = [0; 1024];
            let bytes = self.stream.read_some(&mut room, deadline)?;
            self.buffer.extend_from_slice(&room[..bytes]);
        }
    }
}

/// The kind of a line from the modem.
enum Kind {
    /// Final: None for OK, or the error.
    Final(Option<Outcome>),
    /// `+CSIM: 4,"9000"`, `+CGLA: 4,"9000"`, `+CCHO: 1`.
    Information(Information),
    /// Such a line, malformed.
    Garbled,
    /// Echo, unsolicited results.
    Other,
}

impl Kind {
    fn of(line: &str) -> Kind {
        let apdu = |rest| answer(rest).map(Information::Apdu);
        let session = |rest: &str| rest.trim().parse().ok().map(Information::Session);
        let information = None
            .or_else(|| line.strip_prefix("+CSIM:").or(line.strip_prefix("+CGLA:")).map(apdu))
            .or_else(|| line.strip_prefix("+CCHO:").map(session));
        if let Some(information) = information {
            return information.map_or(Kind::Garbled, Kind::Information);
        }
        match line {
            "OK" => Kind::Final(None),
            "ERROR" => Kind::Final(Some(Outcome::Error(line.to_owned()))),
            _ if line.starts_with("+CME ERROR:") || line.starts_with("+CMS ERROR:") => {
                Kind::Final(Some(Outcome::Error(line.to_owned())))
            }
            _ => Kind::Other,
        }
    }
}

/// The bytes of ` 4,"9000"`; the quotation marks may be missing.
fn answer(text: &str) -> Option<Vec<u8>> {
    let (length, digits) = text.split_once(',')?;
    let digits = digits.trim().trim_matches('"');
    let stated: usize = length.trim().parse().ok()?;
    if stated != digits.len() {
        return None;
    }
    hex::decode(digits).ok()
}

/// Whether a line runs at about a given speed: dividers are not exact, and over the ten bits of a
/// character a receiver tolerates 5 %.
fn is_near(speed: u32, wanted: u32) -> bool {
    speed.abs_diff(wanted) <= wanted / 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn valid_and_invalid_answers() {
        assert_eq!(answer(" 4,\"9000\""), Some(vec![0x90, 0]));
        assert_eq!(answer("4,9000"), Some(vec![0x90, 0]));
        for text in ["", "4", "6,\"9000\"", "3,\"900\"", "4,\"90x0\"", "x,\"9000\"", "4,\"é00\""] {
            assert_eq!(answer(text), None, "{text}");
        }
    }

    #[test]
    fn baud_rates_within_five_percent() {
        assert!(is_near(115_384, 115_200) && !is_near(9_600, 115_200));
    }

    proptest! {
        #[test]
        fn answer_round_trip(bytes: Vec<u8>) {
            let line = format!(" {},\"{}\"", bytes.len() * 2, hex::encode_upper(&bytes));
            prop_assert_eq!(answer(&line), Some(bytes));
        }

        #[test]
        fn arbitrary_lines_do_not_panic(line: String) {
            let _ = Kind::of(&line);
            let _ = Kind::of(&format!("+CSIM:{line}"));
            let _ = Kind::of(&format!("+CCHO:{line}"));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `AT+CSIM` (3GPP TS 27.007 section 8.17): a modem passes APDUs to its SIM, as hexadecimal text
//! over a serial line.
//!
//! An answer ends with the modem's final result line, never after some idle time: waiting for
//! silence would take longer than the rest of the exchange.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, QueueSelector};
use warifu_card::apdu::Command;
use warifu_os::{DeadlineStream, printable};
use zeroize::Zeroizing;

use super::channel_record::ChannelRecord;
use super::{Transport, TransportError, checked};

/// The most bytes of a line, enough for any short APDU.
const LINE_MAX_BYTES: usize = 4096;
/// The most lines before the final one: echo, empty lines, unsolicited results.
const LINES_MAX: usize = 64;
/// How long the answer to AT may take after an error that belonged to an earlier command: the modem
/// answers AT without the SIM.
const AT_TIMEOUT: Duration = Duration::from_secs(1);

/// A modem behind a serial device or a pseudo-terminal.
pub struct Csim {
    path: PathBuf,
    baud: u32,
    line: Option<Line>,
}

/// What the lines of an answer come to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// OK, after `+CSIM` with these bytes if there was one.
    Ok(Option<Vec<u8>>),
    /// ERROR, +CME ERROR, +CMS ERROR, NO CARRIER...: the line itself.
    Error(String),
}

/// The device, and whether an answer may still be under transport.
struct Line {
    stream: DeadlineStream,
    /// Read, not yet made into lines.
    buffer: Vec<u8>,
    synchronised: bool,
    channels: ChannelRecord,
}

impl Csim {
    /// A modem at `path`, opened when it is first used; `baud` is of no meaning to a
    /// pseudo-terminal or a USB modem.
    #[must_use]
    pub fn new(path: &Path, baud: u32) -> Csim {
        Csim { path: path.to_owned(), baud, line: None }
    }

    fn open(&self) -> Result<Line, TransportError> {
        let at = self.path.display();
        let gone = |error: io::Error| {
            TransportError::Gone(format!(
                "no modem at {at}: {error}; is it plugged in, and are you in its group (dialout)?"
            ))
        };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(|e| gone(e.into()))?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            TransportError::Gone(format!("the modem at {at} is in use by another program"))
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
            .set_speed(self.baud)
            .and_then(|()| rustix::termios::tcsetattr(&fd, OptionalActions::Now, &modes))
            .map_err(|e| gone(e.into()))?;
        let modes = rustix::termios::tcgetattr(&fd).map_err(|e| gone(e.into()))?;
        if !is_near(modes.output_speed(), self.baud) {
            return Err(TransportError::Gone(format!(
                "the line at {at} cannot do {} baud (it took {}): give csim:{at},BAUD with the \
                 modem's",
                self.baud,
                modes.output_speed()
            )));
        }
        let _ = rustix::termios::tcflush(&fd, QueueSelector::IOFlush);
        let device = rustix::fs::fstat(&fd).map_err(|e| gone(e.into()))?.st_rdev;
        Ok(Line {
            stream: DeadlineStream::terminal(fd),
            buffer: Vec::new(),
            synchronised: false,
            channels: ChannelRecord::of_device(device),
        })
    }

    fn failed(&mut self, error: &io::Error) -> TransportError {
        match error.kind() {
            io::ErrorKind::TimedOut => {
                if let Some(line) = &mut self.line {
                    line.synchronised = false;
                }
                TransportError::Timeout(self.name())
            }
            io::ErrorKind::InvalidData => {
                if let Some(line) = &mut self.line {
                    line.synchronised = false;
                }
                TransportError::Garbled(format!("the modem at {}: {error}", self.path.display()))
            }
            io::ErrorKind::ConnectionRefused => TransportError::Refused(format!(
                "the modem at {} answers AT with {error}: is that its port for commands?",
                self.path.display()
            )),
            _ => {
                self.line = None;
                TransportError::Gone(format!(
                    "the modem at {} was disconnected",
                    self.path.display()
                ))
            }
        }
    }
}

impl Transport for Csim {
    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        match &self.line {
            Some(line) if line.synchronised => Ok(()),
            _ => self.reset(deadline).map(drop),
        }
    }

    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let Some(line) = self.line.as_mut().filter(|line| line.synchronised) else {
            self.reset(deadline)?;
            return Err(TransportError::CardReset);
        };
        let apdu = without_le(apdu);
        // It may be VERIFY; no growing string leaves a copy behind.
        let mut command = Zeroizing::new(String::with_capacity(apdu.len() * 2 + 32));
        let digits = Zeroizing::new(hex::encode_upper(apdu));
        let _ = write!(command, "AT+CSIM={},\"{}\"\r", apdu.len() * 2, *digits); // to a String
        let answer = line
            .stream
            .write_all(command.as_bytes(), deadline)
            .and_then(|()| line.outcome(deadline));
        match answer.map_err(|error| self.failed(&error))? {
            Outcome::Ok(Some(answer)) => checked(answer, "the modem"),
            Outcome::Ok(None) => {
                let text = "the modem says OK to AT+CSIM without an answer".to_owned();
                Err(TransportError::Refused(text))
            }
            Outcome::Error(text) => {
                let ins = apdu.get(1).copied().unwrap_or_default();
                Err(TransportError::Refused(format!(
                    "the modem refuses AT+CSIM with instruction {ins:02X}: {text}"
                )))
            }
        }
    }

    /// A modem cannot reset its SIM without dropping its connections, so this makes sure of the
    /// line only: any pending answer is read and discarded.
    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if self.line.is_none() {
            self.line = Some(self.open()?);
        }
        let Some(line) = &mut self.line else { return Ok(Vec::new()) };
        let done = line.synchronise(deadline);
        done.map_err(|error| self.failed(&error))?;
        Ok(Vec::new())
    }

    fn resets_card(&self) -> bool {
        false
    }

    fn channel_opened(&mut self, channel: u8) {
        self.line.iter().for_each(|line| line.channels.opened(channel));
    }

    fn channel_closed(&mut self, channel: u8) {
        self.line.iter().for_each(|line| line.channels.closed(channel));
    }

    fn orphaned_channels(&mut self) -> Vec<u8> {
        self.line.as_ref().map(|line| line.channels.orphans()).unwrap_or_default()
    }

    fn name(&self) -> String {
        format!("csim:{}", self.path.display())
    }
}

impl Line {
    /// Discards pending answers. A modem answers in order, and a late answer to AT+CSIM is a
    /// `+CSIM` line with OK, or an error: an OK without `+CSIM` must be the answer to the bare AT,
    /// and then nothing is pending. Switches echo off; a modem that keeps it works too.
    ///
    /// `ConnectionRefused`, with its answer, if it accepts no command.
    fn synchronise(&mut self, deadline: Instant) -> io::Result<()> {
        self.stream.drain();
        self.buffer.clear();
        let mut said = String::new();
        for command in ["ATE0\r", "AT\r"] {
            self.stream.write_all(command.as_bytes(), deadline)?;
            match self.until_ok(deadline)? {
                None => {
                    self.synchronised = true;
                    return Ok(());
                }
                Some(error) => said = error,
            }
        }
        Err(io::Error::new(io::ErrorKind::ConnectionRefused, said))
    }

    /// Reads up to the OK of a bare command; returns the error that came instead, if nothing
    /// follows.
    fn until_ok(&mut self, deadline: Instant) -> io::Result<Option<String>> {
        let (mut until, mut refused) = (deadline, None);
        loop {
            match self.outcome(until) {
                Ok(Outcome::Ok(None)) => return Ok(None),
                Ok(Outcome::Ok(Some(_))) => {}
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
                Kind::Answer(bytes) => answer = Some(bytes),
                Kind::Garbled => {
                    let text = "malformed +CSIM line";
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
    /// `+CSIM: 4,"9000"`
    Answer(Vec<u8>),
    /// A malformed `+CSIM` line.
    Garbled,
    /// Echo, unsolicited results.
    Other,
}

impl Kind {
    fn of(line: &str) -> Kind {
        if let Some(rest) = line.strip_prefix("+CSIM:") {
            return answer(rest).map_or(Kind::Garbled, Kind::Answer);
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

/// Removes Le from a command with data: modems use T=0 with the SIM, where Le cannot follow data
/// (ISO 7816-3 section 12.2.2); GET RESPONSE fetches the answer.
pub(super) fn without_le(apdu: &[u8]) -> &[u8] {
    match Command::parse(apdu) {
        Ok(Command { data, le: Some(_), .. }) if !data.is_empty() && apdu[4] != 0 => {
            &apdu[..apdu.len() - 1]
        }
        _ => apdu,
    }
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
    fn device_that_is_not_a_serial_line() {
        let soon = Instant::now() + std::time::Duration::from_secs(5);
        let said = |path: &str| {
            let error = Csim::new(Path::new(path), 115_200).connect(soon).unwrap_err();
            assert!(matches!(error, TransportError::Gone(_)), "{error:?}");
            error.to_string()
        };
        assert!(said("/dev/null").starts_with("/dev/null is no serial line: name the modem's"));
        assert!(said("/dev/ttyNone").starts_with("no modem at /dev/ttyNone: No such file"));
        assert!(said("/").starts_with("no modem at /: Is a directory"));
        assert!(is_near(115_384, 115_200) && !is_near(9_600, 115_200));
    }

    /// The commands that a modem received, and its two ends, which it keeps open.
    type Asked = (Vec<String>, std::io::BufReader<std::fs::File>, rustix::fd::OwnedFd);

    /// A modem that gives these answers in turn, one for each line, and the transport to it.
    fn modem(answers: &'static [&str]) -> (std::thread::JoinHandle<Asked>, Csim) {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        use std::io::{BufRead, BufReader, Write};
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let path = ptsname(&side, Vec::new()).unwrap().into_string().unwrap();
        // Held open by the modem, so that it is not hung up before the program has opened it.
        let held = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut modes = rustix::termios::tcgetattr(&held).unwrap();
        modes.make_raw();
        rustix::termios::tcsetattr(&held, OptionalActions::Now, &modes).unwrap();
        let mut side = BufReader::new(std::fs::File::from(side));
        let thread = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let mut line = Vec::new();
                side.read_until(b'\r', &mut line).unwrap();
                asked.push(String::from_utf8(line).unwrap());
                side.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            (asked, side, held)
        });
        (thread, Csim::new(Path::new(&path), 115_200))
    }

    #[test]
    fn modem_that_refuses_all_commands_and_late_errors() {
        let soon = || Instant::now() + Duration::from_secs(20);
        let (thread, mut transport) = modem(&["\r\nERROR\r\n", "\r\n+CME ERROR: 3\r\n"]);
        let error = transport.connect(soon()).unwrap_err();
        assert!(
            matches!(&error, TransportError::Refused(text) if text.contains("ERROR")),
            "{error}"
        );
        assert_eq!(thread.join().unwrap().0, ["ATE0\r", "AT\r"]);

        // Late errors belong to earlier commands: the answer follows them.
        let answers =
            &["\r\nERROR\r\n+CSIM: 4,\"9000\"\r\nOK\r\nOK\r\n", "+CSIM: 4,\"6985\"\r\nOK\r\n"];
        let (thread, mut transport) = modem(answers);
        transport.connect(soon()).unwrap();
        assert_eq!(transport.exchange(&[0x80, 0x84, 0, 0, 8], soon()).unwrap(), [0x69, 0x85]);
        assert_eq!(thread.join().unwrap().0, ["ATE0\r", "AT+CSIM=10,\"8084000008\"\r"]);
    }

    #[test]
    fn escape_sequences_of_a_modem_do_not_reach_the_terminal() {
        let soon = || Instant::now() + Duration::from_secs(20);
        let hostile = "\r\n+CME ERROR: \x1b]0;owned\x07\x1b[2J\u{9b}31m\r\n";
        let answers: &'static [&str] = Box::leak(Box::new(["\r\nOK\r\n", hostile]));
        let (thread, mut transport) = modem(answers);
        transport.connect(soon()).unwrap();
        let error = transport.exchange(&[0x80, 0x84, 0, 0, 8], soon()).unwrap_err().to_string();
        assert!(error.contains("+CME ERROR: ") && error.contains("owned"), "{error}");
        assert!(!error.chars().any(char::is_control), "{error:?}");
        thread.join().unwrap();
    }

    #[test]
    fn le_after_data_is_removed() {
        assert_eq!(without_le(&[0x81, 0xb9, 0, 0, 3, 0x84, 1, 1, 0]).len(), 8);
        assert_eq!(without_le(&[0x81, 0x84, 0, 0, 0x20]).len(), 5);
        assert_eq!(without_le(&[0x81, 0xb9, 0, 0, 3, 0x84, 1, 1]).len(), 8);
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
        }
    }
}

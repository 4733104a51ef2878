// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card behind a modem: 3GPP TS 27.007, as hexadecimal text over a serial line.
//!
//! `AT+CSIM` (section 8.17) passes any APDU on. Where it is missing, or refuses MANAGE CHANNEL, as
//! many modems have it, `AT+CCHO` (section 8.45) opens a channel with the applet selected and gives
//! it a number, `AT+CGLA` (section 8.43) passes APDUs on to it, and `AT+CCHC` (section 8.46) closes
//! it: there the number stands for the channel's.
//!
//! An answer ends with the modem's final result line, never after some idle time: waiting for
//! silence would take longer than the rest of the exchange.

mod channel_record;
mod line;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warifu_card::ins;
use zeroize::Zeroizing;

use self::line::{Information, Line, Outcome};
use super::{Transport, TransportError, checked, without_le};

pub use self::channel_record::ChannelRecord;

/// A modem behind a serial device or a pseudo-terminal.
pub struct Modem {
    path: PathBuf,
    baud: u32,
    line: Option<Line>,
    commands: Commands,
}

/// The commands that carry APDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commands {
    /// AT+CSIM.
    Csim,
    /// AT+CCHO, AT+CGLA and AT+CCHC.
    Cgla,
}

impl Modem {
    /// A modem at `path`, opened when it is first used; `baud` is of no meaning to a
    /// pseudo-terminal or a USB modem.
    #[must_use]
    pub fn new(path: &Path, baud: u32) -> Modem {
        Modem { path: path.to_owned(), baud, line: None, commands: Commands::Csim }
    }

    /// Sends a command; an error of the line is one of the transport.
    fn command(&mut self, text: &str, deadline: Instant) -> Result<Outcome, TransportError> {
        let outcome = self.synchronised()?.command(text, deadline);
        outcome.map_err(|error| self.failed(&error))
    }

    fn synchronised(&mut self) -> Result<&mut Line, TransportError> {
        let line = self.line.as_mut().filter(|line| line.synchronised);
        line.ok_or(TransportError::CardReset)
    }

    /// Closes a session, as MANAGE CHANNEL does a channel.
    fn close_session(&mut self, number: u8, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let outcome = self.synchronised()?.close_session(number, deadline);
        match outcome.map_err(|error| self.failed(&error))? {
            Outcome::Ok(_) => Ok(vec![0x90, 0x00]),
            Outcome::Error(text) => {
                Err(TransportError::Refused(format!("the modem refuses AT+CCHC: {text}")))
            }
        }
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

impl Transport for Modem {
    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        match &self.line {
            Some(line) if line.synchronised => Ok(()),
            _ => self.reset(deadline).map(drop),
        }
    }

    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if self.synchronised().is_err() {
            self.reset(deadline)?;
            return Err(TransportError::CardReset);
        }
        let apdu = without_le(apdu);
        let [class, ins, p1, p2] = apdu.first_chunk().copied().unwrap_or_default();
        let session = channel(class);
        let name = match self.commands {
            Commands::Csim => "AT+CSIM",
            Commands::Cgla if ins == ins::MANAGE_CHANNEL && class < 0x80 && p1 == 0x80 => {
                return self.close_session(p2, deadline);
            }
            Commands::Cgla if session == 0 => {
                let text = "the modem has no command for the SIM's basic channel: AT+CGLA is for \
                            channels that AT+CCHO has opened";
                return Err(TransportError::Refused(text.to_owned()));
            }
            Commands::Cgla => "AT+CGLA",
        };
        // It may be VERIFY; no growing string leaves a copy behind.
        let mut command = Zeroizing::new(String::with_capacity(apdu.len() * 2 + 32));
        let digits = Zeroizing::new(hex::encode_upper(apdu));
        command.push_str(name);
        // Writing to a String cannot fail.
        let _ = match self.commands {
            Commands::Csim => write!(command, "={},\"{}\"\r", digits.len(), *digits),
            Commands::Cgla => write!(command, "={session},{},\"{}\"\r", digits.len(), *digits),
        };
        match self.command(&command, deadline)? {
            Outcome::Ok(Some(Information::Apdu(answer))) => checked(answer, "the modem"),
            Outcome::Ok(_) => {
                let text = format!("the modem says OK to {name} without an answer");
                Err(TransportError::Refused(text))
            }
            Outcome::Error(text) => Err(TransportError::Refused(format!(
                "the modem refuses {name} with instruction {ins:02X}: {text}"
            ))),
        }
    }

    /// A modem cannot reset its SIM without dropping its connections, so this makes sure of the
    /// line only: any pending answer is read and discarded.
    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if self.line.is_none() {
            self.line = Some(Line::open(&self.path, self.baud)?);
        }
        let Some(line) = &mut self.line else { return Ok(Vec::new()) };
        let done = line.synchronise(deadline);
        done.map_err(|error| self.failed(&error))?;
        Ok(Vec::new())
    }

    fn resets_card(&self) -> bool {
        false
    }

    fn opens_by_aid(&mut self, deadline: Instant) -> Result<bool, TransportError> {
        if self.commands == Commands::Csim {
            if !matches!(self.command("AT+CCHO=?\r", deadline)?, Outcome::Ok(_)) {
                return Ok(false);
            }
            // Errors with their numbers; a modem that does not know it says ERROR as before.
            self.command("AT+CMEE=1\r", deadline)?;
            self.commands = Commands::Cgla;
        }
        Ok(true)
    }

    fn open_by_aid(&mut self, aid: &[u8], deadline: Instant) -> Result<u8, TransportError> {
        match self.command(&format!("AT+CCHO=\"{}\"\r", hex::encode_upper(aid)), deadline)? {
            Outcome::Ok(Some(Information::Session(number))) => Ok(number),
            Outcome::Ok(_) => {
                let text = "the modem says OK to AT+CCHO without a number".to_owned();
                Err(TransportError::Refused(text))
            }
            Outcome::Error(text) => Err(TransportError::Refused(format!(
                "the modem refuses AT+CCHO with the applet's identifier: {text}"
            ))),
        }
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

/// The channel in a class byte (ISO 7816-4 section 5.4.1).
fn channel(class: u8) -> u8 {
    if class & 0x40 == 0 { class & 0x03 } else { 4 + (class & 0x0f) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::fs::{Mode, OFlags};
    use rustix::termios::OptionalActions;

    use super::*;

    #[test]
    fn device_that_is_not_a_serial_line() {
        let soon = Instant::now() + std::time::Duration::from_secs(5);
        let said = |path: &str| {
            let error = Modem::new(Path::new(path), 115_200).connect(soon).unwrap_err();
            assert!(matches!(error, TransportError::Gone(_)), "{error:?}");
            error.to_string()
        };
        assert!(said("/dev/null").starts_with("/dev/null is no serial line: name the modem's"));
        assert!(said("/dev/ttyNone").starts_with("no modem at /dev/ttyNone: No such file"));
        assert!(said("/").starts_with("no modem at /: Is a directory"));
    }

    /// The commands that a modem received, and its two ends, which it keeps open.
    type Asked = (Vec<String>, std::io::BufReader<std::fs::File>, rustix::fd::OwnedFd);

    /// A modem that gives these answers in turn, one for each line, and the transport to it.
    fn modem(answers: &'static [&str]) -> (std::thread::JoinHandle<Asked>, Modem) {
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
        (thread, Modem::new(Path::new(&path), 115_200))
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

    const OK: &str = "\r\nOK\r\n";

    #[test]
    fn commands_of_a_modem_without_csim() {
        let soon = || Instant::now() + Duration::from_secs(20);
        let answers = &[
            OK,
            "\r\nERROR\r\n",
            OK,
            "\r\nERROR\r\n",
            "\r\n+CCHO: 2\r\n\r\nOK\r\n",
            "\r\n+CGLA: 6,\"019000\"\r\n\r\nOK\r\n",
            "\r\n+CCHC\r\n\r\nOK\r\n",
        ];
        let (thread, mut transport) = modem(answers);
        transport.connect(soon()).unwrap();
        let refused = transport.exchange(&[0, 0x70, 0, 0, 1], soon()).unwrap_err();
        assert!(matches!(refused, TransportError::Refused(_)), "{refused}");
        assert!(transport.opens_by_aid(soon()).unwrap());
        assert!(transport.opens_by_aid(soon()).unwrap(), "asked once");
        assert_eq!(transport.open_by_aid(&[0xa0, 1], soon()).unwrap(), 2);
        assert_eq!(transport.exchange(&[0x82, 0x84, 0, 0, 1], soon()).unwrap(), [1, 0x90, 0]);
        let basic = transport.exchange(&[0x80, 0x84, 0, 0, 1], soon()).unwrap_err();
        assert!(matches!(basic, TransportError::Refused(_)), "{basic}");
        assert_eq!(transport.exchange(&[0, 0x70, 0x80, 2], soon()).unwrap(), [0x90, 0]);
        let asked = [
            "ATE0\r",
            "AT+CSIM=10,\"0070000001\"\r",
            "AT+CCHO=?\r",
            "AT+CMEE=1\r",
            "AT+CCHO=\"A001\"\r",
            "AT+CGLA=2,10,\"8284000001\"\r",
            "AT+CCHC=2\r",
        ];
        assert_eq!(thread.join().unwrap().0, asked);
    }

    #[test]
    fn session_that_opens_too_late_is_closed() {
        let soon = || Instant::now() + Duration::from_secs(20);
        const LATE: &str = "\r\n+CCHO: 3\r\n\r\nOK\r\n\r\nOK\r\n";
        let (thread, mut transport) = modem(&[OK, OK, OK, "", LATE, OK]);
        transport.connect(soon()).unwrap();
        assert!(transport.opens_by_aid(soon()).unwrap());
        let shortly = Instant::now() + Duration::from_millis(50);
        let error = transport.open_by_aid(&[0xa0, 1], shortly).unwrap_err();
        assert!(matches!(error, TransportError::Timeout(_)), "{error}");
        transport.reset(soon()).unwrap();
        let asked = thread.join().unwrap().0;
        assert_eq!(asked[3..], ["AT+CCHO=\"A001\"\r", "ATE0\r", "AT+CCHC=3\r"]);
    }

    #[test]
    fn late_result_of_closing_is_not_taken_for_a_later_one() {
        let soon = || Instant::now() + Duration::from_secs(20);
        const APDU: &str = "\r\n+CGLA: 4,\"9000\"\r\n\r\nOK\r\n";
        const TWO: &str = "\r\nOK\r\n\r\nOK\r\n";
        let (thread, mut transport) = modem(&[OK, OK, OK, "", TWO, APDU]);
        transport.connect(soon()).unwrap();
        assert!(transport.opens_by_aid(soon()).unwrap());
        let shortly = Instant::now() + Duration::from_millis(50);
        let error = transport.exchange(&[0, 0x70, 0x80, 1], shortly).unwrap_err();
        assert!(matches!(error, TransportError::Timeout(_)), "{error}");
        transport.reset(soon()).unwrap();
        assert_eq!(transport.exchange(&[0x82, 0x84, 0, 0, 0], soon()).unwrap(), [0x90, 0]);
        thread.join().unwrap();
    }
}

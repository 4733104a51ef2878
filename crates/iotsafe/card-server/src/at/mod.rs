// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a modem's command line that is needed for a SIM: ITU-T V.250 and the commands
//! `+CSIM`, `+CCHO`, `+CGLA`, `+CCHC`, `+CPIN?`, `+CMEE` of 3GPP TS 27.007. No input and output:
//! bytes in, bytes out.
//!
//! A byte may complete a [`Line`]. The output before the line is executed (the echo) is taken with
//! [`Modem::take_output`], so that a slow card does not delay the echo.

mod command;
mod outcome;
mod session;

pub use command::csim_command;

use serde::Deserialize;
use zeroize::Zeroizing;

use self::command::extended_length;
use self::outcome::{DEFAULTS, End, Errors, Settings};
use self::session::Session;

/// The longest line: `AT+CSIM=` with an extended APDU in hexadecimal.
pub const LINE_MAX_BYTES: usize = 2 * crate::frame::CONTENT_MAX_BYTES + 32;

/// The card's answer to an APDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sim {
    /// The response APDU.
    Answer(Vec<u8>),
    /// No answer; the modem waits forever.
    Silent,
    /// The card is removed.
    Absent,
    /// The card failed.
    Failure,
}

/// A line to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(Vec<u8>);

/// The commands by which a modem's SIM is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Commands {
    /// `+CSIM`, and `+CCHO` with `+CGLA` and `+CCHC`.
    #[default]
    All,
    /// Without `+CSIM`, which many modems have locked.
    Ccho,
}

/// The modem's settings and the line so far.
#[derive(Clone, Debug)]
pub struct Modem {
    commands: Commands,
    /// They outlive the programs that have opened them, as a modem's do.
    sessions: Vec<Session>,
    settings: Settings,
    line: Vec<u8>,
    too_long: bool,
    /// May contain VERIFY.
    previous: Zeroizing<Vec<u8>>,
    output: Vec<u8>,
}

impl Default for Modem {
    fn default() -> Modem {
        Modem::new(Commands::default())
    }
}

impl Modem {
    /// A modem that was just switched on.
    #[must_use]
    pub fn new(commands: Commands) -> Modem {
        Modem {
            commands,
            sessions: Vec::new(),
            settings: DEFAULTS,
            line: Vec::new(),
            too_long: false,
            previous: Zeroizing::default(),
            output: Vec::new(),
        }
    }

    /// Takes a byte from the terminal; returns the line that it completes, if any.
    pub fn push(&mut self, byte: u8) -> Option<Line> {
        if self.settings.echo {
            self.output.push(byte);
        }
        match byte {
            b'\r' => {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.too_long) {
                    return Some(Line(b"AT+".to_vec())); // not a command: ERROR
                }
                self.prepared(line)
            }
            // A host may send CR LF; backspace removes a character (V.250 section 5.2.2).
            b'\n' => None,
            0x08 => {
                self.line.pop();
                None
            }
            _ if self.line.len() >= LINE_MAX_BYTES => {
                self.too_long = true;
                None
            }
            _ => {
                self.line.push(byte);
                // `A/` repeats the previous line at once (V.250 section 5.2.4).
                if self.line.eq_ignore_ascii_case(b"A/") {
                    self.line.clear();
                    return Some(Line(self.previous.to_vec()));
                }
                None
            }
        }
    }

    /// The part of a line from its AT on; None without AT, which is not a command.
    fn prepared(&mut self, line: Vec<u8>) -> Option<Line> {
        let start = line.windows(2).position(|two| two.eq_ignore_ascii_case(b"AT"))?;
        let line = line[start..].to_vec();
        self.previous = Zeroizing::new(line.clone());
        Some(Line(line))
    }

    /// Takes the output for the terminal.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Executes a line; `sim` sends an APDU to the card. The results are added to the output.
    pub fn obey(&mut self, line: &Line, sim: &mut dyn FnMut(&[u8]) -> Sim) {
        let mut rest = line.0.get(2..).unwrap_or_default();
        let end = loop {
            rest = rest.trim_ascii_start();
            let Some(first) = rest.first() else { break End::Ok };
            let (end, after) = match first {
                b';' => (End::Ok, &rest[1..]),
                b'+' => {
                    let (command, after) = rest.split_at(extended_length(rest));
                    (self.extended(command, sim), after)
                }
                _ => self.basic(rest),
            };
            rest = after;
            if !matches!(end, End::Ok) {
                break end;
            }
        };
        self.result(&end);
    }

    /// Writes a line of information text (V.250 section 5.7.1).
    fn say(&mut self, text: &str) {
        let before = if self.settings.verbose { "\r\n" } else { "" };
        self.write(&format!("{before}{text}\r\n"));
    }

    fn result(&mut self, end: &End) {
        let (number, words) = match end {
            End::Silent => return,
            _ if self.settings.quiet => return,
            End::Ok => (0, "OK".to_owned()),
            End::Unknown => (4, "ERROR".to_owned()),
            End::Cme(error) => match self.settings.errors {
                Errors::Plain => (4, "ERROR".to_owned()),
                Errors::Numbers => {
                    return self.write(&format!("\r\n+CME ERROR: {}\r\n", error.number()));
                }
                Errors::Words => {
                    return self.write(&format!("\r\n+CME ERROR: {}\r\n", error.words()));
                }
            },
        };
        if self.settings.verbose {
            self.write(&format!("\r\n{words}\r\n"));
        } else {
            self.write(&format!("{number}\r"));
        }
    }

    fn write(&mut self, text: &str) {
        self.output.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The output of a modem whose card answers every command with its INS and 9000.
    fn talk(modem: &mut Modem, typed: &[u8]) -> String {
        let mut seen = Vec::new();
        for &byte in typed {
            let line = modem.push(byte);
            seen.extend(modem.take_output());
            if let Some(line) = line {
                modem.obey(&line, &mut |apdu| match apdu[1] {
                    0xfe => Sim::Silent,
                    0xfd => Sim::Absent,
                    0xfc => Sim::Failure,
                    ins => Sim::Answer(vec![ins, 0x90, 0x00]),
                });
                seen.extend(modem.take_output());
            }
        }
        String::from_utf8(seen).unwrap()
    }

    fn quiet_echo() -> Modem {
        let mut modem = Modem::default();
        talk(&mut modem, b"ATE0\r");
        modem
    }

    #[test]
    fn echo_on_and_off() {
        let mut modem = Modem::default();
        assert_eq!(talk(&mut modem, b"AT\r"), "AT\r\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ate0\r"), "ate0\r\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"AT\r\n"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ATZ\r"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"AT\r"), "AT\r\r\nOK\r\n");
    }

    #[test]
    fn apdu_through_csim() {
        let mut modem = quiet_echo();
        let answer = "\r\n+CSIM: 6,\"849000\"\r\n\r\nOK\r\n";
        assert_eq!(talk(&mut modem, b"AT+CSIM=10,\"8184000008\"\r"), answer);
        assert_eq!(talk(&mut modem, b"at+csim = 10 , \"8184000008\"\r"), "\r\nERROR\r\n");
        assert_eq!(talk(&mut modem, b"at+csim= 10 , 8184000008\r\n"), answer);
        assert_eq!(talk(&mut modem, b"A/"), answer);
        let both = "\r\n+CSIM: 6,\"849000\"\r\n\r\n+CPIN: READY\r\n\r\nOK\r\n";
        assert_eq!(talk(&mut modem, b"AT+CSIM=10,\"8184000008\";+CPIN?\r"), both);
    }

    #[test]
    fn cme_error_numbers() {
        let mut modem = quiet_echo();
        for wrong in [
            "+CSIM=10,\"81840000\"",
            "+CSIM=10,\"8184000008",
            "+CSIM=9,\"818400000\"",
            "+CSIM=8184000008",
            "+CSIM=-1,\"\"",
            "+CSIM=6,\"818400\"",
            "+CSIM=,",
            "+CSIM",
            "+NOTHING?",
            "+",
            "&",
            "D112",
            "E7",
        ] {
            let typed = format!("AT{wrong}\r");
            assert_eq!(talk(&mut modem, typed.as_bytes()), "\r\nERROR\r\n", "{wrong}");
        }
        talk(&mut modem, b"AT+CMEE=1\r");
        assert_eq!(talk(&mut modem, b"AT+CSIM=8,\"81840g00\"\r"), "\r\n+CME ERROR: 25\r\n");
        assert_eq!(talk(&mut modem, b"AT+CSIM=8,\"8184000\"\r"), "\r\n+CME ERROR: 50\r\n");
        assert_eq!(talk(&mut modem, b"AT+CSIM=8,\"80FC0000\"\r"), "\r\n+CME ERROR: 13\r\n");
        talk(&mut modem, b"AT+CMEE=2\r");
        let absent = "\r\n+CME ERROR: SIM not inserted\r\n";
        assert_eq!(talk(&mut modem, b"AT+CSIM=8,\"80FD0000\"\r"), absent);
        assert_eq!(talk(&mut modem, b"AT+CSIM=8,\"80FE0000\"\r"), "");
        assert_eq!(talk(&mut modem, b"AT+CMEE?\r"), "\r\n+CMEE: 2\r\n\r\nOK\r\n");
    }

    /// What a modem without +CSIM says, whose card has the applet of identifier A001 and the
    /// commands that the card got.
    fn talk_of_sessions(modem: &mut Modem, typed: &str, got: &mut Vec<Vec<u8>>) -> String {
        for byte in typed.bytes() {
            let Some(line) = modem.push(byte) else { continue };
            modem.obey(&line, &mut |apdu| {
                got.push(apdu.to_vec());
                Sim::Answer(match (apdu[1], &apdu[4..]) {
                    (0x70, _) if apdu[2] == 0 => vec![3, 0x90, 0x00],
                    (0xa4, [2, 0xa0, 0x01]) | (0x70 | 0x84, _) => vec![0x90, 0x00],
                    _ => vec![0x6a, 0x82],
                })
            });
        }
        String::from_utf8(modem.take_output()).unwrap()
    }

    #[test]
    fn channel_by_its_session() {
        let mut modem = Modem::new(Commands::Ccho);
        let mut got = Vec::new();
        let mut talk = |typed: &str| talk_of_sessions(&mut modem, typed, &mut got);
        talk("ATE0\rAT+CMEE=1\r");
        assert_eq!(talk("AT+CSIM=?\r"), "\r\nERROR\r\n");
        assert_eq!(talk("AT+CCHO=?\r"), "\r\nOK\r\n");
        assert_eq!(talk("AT+CCHO=\"A002\"\r"), "\r\n+CME ERROR: 22\r\n");
        for wrong in ["", "\"\"", "\"A\"", "\"A00102030405060708090A0B0C0D0E0F10\""] {
            assert_eq!(talk(&format!("AT+CCHO={wrong}\r")), "\r\n+CME ERROR: 50\r\n");
        }
        assert_eq!(talk("AT+CCHO=\"A001\"\r"), "\r\n+CCHO: 1\r\n\r\nOK\r\n");
        let answer = "\r\n+CGLA: 4,\"9000\"\r\n\r\nOK\r\n";
        assert_eq!(talk("AT+CGLA=1,10,\"8184000008\"\r"), answer);
        assert_eq!(talk("AT+CGLA=1,10,\"C184000008\"\r"), answer);
        assert_eq!(talk("AT+CGLA=2,10,\"8184000008\"\r"), "\r\n+CME ERROR: 21\r\n");
        assert_eq!(talk("AT+CGLA=1,9,\"8184000008\"\r"), "\r\n+CME ERROR: 50\r\n");
        assert_eq!(talk("AT+CGLA=1\r"), "\r\n+CME ERROR: 50\r\n");
        assert_eq!(talk("AT+CCHC=1\r"), "\r\n+CCHC\r\n\r\nOK\r\n");
        assert_eq!(talk("AT+CCHC=1\r"), "\r\n+CME ERROR: 21\r\n");
        let open = vec![0x00, 0x70, 0, 0, 1];
        let close = vec![0x00, 0x70, 0x80, 3];
        let select = |last| vec![0x03, 0xa4, 4, 0, 2, 0xa0, last];
        let random = vec![0x83, 0x84, 0, 0, 8];
        let (not_found, found) = (select(2), select(1));
        let commands =
            [open.clone(), not_found, close.clone(), open, found, random.clone(), random, close];
        assert_eq!(got, commands);
    }

    #[test]
    fn numeric_and_suppressed_results() {
        let mut modem = quiet_echo();
        assert_eq!(talk(&mut modem, b"ATV0\r"), "0\r");
        assert_eq!(talk(&mut modem, b"AT+X\r"), "4\r");
        assert_eq!(talk(&mut modem, b"ATV1Q1\r"), "");
        assert_eq!(talk(&mut modem, b"AT+X\r"), "");
        assert!(talk(&mut modem, b"ATQ0E0I\r").starts_with("\r\nWarifu virtual modem"));
    }

    #[test]
    fn noise_before_at() {
        let mut modem = quiet_echo();
        assert_eq!(talk(&mut modem, b"\r\rhello\r"), "");
        assert_eq!(talk(&mut modem, b"\x00\xffAT\r"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ATX\x08E0\r"), "\r\nOK\r\n");
    }

    #[test]
    fn endless_line_uses_bounded_memory() {
        let mut modem = quiet_echo();
        let long = vec![b'A'; LINE_MAX_BYTES + 1000];
        assert_eq!(talk(&mut modem, &long), "");
        assert!(modem.line.len() <= LINE_MAX_BYTES);
        assert_eq!(talk(&mut modem, b"\rAT\r"), "\r\nERROR\r\n\r\nOK\r\n");
    }

    proptest! {
        #[test]
        fn apdu_round_trip(apdu in prop::collection::vec(any::<u8>(), 4..300)) {
            let mut modem = quiet_echo();
            let mut got = Vec::new();
            for byte in csim_command(&apdu).bytes() {
                if let Some(line) = modem.push(byte) {
                    modem.obey(&line, &mut |apdu| {
                        got = apdu.to_vec();
                        Sim::Answer(vec![0x90, 0x00])
                    });
                }
            }
            prop_assert_eq!(got, apdu);
        }

        #[test]
        fn arbitrary_bytes_leave_a_working_modem(bytes: Vec<u8>) {
            let mut modem = Modem::default();
            for byte in bytes {
                if let Some(line) = modem.push(byte) {
                    modem.obey(&line, &mut |_| Sim::Failure);
                }
            }
            modem.push(b'\r');
            modem = Modem { output: Vec::new(), settings: DEFAULTS, ..modem };
            prop_assert_eq!(talk(&mut modem, b"AT\r"), "AT\r\r\nOK\r\n");
        }
    }
}

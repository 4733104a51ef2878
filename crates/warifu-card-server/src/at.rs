// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A modem's command line, as far as a SIM behind it needs one: ITU-T V.250 and the commands
//! `+CSIM`, `+CPIN?`, `+CMEE` of 3GPP TS 27.007. No input and output: bytes in, bytes out.
//!
//! A byte may end a [`Line`]; what the modem has to say before the line is carried out (its echo) is
//! taken with [`Modem::take_output`], so that a slow card does not hold the echo back.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use crate::hex;

/// The longest line: `AT+CSIM=` with an extended APDU in hexadecimal.
pub const LINE_MAX_BYTES: usize = 2 * crate::frame::CONTENT_MAX_BYTES + 32;

/// What the card says to an APDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sim {
    /// The response APDU.
    Answer(Vec<u8>),
    /// Nothing, and the modem waits for ever.
    Silent,
    /// The card is out.
    Absent,
    /// The card failed.
    Failure,
}

/// A line to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(Vec<u8>);

/// The modem's settings and the line so far.
#[derive(Clone, Debug)]
pub struct Modem {
    settings: Settings,
    line: Vec<u8>,
    too_long: bool,
    /// May hold VERIFY.
    previous: Zeroizing<Vec<u8>>,
    output: Vec<u8>,
}

/// What `ATZ` and `AT&F` set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    echo: bool,
    /// V1: results as words.
    verbose: bool,
    /// Q1: no results.
    quiet: bool,
    errors: Errors,
}

/// How much an error says (TS 27.007 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errors {
    Plain,
    Numbers,
    Words,
}

const DEFAULTS: Settings =
    Settings { echo: true, verbose: true, quiet: false, errors: Errors::Plain };

/// What an error is, by number and words (TS 27.007 section 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CmeError {
    NotInserted,
    SimFailure,
    TooLong,
    InvalidCharacters,
    IncorrectParameters,
}

impl CmeError {
    fn number(self) -> u16 {
        match self {
            CmeError::NotInserted => 10,
            CmeError::SimFailure => 13,
            CmeError::TooLong => 24,
            CmeError::InvalidCharacters => 25,
            CmeError::IncorrectParameters => 50,
        }
    }

    fn words(self) -> &'static str {
        match self {
            CmeError::NotInserted => "SIM not inserted",
            CmeError::SimFailure => "SIM failure",
            CmeError::TooLong => "text string too long",
            CmeError::InvalidCharacters => "invalid characters in text string",
            CmeError::IncorrectParameters => "Incorrect parameters",
        }
    }
}

/// How a command ended.
enum End {
    Ok,
    /// The modem does not know it: always plain ERROR.
    Unknown,
    /// It is known and failed.
    Cme(CmeError),
    /// No result is ever given.
    Silent,
}

impl Default for Modem {
    fn default() -> Modem {
        Modem {
            settings: DEFAULTS,
            line: Vec::new(),
            too_long: false,
            previous: Zeroizing::default(),
            output: Vec::new(),
        }
    }
}

impl Modem {
    /// Takes a byte from the terminal; a line if that ended one.
    pub fn push(&mut self, byte: u8) -> Option<Line> {
        if self.settings.echo {
            self.output.push(byte);
        }
        match byte {
            b'\r' => {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.too_long) {
                    return Some(Line(b"AT+".to_vec())); // no command: ERROR
                }
                self.prepared(line)
            }
            // A host may send CR LF; and V.250 section 5.2.2: backspace takes a character back.
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
                // V.250 section 5.2.4: `A/` is obeyed at once, and repeats the line before.
                if self.line.eq_ignore_ascii_case(b"A/") {
                    self.line.clear();
                    return Some(Line(self.previous.to_vec()));
                }
                None
            }
        }
    }

    /// A line without what came before its AT; None for one without AT, which is no command.
    fn prepared(&mut self, line: Vec<u8>) -> Option<Line> {
        let start = line.windows(2).position(|two| two.eq_ignore_ascii_case(b"AT"))?;
        let line = line[start..].to_vec();
        self.previous = Zeroizing::new(line.clone());
        Some(Line(line))
    }

    /// What is to be sent to the terminal, which is then empty.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Carries a line out; `sim` passes an APDU to the card. The results are in the output.
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

    /// A command of a letter, perhaps behind `&`, and a number.
    fn basic<'a>(&mut self, text: &'a [u8]) -> (End, &'a [u8]) {
        let ampersand = usize::from(text[0] == b'&');
        let letter = text.get(ampersand).map(u8::to_ascii_uppercase);
        let after = text.get(ampersand + 1..).unwrap_or_default();
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = after.split_at(digits);
        let number = match number {
            [] | b"0" => Some(0),
            b"1" => Some(1),
            _ => None,
        };
        let end = match (ampersand, letter, number) {
            (0, Some(b'E'), Some(on)) => {
                self.settings.echo = on == 1;
                End::Ok
            }
            (0, Some(b'V'), Some(on)) => {
                self.settings.verbose = on == 1;
                End::Ok
            }
            (0, Some(b'Q'), Some(on)) => {
                self.settings.quiet = on == 1;
                End::Ok
            }
            (0, Some(b'Z'), Some(0)) | (1, Some(b'F'), Some(0)) => {
                self.settings = DEFAULTS;
                End::Ok
            }
            (0, Some(b'I'), Some(_)) => {
                self.say(concat!("Warifu virtual modem ", env!("CARGO_PKG_VERSION")));
                End::Ok
            }
            _ => End::Unknown,
        };
        (end, after)
    }

    fn extended(&mut self, command: &[u8], sim: &mut dyn FnMut(&[u8]) -> Sim) -> End {
        let command = command.trim_ascii();
        let name = command.iter().take_while(|&&byte| byte != b'=' && byte != b'?').count();
        let (name, parameters) = command.split_at(name);
        match (name.to_ascii_uppercase().as_slice(), parameters) {
            (b"+CSIM", b"=?") | (b"+CPIN", b"=?") => End::Ok,
            (b"+CSIM", [b'=', parameters @ ..]) => self.csim(parameters, sim),
            // The SIM's own PIN, not the applet's: there is none.
            (b"+CPIN", b"?") => {
                self.say("+CPIN: READY");
                End::Ok
            }
            (b"+CMEE", b"=?") => {
                self.say("+CMEE: (0-2)");
                End::Ok
            }
            (b"+CMEE", b"?") => {
                self.say(match self.settings.errors {
                    Errors::Plain => "+CMEE: 0",
                    Errors::Numbers => "+CMEE: 1",
                    Errors::Words => "+CMEE: 2",
                });
                End::Ok
            }
            (b"+CMEE", [b'=', number @ ..]) => {
                self.settings.errors = match number.trim_ascii() {
                    b"0" => Errors::Plain,
                    b"1" => Errors::Numbers,
                    b"2" => Errors::Words,
                    _ => return End::Cme(CmeError::IncorrectParameters),
                };
                End::Ok
            }
            (b"+CGMI", b"") => {
                self.say("Warifu");
                End::Ok
            }
            (b"+CGMM", b"") => {
                self.say("virtual modem");
                End::Ok
            }
            (b"+CGMR", b"") => {
                self.say(env!("CARGO_PKG_VERSION"));
                End::Ok
            }
            _ => End::Unknown,
        }
    }

    /// `<length>,"<command>"`, the length in characters (TS 27.007 section 8.17).
    fn csim(&mut self, parameters: &[u8], sim: &mut dyn FnMut(&[u8]) -> Sim) -> End {
        let apdu = match csim_parameters(parameters) {
            Ok(apdu) => apdu,
            Err(error) => return End::Cme(error),
        };
        match sim(&apdu) {
            Sim::Answer(answer) => {
                let text = hex::encode(&answer);
                self.say(&format!("+CSIM: {},\"{text}\"", text.len()));
                End::Ok
            }
            Sim::Silent => End::Silent,
            Sim::Absent => End::Cme(CmeError::NotInserted),
            Sim::Failure => End::Cme(CmeError::SimFailure),
        }
    }

    /// A line of information (V.250 section 5.7.1).
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

/// How much of a text the extended command at its beginning takes: to the next `;` outside quotes.
fn extended_length(text: &[u8]) -> usize {
    let mut quoted = false;
    let end = text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        byte == b';' && !quoted
    });
    end.unwrap_or(text.len())
}

fn csim_parameters(text: &[u8]) -> Result<Vec<u8>, CmeError> {
    let wrong = CmeError::IncorrectParameters;
    let comma = text.iter().position(|&byte| byte == b',').ok_or(wrong)?;
    let (length, digits) = (text[..comma].trim_ascii(), text[comma + 1..].trim_ascii());
    let length: usize =
        std::str::from_utf8(length).ok().and_then(|text| text.parse().ok()).ok_or(wrong)?;
    // Some hosts leave the quotes out.
    let digits = match digits {
        [b'"', inner @ .., b'"'] => inner,
        [b'"', ..] => return Err(wrong),
        bare => bare,
    };
    if digits.len() > 2 * crate::frame::CONTENT_MAX_BYTES {
        return Err(CmeError::TooLong);
    }
    // Shorter than the header of an APDU is none (ISO 7816-4 section 5.1).
    if length != digits.len() || !length.is_multiple_of(2) || length < 8 {
        return Err(wrong);
    }
    hex::decode(digits).ok_or(CmeError::InvalidCharacters)
}

/// The line that sends an APDU, as a host writes it.
///
/// ```
/// use warifu_card_server::at::csim_command;
/// assert_eq!(csim_command(&[0x00, 0xa4, 0x04, 0x0c]), "AT+CSIM=8,\"00A4040C\"\r");
/// ```
#[must_use]
pub fn csim_command(apdu: &[u8]) -> String {
    let text = hex::encode(apdu);
    let mut line = String::with_capacity(text.len() + 20);
    // Writing to a String cannot fail.
    let _ = write!(line, "AT+CSIM={},\"{text}\"\r", text.len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a terminal sees of a modem whose card answers every command with its INS and 9000.
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
    fn echo_is_on_until_it_is_switched_off() {
        let mut modem = Modem::default();
        assert_eq!(talk(&mut modem, b"AT\r"), "AT\r\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ate0\r"), "ate0\r\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"AT\r\n"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ATZ\r"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"AT\r"), "AT\r\r\nOK\r\n");
    }

    #[test]
    fn an_apdu_goes_through() {
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
    fn what_is_wrong_is_an_error_of_its_number() {
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

    #[test]
    fn results_may_be_numbers_or_none() {
        let mut modem = quiet_echo();
        assert_eq!(talk(&mut modem, b"ATV0\r"), "0\r");
        assert_eq!(talk(&mut modem, b"AT+X\r"), "4\r");
        assert_eq!(talk(&mut modem, b"ATV1Q1\r"), "");
        assert_eq!(talk(&mut modem, b"AT+X\r"), "");
        assert!(talk(&mut modem, b"ATQ0E0I\r").starts_with("\r\nWarifu virtual modem"));
    }

    #[test]
    fn noise_before_at_is_passed_over_and_lines_without_it_are_none() {
        let mut modem = quiet_echo();
        assert_eq!(talk(&mut modem, b"\r\rhello\r"), "");
        assert_eq!(talk(&mut modem, b"\x00\xffAT\r"), "\r\nOK\r\n");
        assert_eq!(talk(&mut modem, b"ATX\x08E0\r"), "\r\nOK\r\n");
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory() {
        let mut modem = quiet_echo();
        let long = vec![b'A'; LINE_MAX_BYTES + 1000];
        assert_eq!(talk(&mut modem, &long), "");
        assert!(modem.line.len() <= LINE_MAX_BYTES);
        assert_eq!(talk(&mut modem, b"\rAT\r"), "\r\nERROR\r\n\r\nOK\r\n");
    }

    proptest! {
        #[test]
        fn every_apdu_arrives_as_it_was_sent(apdu in prop::collection::vec(any::<u8>(), 4..300)) {
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
        fn any_bytes_leave_a_modem_that_works(bytes: Vec<u8>) {
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

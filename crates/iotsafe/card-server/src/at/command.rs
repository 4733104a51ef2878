// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands that the modem knows.

use std::fmt::Write as _;

use super::outcome::{CmeError, DEFAULTS, End, Errors};
use super::{Commands, Modem, Sim};

impl Modem {
    /// A command of a letter, perhaps after `&`, and a number.
    pub(super) fn basic<'a>(&mut self, text: &'a [u8]) -> (End, &'a [u8]) {
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

    pub(super) fn extended(&mut self, command: &[u8], sim: &mut dyn FnMut(&[u8]) -> Sim) -> End {
        let command = command.trim_ascii();
        let name = command.iter().take_while(|&&byte| byte != b'=' && byte != b'?').count();
        let (name, parameters) = command.split_at(name);
        match (name.to_ascii_uppercase().as_slice(), parameters) {
            (b"+CSIM", _) if self.commands == Commands::Ccho => End::Unknown,
            (b"+CSIM" | b"+CCHO" | b"+CCHC" | b"+CGLA" | b"+CPIN", b"=?") => End::Ok,
            (b"+CSIM", [b'=', parameters @ ..]) => match apdu_parameters(parameters) {
                Ok(apdu) => self.pass_on("+CSIM", &apdu, sim),
                Err(error) => End::Cme(error),
            },
            (b"+CCHO", [b'=', parameters @ ..]) => self.open_session(parameters, sim),
            (b"+CCHC", [b'=', parameters @ ..]) => self.close_session(parameters, sim),
            (b"+CGLA", [b'=', parameters @ ..]) => self.session_command(parameters, sim),
            // The PIN of the SIM, not of the applet: the SIM has none.
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

    /// Passes an APDU to the card, and says the answer as that of this command.
    pub(super) fn pass_on(
        &mut self,
        command: &str,
        apdu: &[u8],
        sim: &mut dyn FnMut(&[u8]) -> Sim,
    ) -> End {
        match sim(apdu) {
            Sim::Answer(answer) => {
                let text = hex::encode_upper(&answer);
                self.say(&format!("{command}: {},\"{text}\"", text.len()));
                End::Ok
            }
            Sim::Silent => End::Silent,
            Sim::Absent => End::Cme(CmeError::NotInserted),
            Sim::Failure => End::Cme(CmeError::SimFailure),
        }
    }
}

/// The length of the extended command at the start of a text: up to the next `;` outside quotes.
pub(super) fn extended_length(text: &[u8]) -> usize {
    let mut quoted = false;
    let end = text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        byte == b';' && !quoted
    });
    end.unwrap_or(text.len())
}

/// `<length>,"<command>"`, the length in characters (TS 27.007 sections 8.17 and 8.43).
pub(super) fn apdu_parameters(text: &[u8]) -> Result<Vec<u8>, CmeError> {
    let wrong = CmeError::IncorrectParameters;
    let comma = text.iter().position(|&byte| byte == b',').ok_or(wrong)?;
    let (length, digits) = (text[..comma].trim_ascii(), text[comma + 1..].trim_ascii());
    let length: usize =
        std::str::from_utf8(length).ok().and_then(|text| text.parse().ok()).ok_or(wrong)?;
    // Some hosts omit the quotes.
    let digits = match digits {
        [b'"', inner @ .., b'"'] => inner,
        [b'"', ..] => return Err(wrong),
        bare => bare,
    };
    if digits.len() > 2 * crate::frame::CONTENT_MAX_BYTES {
        return Err(CmeError::TooLong);
    }
    // Shorter than the header of an APDU (ISO 7816-4 section 5.1).
    if length != digits.len() || !length.is_multiple_of(2) || length < 8 {
        return Err(wrong);
    }
    hex::decode(digits).map_err(|_| CmeError::InvalidCharacters)
}

/// The line that sends an APDU, as a host writes it.
///
/// ```
/// use warifu_card_server::at::csim_command;
/// assert_eq!(csim_command(&[0x00, 0xa4, 0x04, 0x0c]), "AT+CSIM=8,\"00A4040C\"\r");
/// ```
#[must_use]
pub fn csim_command(apdu: &[u8]) -> String {
    let text = hex::encode_upper(apdu);
    let mut line = String::with_capacity(text.len() + 20);
    // Writing to a String cannot fail.
    let _ = write!(line, "AT+CSIM={},\"{text}\"\r", text.len());
    line
}

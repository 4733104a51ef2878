// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Command and response APDUs (ISO 7816-4), and the status words of this card.

use std::fmt;

/// The most bytes that one short answer holds, which `Le = 00` asks for.
pub const SHORT_ANSWER_MAX_BYTES: usize = 256;

/// The header, and extended Lc and Le.
const HEADER_AND_LENGTHS_MAX_BYTES: usize = 4 + 3 + 2;

/// A command APDU, its lengths already taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// Class: interindustry or proprietary, chaining, logical channel.
    pub cla: u8,
    /// Instruction.
    pub ins: u8,
    /// First parameter.
    pub p1: u8,
    /// Second parameter.
    pub p2: u8,
    /// The command data, empty where there is no Lc.
    pub data: &'a [u8],
    /// How many bytes of answer are expected at most, if an Le was sent: 1 to 65536.
    pub le: Option<usize>,
}

impl<'a> Command<'a> {
    /// Takes a command apart: the four cases of ISO 7816-4 section 5.2, short and extended.
    ///
    /// # Errors
    /// [`StatusWord::WRONG_LENGTH`] where the lengths do not add up.
    ///
    /// ```
    /// use warifu_card::apdu::Command;
    /// let random = Command::parse(&[0x81, 0x84, 0x00, 0x00, 0x20]).unwrap();
    /// assert_eq!((random.ins, random.data, random.le), (0x84, &[][..], Some(32)));
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Command<'a>, StatusWord> {
        let [cla, ins, p1, p2, rest @ ..] = bytes else { return Err(StatusWord::WRONG_LENGTH) };
        let (data, le) = lengths(rest).ok_or(StatusWord::WRONG_LENGTH)?;
        Ok(Command { cla: *cla, ins: *ins, p1: *p1, p2: *p2, data, le })
    }

    /// As [`Command::parse`], but a byte 00 between the data of a short command and its Le is none:
    /// [`crate::quirks::SurplusByte`].
    ///
    /// # Errors
    /// As [`Command::parse`].
    pub fn parse_with_surplus(bytes: &'a [u8]) -> Result<Command<'a>, StatusWord> {
        if let [cla, ins, p1, p2, lc, rest @ ..] = bytes
            && *lc > 0
            && let Some((data, [0, le])) = rest.split_at_checked(usize::from(*lc))
        {
            let le = if *le == 0 { SHORT_ANSWER_MAX_BYTES } else { usize::from(*le) };
            return Ok(Command { cla: *cla, ins: *ins, p1: *p1, p2: *p2, data, le: Some(le) });
        }
        Command::parse(bytes)
    }

    /// The same as bytes; short where it fits, extended where it must.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // At once: a growing vector would leave copies behind, of a PIN perhaps.
        let mut bytes = Vec::with_capacity(HEADER_AND_LENGTHS_MAX_BYTES + self.data.len());
        bytes.extend_from_slice(&[self.cla, self.ins, self.p1, self.p2]);
        let short =
            self.data.len() <= 0xff && self.le.is_none_or(|le| le <= SHORT_ANSWER_MAX_BYTES);
        if short {
            if !self.data.is_empty() {
                bytes.push(self.data.len() as u8);
                bytes.extend_from_slice(self.data);
            }
            bytes.extend(self.le.map(|le| le as u8)); // 256 becomes 00
            return bytes;
        }
        bytes.push(0);
        if !self.data.is_empty() {
            bytes.extend_from_slice(&(self.data.len() as u16).to_be_bytes());
            bytes.extend_from_slice(self.data);
        }
        // 65536 becomes 0000.
        bytes.extend(self.le.iter().flat_map(|&le| (le as u16).to_be_bytes()));
        bytes
    }
}

/// Shows how long the data are and not what: they may be a PIN or a secret.
impl fmt::Debug for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { cla, ins, p1, p2, data, le } = self;
        write!(f, "Command({cla:02X}{ins:02X}{p1:02X}{p2:02X}, {} bytes, Le {le:?})", data.len())
    }
}

/// What follows the header: command data and Le. None where the lengths do not add up.
fn lengths(rest: &[u8]) -> Option<(&[u8], Option<usize>)> {
    let short_le = |byte: u8| if byte == 0 { SHORT_ANSWER_MAX_BYTES } else { usize::from(byte) };
    let extended_le = |high: u8, low: u8| match u16::from_be_bytes([high, low]) {
        0 => 0x1_0000,
        le => usize::from(le),
    };
    match *rest {
        [] => Some((&[], None)),
        [le] => Some((&[], Some(short_le(le)))),
        [0, _] => None,
        // A first byte of 00 with more behind it opens extended lengths (ISO 7816-4 section 5.2).
        [0, high, low] => Some((&[], Some(extended_le(high, low)))),
        [0, high, low, ref body @ ..] => {
            let lc = usize::from(u16::from_be_bytes([high, low]));
            let (data, tail) = body.split_at_checked(lc).filter(|(data, _)| !data.is_empty())?;
            match *tail {
                [] => Some((data, None)),
                [high, low] => Some((data, Some(extended_le(high, low)))),
                _ => None,
            }
        }
        [lc, ref body @ ..] => {
            let (data, tail) = body.split_at_checked(usize::from(lc))?;
            match *tail {
                [] => Some((data, None)),
                [le] => Some((data, Some(short_le(le)))),
                _ => None,
            }
        }
    }
}

/// The last two bytes of every answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusWord(pub u16);

impl StatusWord {
    /// Done.
    pub const OK: StatusWord = StatusWord(0x9000);
    /// The store does not agree with itself.
    pub const INTEGRITY: StatusWord = StatusWord(0x6400);
    /// Writing to the memory failed.
    pub const MEMORY_FAILURE: StatusWord = StatusWord(0x6581);
    /// A length is wrong.
    pub const WRONG_LENGTH: StatusWord = StatusWord(0x6700);
    /// The logical channel is not open, or there is none of that number.
    pub const CHANNEL_NOT_SUPPORTED: StatusWord = StatusWord(0x6881);
    /// Secure messaging is not supported.
    pub const SECURE_MESSAGING_NOT_SUPPORTED: StatusWord = StatusWord(0x6882);
    /// The rest of a chain was expected.
    pub const LAST_OF_CHAIN_EXPECTED: StatusWord = StatusWord(0x6883);
    /// The object has no part that the command could work on.
    pub const INCOMPATIBLE_OBJECT: StatusWord = StatusWord(0x6981);
    /// The PIN was not presented.
    pub const SECURITY_STATUS: StatusWord = StatusWord(0x6982);
    /// The PIN is locked.
    pub const PIN_LOCKED: StatusWord = StatusWord(0x6983);
    /// There is no PIN to verify.
    pub const DATA_INVALIDATED: StatusWord = StatusWord(0x6984);
    /// Conditions of use are not satisfied: no session, an empty object, a use not allowed.
    pub const CONDITIONS: StatusWord = StatusWord(0x6985);
    /// No more sessions.
    pub const CAPACITY: StatusWord = StatusWord(0x6989);
    /// The command data are incorrect.
    pub const INCORRECT_DATA: StatusWord = StatusWord(0x6a80);
    /// No more logical channels.
    pub const NO_CHANNEL: StatusWord = StatusWord(0x6a81);
    /// No such application or object.
    pub const NOT_FOUND: StatusWord = StatusWord(0x6a82);
    /// Not enough memory.
    pub const MEMORY: StatusWord = StatusWord(0x6a84);
    /// P1 or P2 is incorrect.
    pub const INCORRECT_P1_P2: StatusWord = StatusWord(0x6a86);
    /// The card does not know the instruction.
    pub const INSTRUCTION: StatusWord = StatusWord(0x6d00);
    /// The signature does not match (IoT SAFE's own).
    pub const BAD_SIGNATURE: StatusWord = StatusWord(0x6d01);
    /// The card does not know the class.
    pub const CLASS: StatusWord = StatusWord(0x6e00);
    /// Another error.
    pub const UNKNOWN: StatusWord = StatusWord(0x6f00);

    /// 61xx: `bytes` more wait for GET RESPONSE; 00 stands for 256 or more.
    #[must_use]
    pub fn more(bytes: usize) -> StatusWord {
        StatusWord(0x6100 | if bytes < 0x100 { bytes as u16 } else { 0 })
    }

    /// 6Cxx: send the command again with this Le.
    #[must_use]
    pub fn wrong_le(bytes: usize) -> StatusWord {
        StatusWord(0x6c00 | (bytes as u16 & 0xff))
    }

    /// 63Cx: a wrong PIN, with this many tries left (15 at most can be shown).
    #[must_use]
    pub fn tries_left(tries: u8) -> StatusWord {
        StatusWord(0x63c0 | u16::from(tries.min(15)))
    }

    /// Whether the command was refused: anything but 9000 and 61xx.
    #[must_use]
    pub fn is_error(self) -> bool {
        self != StatusWord::OK && self.0 >> 8 != 0x61
    }

    /// How many bytes wait, of a 61xx.
    #[must_use]
    pub fn waiting(self) -> Option<usize> {
        (self.0 >> 8 == 0x61).then_some(match self.0 & 0xff {
            0 => SHORT_ANSWER_MAX_BYTES,
            bytes => usize::from(bytes),
        })
    }
}

impl fmt::Display for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04X}", self.0)
    }
}

impl fmt::Debug for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusWord({self})")
    }
}

/// An answer: data and status word.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The data, empty in most errors.
    pub data: Vec<u8>,
    /// The status word.
    pub sw: StatusWord,
}

impl Response {
    /// An answer without data.
    #[must_use]
    pub fn status(sw: StatusWord) -> Response {
        Response { data: Vec::new(), sw }
    }

    /// Data, then the status word, as they go over the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.data.clone();
        bytes.extend_from_slice(&self.sw.0.to_be_bytes());
        bytes
    }
}

/// Shows how long the data are and not what: they may be a shared secret.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({} bytes, {})", self.data.len(), self.sw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(bytes: &[u8]) -> Option<(Vec<u8>, Option<usize>)> {
        Command::parse(bytes).ok().map(|command| (command.data.to_vec(), command.le))
    }

    #[test]
    fn four_cases_short_and_extended() {
        assert_eq!(parts(&[0, 0x70, 0x80, 1]), Some((vec![], None)));
        assert_eq!(parts(&[0, 0x70, 0, 0, 1]), Some((vec![], Some(1))));
        assert_eq!(parts(&[0, 0x84, 0, 0, 0]), Some((vec![], Some(256))));
        assert_eq!(parts(&[0, 0xb9, 0, 0, 1, 9]), Some((vec![9], None)));
        assert_eq!(parts(&[0, 0xb9, 0, 0, 1, 9, 0]), Some((vec![9], Some(256))));
        assert_eq!(parts(&[0, 0xb0, 0, 0, 0, 0, 0]), Some((vec![], Some(65536))));
        assert_eq!(parts(&[0, 0xb0, 0, 0, 0, 1, 2]), Some((vec![], Some(258))));
        assert_eq!(parts(&[0, 0xb0, 0, 0, 0, 0, 1, 9]), Some((vec![9], None)));
        assert_eq!(parts(&[0, 0xb0, 0, 0, 0, 0, 1, 9, 1, 0]), Some((vec![9], Some(256))));
    }

    #[test]
    fn inconsistent_lengths() {
        for bytes in [
            &[][..],
            &[0, 0x84, 0],
            &[0, 0xb9, 0, 0, 2, 9],
            &[0, 0xb9, 0, 0, 1, 9, 0, 0],
            &[0, 0xb9, 0, 0, 0, 1],
            &[0, 0xb9, 0, 0, 0, 0, 0, 9],
            &[0, 0xb9, 0, 0, 0, 0, 2, 9],
            &[0, 0xb9, 0, 0, 0, 0, 1, 9, 0],
        ] {
            assert_eq!(Command::parse(bytes), Err(StatusWord::WRONG_LENGTH), "{bytes:02x?}");
        }
    }

    #[test]
    fn numbers_in_status_words() {
        assert_eq!(StatusWord::more(256), StatusWord(0x6100));
        assert_eq!(StatusWord::more(0x43).waiting(), Some(0x43));
        assert_eq!(StatusWord::more(300).waiting(), Some(256));
        assert_eq!(StatusWord::tries_left(2), StatusWord(0x63c2));
        assert!(!StatusWord::more(1).is_error() && StatusWord::wrong_le(4).is_error());
        let command = Command::parse(&[0, 0x20, 0, 1, 4, 1, 2, 3, 4]).unwrap();
        assert_eq!(format!("{command:?}"), "Command(00200001, 4 bytes, Le None)");
        assert_eq!(format!("{:?}", Response::status(StatusWord::CLASS)), "Response(0 bytes, 6E00)");
    }

    proptest! {
        #[test]
        fn command_round_trip(
            head: [u8; 4],
            data in prop::collection::vec(any::<u8>(), 0..400),
            le in prop::option::of(1..=65536_usize),
        ) {
            let [cla, ins, p1, p2] = head;
            let command = Command { cla, ins, p1, p2, data: &data, le };
            let bytes = command.to_bytes();
            prop_assert_eq!(Command::parse(&bytes), Ok(command));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tag, length, value: one-byte tags, and lengths as BER writes them in up to three bytes.

use crate::apdu::StatusWord;

/// The tags of IoT SAFE (GSMA IoT.05).
pub mod tag {
    #![allow(missing_docs, reason = "the names say what the values are")]
    pub const VERSION: u8 = 0x10;
    pub const APPLET_ID: u8 = 0x11;
    pub const FILE_SIZE: u8 = 0x20;
    pub const FILE_USAGE: u8 = 0x21;
    pub const SIGNATURE_VALUE: u8 = 0x33;
    pub const PUBLIC_KEY_DATA: u8 = 0x34;
    pub const EC_KEY: u8 = 0x49;
    pub const OBJECT_STATE: u8 = 0x4a;
    pub const KEY_TYPE: u8 = 0x4b;
    pub const KEY_USAGE: u8 = 0x4e;
    pub const ACCESS: u8 = 0x60;
    pub const KEY_FUNCTIONS: u8 = 0x61;
    pub const KEY_AGREEMENTS: u8 = 0x6f;
    pub const FILE_LABEL: u8 = 0x73;
    pub const PRIVATE_KEY_LABEL: u8 = 0x74;
    pub const PUBLIC_KEY_LABEL: u8 = 0x75;
    pub const SECRET_LABEL: u8 = 0x76;
    pub const FILE_ID: u8 = 0x83;
    pub const PRIVATE_KEY_ID: u8 = 0x84;
    pub const PUBLIC_KEY_ID: u8 = 0x85;
    pub const SECRET_ID: u8 = 0x86;
    /// Within [`EC_KEY`]: 04, X, Y. The same byte as [`SECRET_ID`], elsewhere.
    pub const EC_POINT: u8 = 0x86;
    pub const FUNCTIONS: u8 = 0x90;
    pub const HASH: u8 = 0x91;
    pub const SIGNATURE: u8 = 0x92;
    pub const AGREEMENT: u8 = 0x93;
    pub const DERIVATION: u8 = 0x94;
    pub const LAST_BLOCK: u8 = 0x9a;
    pub const FULL_TEXT: u8 = 0x9b;
    pub const INTERMEDIATE_HASH: u8 = 0x9c;
    pub const BYTES_HASHED: u8 = 0x9d;
    pub const FINAL_HASH: u8 = 0x9e;
    pub const MODE: u8 = 0xa1;
    pub const FILES_MAX: u8 = 0xb1;
    pub const PRIVATE_KEYS_MAX: u8 = 0xb2;
    pub const PUBLIC_KEYS_MAX: u8 = 0xb3;
    pub const SECRETS_MAX: u8 = 0xb4;
    pub const SESSIONS_MAX: u8 = 0xb7;
    pub const PRIVATE_KEY: u8 = 0xc1;
    pub const PUBLIC_KEY: u8 = 0xc2;
    pub const FILE: u8 = 0xc3;
    pub const SECRET: u8 = 0xc4;
    pub const SECRET_VALUE: u8 = 0xd1;
    pub const LABEL_AND_SEED: u8 = 0xd2;
    pub const OUTPUT_LENGTH: u8 = 0xd3;
    pub const PREMASTER: u8 = 0xd4;
    pub const SALT: u8 = 0xd5;
}

/// How the length behind [`tag::SIGNATURE_VALUE`] may be written in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureLength {
    /// As BER: `33 40`.
    Ber,
    /// As BER, or in 16 bits behind a 00: `33 00 40`.
    BerOr16Bit,
}

/// The fields of a command, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields<'a>(Vec<(u8, &'a [u8])>);

impl<'a> Fields<'a> {
    /// Takes command data apart; only tags from `allowed` may occur.
    ///
    /// # Errors
    /// [`StatusWord::INCORRECT_DATA`] for another tag and for lengths that do not add up.
    pub fn parse(
        mut data: &'a [u8],
        allowed: &[u8],
        signature: SignatureLength,
    ) -> Result<Fields<'a>, StatusWord> {
        let mut fields = Vec::new();
        while !data.is_empty() {
            let (tag, value, rest) = first(data, signature).ok_or(StatusWord::INCORRECT_DATA)?;
            if !allowed.contains(&tag) {
                return Err(StatusWord::INCORRECT_DATA);
            }
            fields.push((tag, value));
            data = rest;
        }
        Ok(Fields(fields))
    }

    /// The value of a tag that may occur once.
    ///
    /// # Errors
    /// [`StatusWord::INCORRECT_DATA`] if it occurs more often.
    pub fn get(&self, tag: u8) -> Result<Option<&'a [u8]>, StatusWord> {
        let mut values = self.all(tag);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(StatusWord::INCORRECT_DATA),
        }
    }

    /// The value of a tag that must occur once.
    ///
    /// # Errors
    /// [`StatusWord::INCORRECT_DATA`] if it does not.
    pub fn need(&self, tag: u8) -> Result<&'a [u8], StatusWord> {
        self.get(tag)?.ok_or(StatusWord::INCORRECT_DATA)
    }

    /// A value of one byte that must occur once.
    ///
    /// # Errors
    /// As [`Fields::need`], and where it has another length.
    pub fn need_byte(&self, tag: u8) -> Result<u8, StatusWord> {
        match self.need(tag)? {
            [byte] => Ok(*byte),
            _ => Err(StatusWord::INCORRECT_DATA),
        }
    }

    /// The values of a tag, in their order.
    pub fn all(&self, tag: u8) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| *known == tag).map(|(_, value)| *value)
    }
}

/// The first field: tag, value and what follows.
fn first(data: &[u8], signature: SignatureLength) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = data.split_first()?;
    let (length, rest) = match *rest {
        [0, low, ref rest @ ..]
            if tag == tag::SIGNATURE_VALUE && signature == SignatureLength::BerOr16Bit =>
        {
            (usize::from(low), rest)
        }
        [length @ 0..=0x7f, ref rest @ ..] => (usize::from(length), rest),
        [0x81, length, ref rest @ ..] => (usize::from(length), rest),
        [0x82, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((tag, value, rest))
}

/// Appends a field. A value has at most 65535 bytes; what is longer is cut.
pub fn push(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    let value = &value[..value.len().min(0xffff)];
    out.push(tag);
    match value.len() {
        length @ 0..=0x7f => out.push(length as u8),
        length @ 0x80..=0xff => out.extend([0x81, length as u8]),
        length => {
            out.push(0x82);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
}

/// One field as bytes of its own.
#[must_use]
pub fn field(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 4);
    push(&mut out, tag, value);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(data: &[u8]) -> Result<Fields<'_>, StatusWord> {
        Fields::parse(data, &[0x33, 0x84, 0x9b], SignatureLength::Ber)
    }

    #[test]
    fn lengths_of_one_two_and_three_bytes() {
        for (length, head) in [
            (0, &[0x9b, 0][..]),
            (127, &[0x9b, 0x7f]),
            (128, &[0x9b, 0x81, 0x80]),
            (256, &[0x9b, 0x82, 1, 0]),
        ] {
            let value = vec![7; length];
            let bytes = field(0x9b, &value);
            assert_eq!(&bytes[..head.len()], head);
            assert_eq!(parse(&bytes).unwrap().need(0x9b), Ok(&value[..]));
        }
    }

    #[test]
    fn malformed_fields() {
        for data in [
            &[0x84][..],
            &[0x84, 2, 1],
            &[0x84, 0x80, 1],
            &[0x84, 0x83, 0, 0, 1, 9],
            &[0x84, 0x81],
            &[0x85, 1, 1],
        ] {
            assert_eq!(parse(data), Err(StatusWord::INCORRECT_DATA), "{data:02x?}");
        }
        let twice = parse(&[0x84, 1, 1, 0x84, 1, 2]).unwrap();
        assert_eq!(twice.get(0x84), Err(StatusWord::INCORRECT_DATA));
        assert_eq!(twice.all(0x84).count(), 2);
        assert_eq!(twice.need(0x33), Err(StatusWord::INCORRECT_DATA));
    }

    #[test]
    fn signature_length_of_16_bits() {
        let data = [0x33, 0, 2, 8, 9];
        assert!(parse(&data).is_err());
        let both = Fields::parse(&data, &[0x33], SignatureLength::BerOr16Bit).unwrap();
        assert_eq!(both.need(0x33), Ok(&[8, 9][..]));
    }

    proptest! {
        #[test]
        fn arbitrary_data_does_not_panic(data: Vec<u8>) {
            for signature in [SignatureLength::Ber, SignatureLength::BerOr16Bit] {
                let all: Vec<u8> = (0..=255).collect();
                let _ = Fields::parse(&data, &all, signature);
            }
        }
    }
}

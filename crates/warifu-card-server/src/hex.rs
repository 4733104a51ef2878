// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hexadecimal, as AT commands and people write APDUs.

/// Two capital digits a byte.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 0x0f)]);
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]).collect()
}

/// The bytes of digits, capital or not; None for anything else and for an odd number of them.
#[must_use]
pub fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(value(high)? << 4 | value(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(encode(&all).as_bytes()), Some(all));
        assert_eq!(encode(&[0x9a, 0x0b]), "9A0B");
        assert_eq!(decode(b"9a0B"), Some(vec![0x9a, 0x0b]));
        assert_eq!(decode(b""), Some(vec![]));
        for wrong in [&b"9"[..], b"9g", b"+1", b"  "] {
            assert_eq!(decode(wrong), None);
        }
    }
}

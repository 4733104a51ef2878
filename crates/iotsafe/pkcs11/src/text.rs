// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text in the fixed-length fields of PKCS#11.

/// The maker that library, slots and tokens name.
pub(crate) const MANUFACTURER: &str = "Warifu";

/// Pads text with blanks, or cuts it between two characters (PKCS#11 2.40 section 3.1).
pub(crate) fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut field = [b' '; N];
    let mut length = text.len().min(N);
    while length < text.len() && length > 0 && text[length] & 0xc0 == 0x80 {
        length -= 1;
    }
    field[..length].copy_from_slice(&text[..length]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shorter_and_longer_than_its_field() {
        assert_eq!(&padded::<4>(b"ab"), b"ab  ");
        assert_eq!(&padded::<2>("aé".as_bytes()), b"a ");
        assert_eq!(&padded::<3>("aé".as_bytes()), "aé".as_bytes());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths of DER encodings (X.690).

/// Length of an element whose tag fits one byte: tag, length (X.690 section 8.1.3), content.
pub(crate) const fn element(content: u32) -> u32 {
    let length = match content {
        0..=0x7f => 1,
        0x80..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 5,
    };
    1 + length + content
}

/// Length of an INTEGER that is not negative (X.690 section 8.3): two's complement, so a set
/// top bit costs a leading zero.
pub(crate) const fn integer(value: u64) -> u32 {
    element((u64::BITS - value.leading_zeros()) / 8 + 1)
}

/// Length of an ECDSA signature (RFC 3279 section 2.2.3) whose integers have these contents.
pub(crate) const fn ecdsa_signature(r: u32, s: u32) -> u32 {
    element(element(r) + element(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_a_byte_more_where_the_top_bit_is_set() {
        for (value, length) in [(0, 3), (1, 3), (127, 3), (128, 4), (300, 4), (86_400, 5)] {
            assert_eq!(integer(value), length, "{value}");
        }
        assert_eq!(integer(0x7fff_ffff), 6);
        assert_eq!(integer(0x8000_0000), 7);
    }

    #[test]
    fn long_elements_have_long_lengths() {
        assert_eq!(element(127), 129);
        assert_eq!(element(128), 131);
        assert_eq!(element(256), 260);
        assert_eq!(element(65_536), 65_541);
    }

    #[test]
    fn an_ecdsa_signature_has_70_to_72_bytes() {
        assert_eq!(ecdsa_signature(32, 32), 70);
        assert_eq!(ecdsa_signature(33, 33), 72);
    }
}

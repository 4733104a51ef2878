// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tells cards apart: a label for people and a serial number, both in the applet's own
//! identifier (tag 11), whose form GSMA IoT.05 leaves to the issuer. This card's is the label, a byte
//! 00, the serial number; one that was made without a number has the label alone.

use crate::card::APPLET_ID_MAX_BYTES;

/// The length of a serial number: its hexadecimal digits fill PKCS#11's field of 16 characters.
pub const SERIAL_BYTES: usize = 8;
/// The most characters of a label.
pub const CARD_LABEL_MAX_BYTES: usize = APPLET_ID_MAX_BYTES - 1 - SERIAL_BYTES;
/// The label of a card that is given none.
pub const CARD_LABEL: &str = "warifu";

/// An applet's identifier of a label and a serial number; None for a label that is empty, too long
/// or of other characters than ASCII's visible ones.
#[must_use]
pub fn applet_id(label: &str, serial: [u8; SERIAL_BYTES]) -> Option<Vec<u8>> {
    let fits = is_label(label.as_bytes()) && label.len() <= CARD_LABEL_MAX_BYTES;
    fits.then(|| [label.as_bytes(), &[0], &serial].concat())
}

/// The label in an applet's identifier, of this card or another; None where there is no text.
#[must_use]
pub fn label(applet_id: &[u8]) -> Option<&str> {
    let text = applet_id.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().filter(|_| is_label(text))
}

/// The serial number: the last bytes of an applet's identifier, which differ between cards if
/// anything does.
#[must_use]
pub fn serial(applet_id: &[u8]) -> &[u8] {
    &applet_id[applet_id.len().saturating_sub(SERIAL_BYTES)..]
}

fn is_label(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_and_serial_come_back() {
        let id = applet_id("meter-7", [0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!(label(&id), Some("meter-7"));
        assert_eq!(serial(&id), [0, 1, 2, 3, 4, 5, 6, 7]);
        let longest = "m".repeat(CARD_LABEL_MAX_BYTES);
        assert_eq!(applet_id(&longest, [9; 8]).unwrap().len(), APPLET_ID_MAX_BYTES);
        for wrong in ["", "a b", "é", "a\0", &format!("{longest}m")] {
            assert_eq!(applet_id(wrong, [9; 8]), None, "{wrong:?}");
        }
    }

    #[test]
    fn identifiers_of_other_cards_are_read_as_they_are() {
        assert_eq!((label(b"warifu"), serial(b"warifu")), (Some("warifu"), &b"warifu"[..]));
        assert_eq!(label(&[0xff, 1, 2]), None);
        assert_eq!(label(b""), None);
        assert_eq!(serial(b""), b"");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The label and the serial number of a card. Both are in the applet's own identifier (tag 11),
//! whose form GSMA IoT.05 leaves to the issuer: here the label, a byte 00, and the serial number;
//! without a number the label alone.

/// The most bytes of an applet's identifier: Orange's client has room for 32, and a length that is
/// one too large is among the quirks.
pub const APPLET_ID_MAX_BYTES: usize = 31;
/// The length of a serial number: its hexadecimal digits fill PKCS#11's field of 16 characters.
pub const SERIAL_BYTES: usize = 8;
/// The most characters of a label.
pub const CARD_LABEL_MAX_BYTES: usize = APPLET_ID_MAX_BYTES - 1 - SERIAL_BYTES;
/// The default label.
pub const CARD_LABEL: &str = "warifu";

/// What PKCS#11 calls a card whose applet shows no identifier with a label.
pub const NO_LABEL: &str = "iot-safe";

/// The applet's identifier for a label and a serial number; None for a label that is empty, too
/// long or not of visible ASCII characters.
#[must_use]
pub fn applet_id(label: &str, serial: [u8; SERIAL_BYTES]) -> Option<Vec<u8>> {
    let fits = is_label(label.as_bytes()) && label.len() <= CARD_LABEL_MAX_BYTES;
    fits.then(|| [label.as_bytes(), &[0], &serial].concat())
}

/// The label in an applet's identifier, of this card or another; None if it has no text.
#[must_use]
pub fn label(applet_id: &[u8]) -> Option<&str> {
    let text = applet_id.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().filter(|_| is_label(text))
}

/// The serial number: the last bytes of an applet's identifier, which are most likely to differ
/// between cards.
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
    fn label_and_serial_round_trip() {
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
    fn identifiers_of_other_cards() {
        assert_eq!((label(b"warifu"), serial(b"warifu")), (Some("warifu"), &b"warifu"[..]));
        assert_eq!(label(&[0xff, 1, 2]), None);
        assert_eq!(label(b""), None);
        assert_eq!(serial(b""), b"");
    }
}

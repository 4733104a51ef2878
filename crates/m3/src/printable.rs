// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What names of a file may not have in a line of text.

/// Whether a terminal obeys a character instead of showing it: C0, DEL and C1 (ECMA-48), the
/// bidirectional controls (Unicode Standard Annex 9), and the separators of lines and paragraphs.
/// The same set as that of Warifu's tables (python/warifu/printable.py).
pub fn is_obeyed(letter: char) -> bool {
    let ends_or_turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || ends_or_turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_and_controls_are_not() {
        assert!("größer 割符 a-b".chars().all(|letter| !is_obeyed(letter)));
        let obeyed = "\x1b\x07\n\u{9b}\u{61c}\u{200f}\u{2028}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert!(obeyed.chars().all(is_obeyed));
    }
}

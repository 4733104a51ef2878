// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text of others, for a terminal.

/// A text without what a terminal would obey: control characters, escape sequences, the marks that
/// turn the direction of writing (Unicode Standard Annex 9), and the separators of lines and
/// paragraphs, as `\\u{1b}`.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match is_obeyed(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
        shown
    })
}

fn is_obeyed(c: char) -> bool {
    let ends_or_turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || ends_or_turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_others_kept() {
        assert_eq!(printable("+CME ERROR: 3, größer 割符"), "+CME ERROR: 3, größer 割符");
        assert_eq!(printable("\x1b]0;owned\x07\r\n"), "\\u{1b}]0;owned\\u{7}\\u{d}\\u{a}");
        // C1: CSI as one character.
        assert_eq!(printable("\u{9b}2J\u{202e}"), "\\u{9b}2J\\u{202e}");
        assert_eq!(printable("\u{61c}\u{2028}\u{2029}"), "\\u{61c}\\u{2028}\\u{2029}");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The right word nearest to a wrong one.

/// The known word that `word` was most likely meant to be, if any is near enough. Upper and
/// lower case, `-` and `_` count as the same.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are no typing errors, and comparing them costs the product of the lengths.
    if word.len() > 100 {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let wrong = plain(word);
    // One slip of the keys (two letters exchanged count as one) or, for longer words, a
    // similarity below which suggestions confuse more than they help. The first of equals wins,
    // so that the answer does not depend on chance.
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let right = plain(name);
        let slips = strsim::damerau_levenshtein(&wrong, &right);
        let near = slips <= 1 && right.len() > 2 || strsim::jaro_winkler(&wrong, &right) >= 0.85;
        if near && best.is_none_or(|(fewest, _)| slips < fewest) {
            best = Some((slips, name));
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors() {
        let known = ["rtt", "rate", "rate_up", "rate_down", "loss", "queue_packets", "mtu"];
        assert_eq!(nearest("queue-packet", known.into_iter()), Some("queue_packets"));
        assert_eq!(nearest("los", known.into_iter()), Some("loss"));
        assert_eq!(nearest("RTT", known.into_iter()), Some("rtt"));
        assert_eq!(nearest("temperature", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), known.into_iter()), None);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of CoAP.

use super::Clash;
use crate::case::{Coap, CoapMessageType};
use crate::study::draft::Draft;
use crate::units::Nanos;

/// Uri-Path and Uri-Query (RFC 7252 section 5.10).
const LONGEST_OPTION: usize = 255;
/// What fits the MTU of 1152 B that libcoap assumes, with the options' headers.
const LONGEST_PATH: usize = 1_000;
/// The longest that a study may let a request be outstanding.
const MOST_TRANSMIT_WAIT: Nanos = Nanos(12 * HOUR.0);
const HOUR: Nanos = Nanos::from_millis(3_600_000);

/// What the draft states of CoAP, else the defaults of RFC 7252 section 4.8. What is said of
/// retransmissions is for confirmable messages: others differ in nothing by it.
pub(super) fn layer(draft: &Draft, clashes: &mut Vec<Clash>) -> Option<Coap> {
    let defaults = Coap {
        message_type: draft.message_type.unwrap_or(CoapMessageType::Confirmable),
        ack_timeout: Nanos::from_millis(2_000),
        ack_random_factor_percent: 150,
        max_retransmit: 4,
    };
    if defaults.message_type == CoapMessageType::NonConfirmable {
        return Some(defaults);
    }
    let coap = Coap {
        ack_timeout: draft.ack_timeout.unwrap_or(defaults.ack_timeout),
        ack_random_factor_percent: draft
            .ack_random_factor_percent
            .unwrap_or(defaults.ack_random_factor_percent),
        max_retransmit: draft.max_retransmit.unwrap_or(defaults.max_retransmit),
        ..defaults
    };
    let wait = max_transmit_wait(&coap);
    if wait <= MOST_TRANSMIT_WAIT {
        return Some(coap);
    }
    let message = format!(
        "is {}: a request could be outstanding for {} h (MAX_TRANSMIT_WAIT, RFC 7252 section \
         4.8.2); expected at most {} h: choose fewer, or a shorter stack.ack_timeout",
        coap.max_retransmit,
        wait.0 / HOUR.0,
        MOST_TRANSMIT_WAIT.0 / HOUR.0
    );
    clashes.push(("stack.max_retransmit", message));
    None
}

/// Refuses a path whose segments and arguments are not a request's options as they are written
/// (RFC 7252 section 6.4).
pub(super) fn check_path(path: &str) -> Result<(), Clash> {
    let refuse = |why: &str| Err(("pattern.path", format!("is {}: {why}", cut(path))));
    let (segments, query) = match path.split_once('?') {
        Some((segments, query)) => (segments, Some(query)),
        None => (path, None),
    };
    let arguments = || query.into_iter().flat_map(|query| query.split('&'));
    if path.contains(['%', '#']) {
        return refuse("CoAP's options carry their bytes as they are; choose one without % and #");
    }
    if segments.split('/').any(|segment| matches!(segment, "." | "..")) {
        return refuse("a Uri-Path option is neither . nor .. (RFC 7252 section 5.10.1)");
    }
    if arguments().any(str::is_empty) {
        return refuse("an argument is empty; remove the ? or & before it");
    }
    if segments.split('/').chain(arguments()).any(|option| option.len() > LONGEST_OPTION) {
        return refuse("expected parts of at most 255 B (RFC 7252 section 5.10)");
    }
    if path.len() > LONGEST_PATH {
        return refuse("expected at most 1000 B, which fit one message");
    }
    Ok(())
}

/// The beginning of a path, for messages.
fn cut(path: &str) -> String {
    const MOST: usize = 60;
    // A path is ASCII.
    if path.len() <= MOST { path.into() } else { format!("{}...", &path[..MOST]) }
}

/// RFC 7252 section 4.8.2: from the first transmission to giving up.
fn max_transmit_wait(coap: &Coap) -> Nanos {
    let factor = u64::from(coap.ack_random_factor_percent);
    let timeouts = (2_u64 << coap.max_retransmit) - 1;
    Nanos((coap.ack_timeout.0 / 100).saturating_mul(factor).saturating_mul(timeouts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_transmit_wait_of_the_defaults() {
        let coap = layer(&Draft::default(), &mut Vec::new()).unwrap();
        assert_eq!(max_transmit_wait(&coap), Nanos::from_millis(93_000));
    }

    #[test]
    fn paths_that_are_no_options() {
        for path in ["/", "/a", "//a", "/a/b?c=1&d", "/?x"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        let long = format!("/{}", "a".repeat(256));
        let longer = "/a".repeat(501);
        for (path, word) in [
            ("/a%20b", "without % and #"),
            ("/a/../b", "neither . nor .."),
            ("/a?", "an argument is empty"),
            ("/a?b&&c", "an argument is empty"),
            (&long, "parts of at most 255 B"),
            (&longer, "at most 1000 B"),
        ] {
            let (key, message) = check_path(path).unwrap_err();
            assert_eq!(key, "pattern.path");
            assert!(message.contains(word) && message.len() < 160, "{message}");
        }
    }

    #[test]
    fn largest_parameters() {
        let draft = Draft {
            ack_timeout: Some(Nanos::from_millis(60_000)),
            ack_random_factor_percent: Some(1_000),
            max_retransmit: Some(20),
            ..Draft::default()
        };
        let mut clashes = Vec::new();
        assert_eq!(layer(&draft, &mut clashes), None);
        let (path, message) = &clashes[0];
        assert_eq!(*path, "stack.max_retransmit");
        assert!(message.starts_with("is 20: a request could be outstanding for 349525 h"));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths of CoAP messages (RFC 7252 section 3).

/// Version, type, token length, code and message ID (RFC 7252 section 3).
const HEADER: u32 = 4;
/// The byte between options and payload (RFC 7252 section 3).
const PAYLOAD_MARKER: u32 = 1;

/// Numbers of options (RFC 7252 section 12.2).
pub(super) const URI_PATH: u16 = 11;
/// See [`URI_PATH`].
pub(super) const URI_QUERY: u16 = 15;

/// Length of a message with these options, by rising number, each with its value's length.
pub(super) fn bytes(token: u32, options: &[(u16, u32)], payload: u32) -> u32 {
    let mut total = HEADER + token;
    let mut last = 0;
    for &(number, length) in options {
        let delta = u32::from(number - last);
        last = number;
        total += 1 + extended(delta) + extended(length) + length;
    }
    if payload > 0 {
        total += PAYLOAD_MARKER + payload;
    }
    total
}

/// Bytes by which an option's delta or length is extended (RFC 7252 section 3.1).
const fn extended(value: u32) -> u32 {
    match value {
        0..=12 => 0,
        13..=268 => 1,
        _ => 2,
    }
}

/// The options of a path and query: one Uri-Path for each segment, one Uri-Query for each argument
/// (RFC 7252 section 6.4).
pub(super) fn uri_options(path: &str) -> Vec<(u16, u32)> {
    let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
    // A path of "/" alone has no option; an empty segment has one, which is empty.
    let segments = path.strip_prefix('/').filter(|rest| !rest.is_empty());
    let segments = segments.into_iter().flat_map(|rest| rest.split('/'));
    let arguments = query.into_iter().flat_map(|query| query.split('&'));
    let option = |number: u16| move |text: &str| (number, text.len() as u32);
    segments.map(option(URI_PATH)).chain(arguments.map(option(URI_QUERY))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7252, figures 16 and 17.
    #[test]
    fn lengths_of_examples() {
        // Figure 16 of RFC 7252: GET /temperature without token: header, option of 11 bytes.
        assert_eq!(bytes(0, &uri_options("/temperature"), 0), 4 + 1 + 11);
        // Its response: 2.05 with the payload "22.3 C".
        assert_eq!(bytes(0, &[], 6), 4 + 1 + 6);
        // Figure 17: the same with a token of one byte.
        assert_eq!(bytes(1, &uri_options("/temperature"), 0), 4 + 1 + 1 + 11);
    }

    #[test]
    fn long_values_extend_the_length() {
        assert_eq!(bytes(0, &[(URI_PATH, 13)], 0), 4 + 1 + 1 + 13);
        assert_eq!(bytes(0, &[(URI_PATH, 300)], 0), 4 + 1 + 2 + 300);
        // Content-Format (12) and Size1 (60): the difference of their numbers is extended.
        assert_eq!(bytes(0, &[(12, 0), (60, 2)], 0), 4 + 1 + 1 + 1 + 2);
    }

    #[test]
    fn uri_becomes_options() {
        assert_eq!(uri_options("/"), []);
        assert_eq!(uri_options("/a/bc"), [(URI_PATH, 1), (URI_PATH, 2)]);
        assert_eq!(uri_options("//a"), [(URI_PATH, 0), (URI_PATH, 1)]);
        assert_eq!(uri_options("/?a"), [(URI_QUERY, 1)]);
        assert_eq!(uri_options("/a?x=1&y"), [(URI_PATH, 1), (URI_QUERY, 3), (URI_QUERY, 1)]);
    }
}

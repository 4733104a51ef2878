// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is wrong with a key of a configuration, in words of people who write one. The parser's name
//! types of Rust: `invalid type: string "root", expected u32`.

/// An error at a key: `path` leads to it (`caller[0].uid`), `message` is the parser's, `expected`
/// says for each key what it takes. A PIN is not repeated.
#[must_use]
pub fn key_error(path: &str, message: &str, expected: &[(&str, &str)]) -> String {
    let message = message.lines().next().unwrap_or_default();
    let taken = |key: &str| {
        let found = expected.iter().find(|(name, _)| *name == key);
        found.map(|(_, takes)| *takes)
    };
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'))
    {
        let takes = taken(key.0).map(|takes| format!(", {takes}")).unwrap_or_default();
        return format!("{path} has no {}: add it{takes}", key.0);
    }
    // `may[0]` is of the key `may`.
    let last = path.rsplit('.').next().unwrap_or_default();
    let key = last.split('[').next().unwrap_or_default();
    let Some(takes) = taken(key) else { return format!("{path}: {message}") };
    match shown(message).filter(|_| key != "pin") {
        Some(value) => format!("{path} is {value}: expected {takes}"),
        None => format!("{path}: expected {takes}"),
    }
}

/// The value of `invalid type: integer `1`, expected ..` and its like.
fn shown(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))?;
    let (value, _) = rest.rsplit_once(", expected ")?;
    let quoted = |kind: &str| value.strip_prefix(kind)?.strip_suffix('`').map(str::to_owned);
    let plain = ["integer `", "boolean `", "floating point `"].into_iter().find_map(quoted);
    Some(plain.unwrap_or_else(|| match value {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        other => other.strip_prefix("string ").unwrap_or(other).to_owned(),
    }))
}

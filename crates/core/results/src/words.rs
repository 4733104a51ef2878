// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the JSON library says of a manifest, in plain words.
//!
//! The library names Rust's types and quotes keys in its own way; whoever reads the message has a
//! file in front of them and wants the key, what it is, and what was expected.

use serde_json::Value;

/// Letters of a value that are shown at most.
const MOST_SHOWN: usize = 60;

/// The key at fault and what is wrong with it. `path` is the place that the library names: of a
/// missing or unknown key it is the object that should or should not have it.
pub(crate) fn plain(path: &str, cause: &str) -> (String, String) {
    let path = if path == "." { "" } else { path };
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let name = cause.split('`').nth(1).unwrap_or_default();
    if cause.starts_with("missing field") {
        return (below(name), "is missing".to_owned());
    }
    if cause.starts_with("duplicate field") {
        return (below(name), "is there twice".to_owned());
    }
    if cause.starts_with("unknown field") {
        // The path ends with the key where the library knows it.
        let key = if path == name || path.ends_with(&format!(".{name}")) {
            path.to_owned()
        } else {
            below(name)
        };
        return (key, "is a key that no manifest has".to_owned());
    }
    let key = if path.is_empty() { "manifest".to_owned() } else { path.to_owned() };
    if cause.starts_with("unknown variant") {
        let expected = cause.split_once("expected ").map_or("", |(_, rest)| rest);
        let expected = expected.trim_start_matches("one of ").replace('`', "");
        return (key, format!("is {}: expected {expected}", cut(&format!("{name:?}"))));
    }
    for kind in ["invalid type: ", "invalid value: "] {
        let rest = cause.strip_prefix(kind);
        // The value may itself hold the words that part it from what was expected.
        if let Some((found, expected)) = rest.and_then(|rest| rest.rsplit_once(", expected ")) {
            return (key, format!("is {}: expected {}", value(found), wanted(expected)));
        }
    }
    if let Some((found, expected)) =
        cause.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        let expected = match expected.strip_prefix("a tuple of size ") {
            Some(count) => count.to_owned(),
            None => wanted(expected),
        };
        return (key, format!("is a list of {found}: expected {expected}"));
    }
    (key, format!("cannot be used: {}", cut(cause)))
}

/// Where a text stops to be JSON.
pub(crate) fn not_json(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.is_eof() {
        return format!("is cut off at line {line}, column {column}");
    }
    format!("is not JSON at line {line}, column {column}")
}

/// A value as it stands in a message.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => cut(&other.to_string()),
    }
}

/// The library's word for a value: `string "abc"`, ``integer `3` ``, `map`.
fn value(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "null".to_owned(),
        _ => cut(found.strip_prefix("string ").unwrap_or_else(|| {
            found.split_once('`').map_or(found, |(_, rest)| rest.trim_end_matches('`'))
        })),
    }
}

/// The library's word for what it expected.
fn wanted(expected: &str) -> String {
    let words = match expected {
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("a tuple of size ") => {
            return expected.replacen("a tuple of size ", "a list of ", 1);
        }
        _ if expected.starts_with("variant identifier")
            || expected.starts_with("string or map") =>
        {
            "one of its words"
        }
        other => other,
    };
    words.to_owned()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, cause: &str) -> String {
        let (key, message) = plain(path, cause);
        format!("{key} {message}")
    }

    #[test]
    fn words_of_the_library() {
        for (path, cause, expected) in [
            (
                "seed",
                "invalid type: string \"abc\", expected u64",
                "seed is \"abc\": expected a whole number",
            ),
            (
                "seed",
                "invalid value: integer `-1`, expected u64",
                "seed is -1: expected a whole number",
            ),
            (
                "study",
                "invalid type: sequence, expected struct StudyUsed",
                "study is a list: expected an object",
            ),
            (".", "missing field `run_id`", "run_id is missing"),
            ("study", "missing field `text`", "study.text is missing"),
            (
                ".",
                "unknown field `sead`, expected one of `a`, `b`",
                "sead is a key that no manifest has",
            ),
            (
                "half",
                "unknown variant `x`, expected one of `a`, `b`",
                "half is \"x\": expected a, b",
            ),
            (
                "vary[0]",
                "invalid type: integer `3`, expected a tuple of size 2",
                "vary[0] is 3: expected a list of 2",
            ),
            (
                "a",
                "invalid type: string \", expected u64\", expected a map",
                "a is \", expected u64\": expected an object",
            ),
            (
                "vary[0]",
                "invalid length 1, expected a tuple of size 2",
                "vary[0] is a list of 1: expected 2",
            ),
        ] {
            assert_eq!(told(path, cause), expected);
        }
    }

    #[test]
    fn long_values_are_cut() {
        let cause = format!("invalid type: string \"{}\", expected u64", "ü".repeat(500));
        assert!(told("seed", &cause).len() < 200);
    }
}

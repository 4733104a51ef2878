// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subject of a certificate request: text of RFC 4514 within the lengths of RFC 5280.

use std::str::FromStr;

use der::asn1::ObjectIdentifier;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::name::Name;

use crate::error::ServerError;

/// Attributes with their shortest and longest values, in characters (RFC 5280 appendix A.1).
const BOUNDS: [(&str, ObjectIdentifier, usize, usize); 7] = [
    ("CN", ObjectIdentifier::new_unwrap("2.5.4.3"), 1, 64),
    ("serialNumber", ObjectIdentifier::new_unwrap("2.5.4.5"), 1, 64),
    ("C", ObjectIdentifier::new_unwrap("2.5.4.6"), 2, 2),
    ("L", ObjectIdentifier::new_unwrap("2.5.4.7"), 1, 128),
    ("ST", ObjectIdentifier::new_unwrap("2.5.4.8"), 1, 128),
    ("O", ObjectIdentifier::new_unwrap("2.5.4.10"), 1, 64),
    ("OU", ObjectIdentifier::new_unwrap("2.5.4.11"), 1, 64),
];

/// Reads a subject such as `CN=device-1,O=Example`.
///
/// # Errors
/// [`ServerError::Request`] for invalid text, and for a value that cannot be certified.
pub fn parse(text: &str) -> Result<Name, ServerError> {
    let name = Name::from_str(text).ok().filter(|name| !name.is_empty()).ok_or_else(|| {
        ServerError::Request(format!(
            "the subject is {text:?}: expected, for example, \"CN=device-1,O=Example\" (RFC 4514)"
        ))
    })?;
    name.iter().try_for_each(check)?;
    Ok(name)
}

fn check(attribute: &AttributeTypeAndValue) -> Result<(), ServerError> {
    let Some((name, _, least, most)) = BOUNDS.iter().find(|(_, oid, ..)| *oid == attribute.oid)
    else {
        return Ok(());
    };
    let characters = String::from_utf8_lossy(attribute.value.value()).chars().count();
    if (*least..=*most).contains(&characters) {
        return Ok(());
    }
    let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Err(ServerError::Request(format!(
        "the subject's {name} has {characters} characters: expected {expected} (RFC 5280 appendix \
         A.1)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_subjects() {
        let longest = format!("CN={},C=JP,OU=é", "é".repeat(64));
        for text in ["CN=device-1", "CN=device-1,O=Example", "O=Example", &longest] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_subjects() {
        let long = "d".repeat(65);
        for (text, expected) in [
            ("", "the subject is \"\": expected, for example"),
            ("device-1", "the subject is \"device-1\": expected, for example"),
            ("CN=", "the subject's CN has 0 characters: expected 1 to 64 (RFC 5280"),
            (&format!("CN={long}"), "the subject's CN has 65 characters: expected 1 to 64"),
            ("CN=device-1,O=", "the subject's O has 0 characters: expected 1 to 64"),
            ("CN=device-1,C=JPN", "the subject's C has 3 characters: expected 2 (RFC 5280"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stack in one text: `https/tls1.3/resumed/mutual`.

use super::draft::SessionWord;
use super::settings;
use crate::case::{
    Authentication, CertificateType, CoapMessageType, DdsAead, DdsCrypto, DdsMiddleware, Group,
    Protocol, TlsVersion,
};
use crate::keyword::Keyword;
use crate::nearest::nearest;

/// The settings that the words of a stack stand for, as path and value. The protocol comes
/// first, the others in any order.
pub(crate) fn stack(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut words = text.split('/');
    let protocol = words.next().unwrap_or_default();
    let mut list = vec![("stack.protocol", protocol.to_string())];
    let known = Protocol::from_word(protocol)
        .map_err(|expected| format!("\"{protocol}\" comes first: {expected}"))?;
    for word in words {
        let words = all();
        let Some(&Word { path, value, .. }) = words.iter().find(|known| known.word == word) else {
            let goes = |path| settings::find(path).is_some_and(|setting| known.has(setting.layer));
            let known = || words.iter().filter(|known| goes(known.path)).map(|known| known.word);
            let hint = match nearest(word, known()) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => format!("expected {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("\"{word}\" is not known in it; {hint}"));
        };
        let layer = settings::find(path).map(|setting| setting.layer);
        if let Some(layer) = layer.filter(|&layer| !known.has(layer)) {
            return Err(format!(
                "\"{word}\" does not go with {protocol}: {}",
                layer.missing_from(known)
            ));
        }
        if list.iter().any(|(earlier, _)| *earlier == path) {
            return Err(format!("\"{word}\" says {path} a second time"));
        }
        list.push((path, value.to_string()));
    }
    Ok(list)
}

/// A word of a stack, and the setting and value that it stands for.
struct Word {
    word: &'static str,
    path: &'static str,
    value: &'static str,
}

/// Every word after the protocol.
fn all() -> Vec<Word> {
    fn names<T: Keyword>(path: &'static str) -> impl Iterator<Item = Word> {
        T::ALL.iter().map(move |value| Word { word: value.name(), path, value: value.name() })
    }
    fn aliases<T: Keyword>(path: &'static str) -> impl Iterator<Item = Word> {
        let word =
            move |&(word, value): &(&'static str, T)| Word { word, path, value: value.name() };
        T::ALIASES.iter().map(word)
    }
    // A version's word carries its protocol, "tls1.3".
    aliases::<TlsVersion>("stack.tls")
        .chain(names::<SessionWord>("stack.session"))
        .chain(names::<Authentication>("stack.authentication"))
        .chain(names::<Group>("stack.group"))
        .chain(aliases::<Group>("stack.group").filter(|known| known.word == "P-256"))
        .chain(names::<CertificateType>("stack.certificate"))
        .chain(names::<CoapMessageType>("stack.message_type"))
        .chain(aliases::<CoapMessageType>("stack.message_type"))
        .chain(names::<DdsMiddleware>("stack.middleware"))
        .chain(names::<DdsCrypto>("stack.crypto"))
        .chain(names::<DdsAead>("stack.crypto_aead"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_order_after_the_protocol() {
        let expected = Ok(vec![
            ("stack.protocol", "https".to_string()),
            ("stack.authentication", "mutual".into()),
            ("stack.tls", "1.3".into()),
            ("stack.session", "resumed".into()),
        ]);
        assert_eq!(stack("https/mutual/tls1.3/resumed"), expected);
        for (text, part) in [
            ("", "comes first"),
            ("tls1.3/https", "comes first"),
            ("https/tls1.4", "did you mean \"tls1.2\"?"),
            ("https/tls1.2/tls1.3", "a second time"),
            ("https//", "is not known"),
            ("https/banana", "psk_dhe_ke"),
            ("coap/banana", "expected CON, NON, con, non"),
            ("https/con", "\"con\" does not go with https: only coap has it"),
            ("dds/con", "only coap has it"),
            ("https/builtin", "only dds has it"),
            ("dds/warifu/AEGIS-129L", "did you mean \"AEGIS-128L\"?"),
            ("coap/tls1.3", "\"tls1.3\" does not go with coap: coap has no TLS"),
        ] {
            let message = stack(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The record layer: how many bytes go on the wire for a message.

use warifu_model::{Aead, Tls, TlsVersion};

use crate::trace::Bytes;

/// Type, legacy version and length (RFC 8446 section 5.1, RFC 5246 section 6.2.1).
pub(crate) const HEADER: u32 = 5;
/// The real content type inside a protected TLS 1.3 record (RFC 8446 section 5.2).
const INNER_TYPE: u32 = 1;
/// The tag of AES-GCM (RFC 5116 section 5.1) and ChaCha20-Poly1305 (RFC 8439 section 2.8).
const TAG: u32 = 16;
/// The part of the nonce that TLS 1.2 sends with AES-GCM (RFC 5288 section 3).
const GCM_EXPLICIT_NONCE: u32 = 8;
/// The largest plaintext of one record (RFC 8446 section 5.1, RFC 5246 section 6.2.1), and
/// what OpenSSL fills (`SSL_CTX_set_split_send_fragment`, default `max_send_fragment`).
pub(crate) const FRAGMENT: u32 = 16_384;
/// The content of a ChangeCipherSpec record (RFC 8446 section 5, RFC 5246 section 7.1).
pub(crate) const CHANGE_CIPHER_SPEC: u32 = 1;

/// The content of an alert: level and description (RFC 8446 section 6, RFC 5246 section 7.2).
pub(crate) const ALERT: u32 = 2;

/// Whether records are protected yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// They are not.
    Plain,
    /// By the keys of the stack's version and AEAD.
    Aead,
}

/// How many bytes a record has beside its content.
pub(crate) fn overhead(tls: &Tls, protection: Protection) -> u32 {
    match (protection, tls.version, tls.cipher_suite.aead()) {
        (Protection::Plain, _, _) => HEADER,
        (Protection::Aead, TlsVersion::Tls13, _) => HEADER + INNER_TYPE + TAG,
        // RFC 7905 section 2: no explicit nonce.
        (Protection::Aead, TlsVersion::Tls12, Aead::ChaCha20Poly1305) => HEADER + TAG,
        (Protection::Aead, TlsVersion::Tls12, Aead::Aes128Gcm | Aead::Aes256Gcm) => {
            HEADER + GCM_EXPLICIT_NONCE + TAG
        }
    }
}

/// Cuts a message's content into the contents of its records: full ones, then the rest. What
/// varies in length is counted with the last one.
pub(crate) fn fragments(content: Bytes) -> Vec<Bytes> {
    let full = content.fixed.saturating_sub(1) / FRAGMENT;
    let rest = Bytes { fixed: content.fixed - full * FRAGMENT, ..content };
    let mut cut = vec![Bytes::exactly(FRAGMENT); full as usize];
    cut.push(rest);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_full_but_for_the_last() {
        for (content, expected) in [
            (1, vec![1]),
            (16_384, vec![16_384]),
            (16_385, vec![16_384, 1]),
            (40_000, vec![16_384, 16_384, 7_232]),
        ] {
            let cut: Vec<u32> =
                fragments(Bytes::exactly(content)).iter().map(|part| part.fixed).collect();
            assert_eq!(cut, expected);
        }
    }
}

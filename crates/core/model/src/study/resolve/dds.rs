// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of DDS.

use super::Clash;
use crate::case::{Dds, DdsAead, DdsCrypto, DdsMiddleware, DdsProtection};
use crate::keyword::Keyword;
use crate::study::draft::Draft;

/// Longer than any that ROS 2 makes; with "rt/" before it, what OMG's implementations take.
const LONGEST_TOPIC: usize = 200;

/// What the draft states of DDS, else the middleware's own plugin under SROS2's governance (`warifu
/// dds keystore` has the same defaults). Without security nothing is protected, whatever is said.
pub(super) fn layer(draft: &Draft, clashes: &mut Vec<Clash>) -> Option<Dds> {
    use DdsProtection::{Encrypt, None as Plain, Sign};
    let middleware = draft.middleware.unwrap_or_default();
    let crypto = draft.crypto.unwrap_or(DdsCrypto::Builtin);
    if crypto == DdsCrypto::None {
        return Some(Dds {
            crypto,
            aead: DdsAead::Aes256Gcm,
            data_protection: Plain,
            metadata_protection: Plain,
            rtps_protection: Plain,
            discovery_protection: Plain,
            middleware,
        });
    }
    let dds = Dds {
        crypto,
        aead: draft.crypto_aead.unwrap_or(DdsAead::Aes256Gcm),
        data_protection: draft.data_protection.unwrap_or(Encrypt),
        metadata_protection: draft.metadata_protection.unwrap_or(Encrypt),
        rtps_protection: draft.rtps_protection.unwrap_or(Sign),
        discovery_protection: draft.discovery_protection.unwrap_or(Encrypt),
        middleware,
    };
    let before = clashes.len();
    if dds.data_protection.authenticates_origin() {
        let message = format!(
            "is {}: a payload has no tag for each receiver (DDS Security 1.1, section 9.4.1.2.2); \
             expected NONE, SIGN or ENCRYPT",
            dds.data_protection.name()
        );
        clashes.push(("stack.data_protection", message));
    }
    if crypto == DdsCrypto::Warifu && middleware == DdsMiddleware::FastDds {
        let message = "is warifu: Fast DDS loads no cryptographic plugin but its own; choose \
                       stack.crypto = \"builtin\", or stack.middleware = \"cyclonedds\"";
        clashes.push(("stack.crypto", message.into()));
    }
    if crypto == DdsCrypto::Builtin && dds.aead != DdsAead::Aes256Gcm {
        let message = format!(
            "is {}: the middleware's own plugin has AES-256-GCM; choose {}",
            dds.aead.name(),
            match middleware {
                DdsMiddleware::CycloneDds => "stack.crypto = \"warifu\"",
                DdsMiddleware::FastDds => {
                    "that, or stack.middleware = \"cyclonedds\" with stack.crypto = \"warifu\""
                }
            }
        );
        clashes.push(("stack.crypto_aead", message));
    }
    (clashes.len() == before).then_some(dds)
}

/// Refuses a path that is no topic's name (ROS 2's design, "Topic and Service name mapping to
/// DDS"): words of letters, digits and underscores, none beginning with a digit.
pub(super) fn check_path(path: &str) -> Result<(), Clash> {
    let word = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && word.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    let is_topic = path.strip_prefix('/').is_some_and(|topic| topic.split('/').all(word));
    if is_topic && path.len() <= LONGEST_TOPIC {
        return Ok(());
    }
    let message = "is no topic's name: expected words of letters, digits and underscores, such as \
                   \"/chatter\"";
    Err(("pattern.path", message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clash(draft: Draft) -> String {
        let mut clashes = Vec::new();
        assert_eq!(layer(&draft, &mut clashes), None);
        let (path, message) = clashes.remove(0);
        format!("{path} {message}")
    }

    #[test]
    fn defaults_are_those_of_sros2() {
        let dds = layer(&Draft::default(), &mut Vec::new()).unwrap();
        assert_eq!(dds.crypto, DdsCrypto::Builtin);
        assert_eq!(dds.data_protection, DdsProtection::Encrypt);
        assert_eq!(dds.metadata_protection, DdsProtection::Encrypt);
        assert_eq!(dds.rtps_protection, DdsProtection::Sign);
        assert_eq!(dds.discovery_protection, DdsProtection::Encrypt);
    }

    #[test]
    fn choices_that_no_plugin_has() {
        let builtin = Draft { crypto_aead: Some(DdsAead::Aegis128L), ..Draft::default() };
        assert!(clash(builtin).starts_with("stack.crypto_aead is AEGIS-128L: the middleware's"));
        let origin = DdsProtection::SignWithOriginAuthentication;
        let payload = Draft { data_protection: Some(origin), ..Draft::default() };
        assert!(clash(payload).contains("expected NONE, SIGN or ENCRYPT"));
    }

    #[test]
    fn fast_dds_has_its_own_plugin_alone() {
        let fast = |draft| Draft { middleware: Some(DdsMiddleware::FastDds), ..draft };
        let plugin = Draft { crypto: Some(DdsCrypto::Warifu), ..Draft::default() };
        let message = clash(fast(plugin));
        assert!(message.starts_with("stack.crypto is warifu: Fast DDS loads no"), "{message}");
        let aead = Draft { crypto_aead: Some(DdsAead::Aes128Gcm), ..Draft::default() };
        let message = clash(fast(aead));
        assert!(message.starts_with("stack.crypto_aead is AES-128-GCM"), "{message}");
        let own = layer(&fast(Draft::default()), &mut Vec::new()).unwrap();
        assert_eq!(own.middleware, DdsMiddleware::FastDds);
        assert_eq!(own.crypto, DdsCrypto::Builtin);
    }

    #[test]
    fn nothing_is_protected_without_security() {
        let draft = Draft {
            crypto: Some(DdsCrypto::None),
            rtps_protection: Some(DdsProtection::Encrypt),
            ..Draft::default()
        };
        let dds = layer(&draft, &mut Vec::new()).unwrap();
        assert_eq!(dds.rtps_protection, DdsProtection::None);
    }

    #[test]
    fn topics() {
        let longest = format!("/{}", "a".repeat(LONGEST_TOPIC - 1));
        for path in ["/chatter", "/a/b_2", "/_x", &longest] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        let longer = format!("{longest}a");
        for path in ["/", "/a//b", "/2a", "/a b", "/a?x=1", &longer] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }
}

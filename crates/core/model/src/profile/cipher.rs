// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What of a DDS protection its cipher does, in primitives: what a plugin does beside it is an
//! operation's own cost.

use crate::case::{Dds, DdsCrypto, DdsProtection, Stack};
use crate::operation::{DdsMessage, Direction, Operation};
use crate::primitive::{Cipher, KeySetUp, Primitive};
use crate::units::Nanos;

/// What a cipher does for an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CipherCost {
    /// The call that works on the operation's bytes, as the profile has it.
    pub primitive: Primitive,
    /// With warm caches, for all bytes and all calls.
    pub warm: Nanos,
    /// After the processor was idle for longer than the profile's threshold.
    pub cold: Nanos,
}

/// A call of a cipher, for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CipherCall {
    pub(super) primitive: Primitive,
    pub(super) bytes: u32,
}

/// A receiver's tag is a MAC over the message's own (DDS Security 1.1, section 9.5.3.3.4).
const TAG_BYTES: u32 = 16;

/// The calls that an operation makes in a stack; none of what is no protection.
pub(super) fn calls(operation: Operation, stack: &Stack, bytes: u32) -> Vec<CipherCall> {
    let (Operation::Dds(_, direction, message), Some(dds)) = (operation, stack.dds()) else {
        return Vec::new();
    };
    let kind = protection(dds, message);
    if dds.crypto == DdsCrypto::None || kind == DdsProtection::None {
        return Vec::new();
    }
    // Cyclone DDS 0.10.2 makes a context and sets its key in each call; ours keeps them.
    let key = match dds.crypto {
        DdsCrypto::Warifu => KeySetUp::Once,
        DdsCrypto::Builtin | DdsCrypto::None => KeySetUp::EachCall,
    };
    let cipher = Cipher::Dds(dds.aead, key);
    let primitive = match (kind.encrypts(), direction) {
        (true, Direction::Send) => Primitive::Seal(cipher),
        (true, Direction::Receive) => Primitive::Open(cipher),
        (false, _) => Primitive::Mac(cipher),
    };
    let mut calls = vec![CipherCall { primitive, bytes }];
    if kind.authenticates_origin() {
        calls.push(CipherCall { primitive: Primitive::Mac(cipher), bytes: TAG_BYTES });
    }
    calls
}

/// What stands for a primitive that a device has no figure of, the nearest first: the same with its
/// key set up in each call, then encryption, which works on each byte as well. They are meant to
/// take longer rather than less, which holds for MACs and set-ups and is not known of decryption.
pub(super) fn stands_in(primitive: Primitive) -> impl Iterator<Item = Primitive> {
    let others = match primitive {
        Primitive::Seal(cipher) => vec![Primitive::Seal(cipher.with_set_up())],
        Primitive::Open(cipher) => vec![
            Primitive::Open(cipher.with_set_up()),
            Primitive::Seal(cipher),
            Primitive::Seal(cipher.with_set_up()),
        ],
        Primitive::Mac(cipher) => vec![
            Primitive::Mac(cipher.with_set_up()),
            Primitive::Seal(cipher),
            Primitive::Seal(cipher.with_set_up()),
        ],
        _ => Vec::new(),
    };
    std::iter::once(primitive).chain(others)
}

/// How a stack protects this.
fn protection(dds: &Dds, message: DdsMessage) -> DdsProtection {
    match message {
        DdsMessage::Payload => dds.data_protection,
        DdsMessage::Submessage => dds.metadata_protection,
        DdsMessage::RtpsMessage => dds.rtps_protection,
        _ => DdsProtection::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{DdsAead, DdsMiddleware};
    use crate::operation::Role;

    fn stack(crypto: DdsCrypto, metadata: DdsProtection) -> Stack {
        Stack::Dds(Dds {
            middleware: DdsMiddleware::CycloneDds,
            crypto,
            aead: DdsAead::Aes256Gcm,
            data_protection: DdsProtection::Encrypt,
            metadata_protection: metadata,
            rtps_protection: DdsProtection::None,
            discovery_protection: DdsProtection::None,
        })
    }

    fn names(direction: Direction, message: DdsMessage, stack: &Stack) -> Vec<String> {
        let calls = calls(Operation::Dds(Role::Client, direction, message), stack, 100);
        calls.iter().map(|call| format!("{} {}", call.primitive, call.bytes)).collect()
    }

    #[test]
    fn calls_of_each_kind_of_protection() {
        use DdsProtection::{Encrypt, None, Sign, SignWithOriginAuthentication as Origin};
        use Direction::{Receive, Send};
        for (direction, crypto, kind, expected) in [
            (Send, DdsCrypto::Builtin, Encrypt, vec!["aead.seal.AES-256-GCM 100"]),
            (Receive, DdsCrypto::Warifu, Encrypt, vec!["aead.open.AES-256-GCM.keyed 100"]),
            (Receive, DdsCrypto::Builtin, Sign, vec!["aead.mac.AES-256-GCM 100"]),
            (
                Send,
                DdsCrypto::Warifu,
                Origin,
                vec!["aead.mac.AES-256-GCM.keyed 100", "aead.mac.AES-256-GCM.keyed 16"],
            ),
            (Send, DdsCrypto::Warifu, None, vec![]),
            (Send, DdsCrypto::None, Encrypt, vec![]),
        ] {
            assert_eq!(names(direction, DdsMessage::Submessage, &stack(crypto, kind)), expected);
        }
        let plain = stack(DdsCrypto::Warifu, None);
        assert_eq!(names(Send, DdsMessage::Payload, &plain), ["aead.seal.AES-256-GCM.keyed 100"]);
        assert!(names(Send, DdsMessage::Sample, &plain).is_empty());
    }

    #[test]
    fn what_stands_in_for_a_missing_figure() {
        let keyed = Cipher::Dds(DdsAead::Aegis256, KeySetUp::Once);
        let names: Vec<String> =
            stands_in(Primitive::Mac(keyed)).map(|primitive| primitive.to_string()).collect();
        assert_eq!(
            names,
            [
                "aead.mac.AEGIS-256.keyed",
                "aead.mac.AEGIS-256",
                "aead.seal.AEGIS-256.keyed",
                "aead.seal.AEGIS-256"
            ]
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths on the wire: RTPS 2.2, and what DDS Security 1.1 puts around it (sections 7.3.6 and
//! 9.5.3.3), for one receiver.

use warifu_model::{Dds, DdsProtection};

/// Protocol, version, vendor, GUID prefix (RTPS 2.2, section 9.4.4).
pub(super) const RTPS_HEADER: u32 = 20;
/// Id, flags, length (RTPS 2.2, section 9.4.5.1).
const SUBMESSAGE_HEADER: u32 = 4;
/// INFO_TS with its time.
pub(super) const INFO_TS: u32 = SUBMESSAGE_HEADER + 8;
/// INFO_SRC, which takes the RTPS header's place in a protected message (section 8.5.1.9.9).
const INFO_SRC: u32 = SUBMESSAGE_HEADER + 20;
/// HEARTBEAT: reader, writer, first and last number, count.
pub(super) const HEARTBEAT: u32 = SUBMESSAGE_HEADER + 28;
/// HEARTBEAT_FRAG: reader, writer, number, last fragment, count.
pub(super) const HEARTBEAT_FRAG: u32 = SUBMESSAGE_HEADER + 24;
/// DATA before its payload: flags, offset, reader, writer, number; no inline QoS.
const DATA_HEADER: u32 = SUBMESSAGE_HEADER + 20;
/// DATA_FRAG: first fragment, how many, their size and the sample's, as well.
const DATA_FRAG_HEADER: u32 = DATA_HEADER + 12;

/// Encapsulation (RTPS 2.2, section 10) and a string's length.
pub(super) const CDR: u32 = 4 + 4;
/// Transformation kind and key id, which a nonce follows.
const IDENTIFIER: u32 = 8;
/// Of encrypted content.
const LENGTH: u32 = 4;
/// A tag and the number of receivers' tags.
const FOOTER: u32 = 16 + 4;
/// A receiver's tag with its key's id.
const RECEIVER_TAG: u32 = 4 + 16;

/// A sample's payload as it is serialised, its end padded: a string with its zero.
pub(super) const fn payload(sample: u32) -> u32 {
    (CDR + sample).next_multiple_of(4)
}

/// A payload, or a part of one, as `data_protection_kind` has it.
pub(super) fn protected_payload(dds: &Dds, plain: u32) -> u32 {
    match dds.data_protection {
        DdsProtection::None => plain,
        kind => header(dds) + content(kind, plain) + FOOTER,
    }
}

/// DATA with a payload.
pub(super) const fn data(payload: u32) -> u32 {
    DATA_HEADER + payload
}

/// DATA_FRAG with a part of a payload.
pub(super) const fn data_frag(payload: u32) -> u32 {
    DATA_FRAG_HEADER + payload
}

/// A submessage as `metadata_protection_kind` has it.
pub(super) fn protected_submessage(dds: &Dds, plain: u32) -> u32 {
    around(dds, dds.metadata_protection, plain, 0)
}

/// Submessages, and the RTPS header before them, as `rtps_protection_kind` has them.
pub(super) fn message(dds: &Dds, submessages: u32) -> u32 {
    RTPS_HEADER + around(dds, dds.rtps_protection, submessages, INFO_SRC)
}

/// SEC_PREFIX, SEC_BODY or what is only signed, SEC_POSTFIX; `more` is protected as well.
fn around(dds: &Dds, kind: DdsProtection, plain: u32, more: u32) -> u32 {
    if kind == DdsProtection::None {
        return plain;
    }
    let body = match kind.encrypts() {
        true => SUBMESSAGE_HEADER + content(kind, plain + more),
        false => plain + more,
    };
    let receivers = if kind.authenticates_origin() { RECEIVER_TAG } else { 0 };
    SUBMESSAGE_HEADER + header(dds) + body + SUBMESSAGE_HEADER + FOOTER + receivers
}

/// The crypto header: other AEADs than AES-GCM have their own nonce, padded
/// (docs/reference/dds.md).
const fn header(dds: &Dds) -> u32 {
    IDENTIFIER + dds.aead.nonce_bytes().next_multiple_of(4)
}

/// Encrypted content has its length before it.
fn content(kind: DdsProtection, plain: u32) -> u32 {
    if kind.encrypts() { LENGTH + plain } else { plain }
}

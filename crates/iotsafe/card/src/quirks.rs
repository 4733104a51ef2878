// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where cards differ: named choices, and a profile of them for each public client.
//!
//! The clients are those of wolfSSL, of Orange (IoT-SAFE-APDU-library) and of Thales
//! (iot-safe-middleware). Each profile is a card that its client can talk to.

use crate::apdu::SHORT_ANSWER_MAX_BYTES;

/// How a computed signature is headed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureHeader {
    /// `33 40`.
    Ber,
    /// `33 00 40`; in commands both are taken.
    Length16,
}

/// How ids of two bytes are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdOrder {
    /// As they are stored.
    AsStored,
    /// As they are stored, else with the two bytes swapped.
    Either,
}

/// Which digests a signature session takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestLength {
    /// Of the hash that the session declared.
    AsDeclared,
    /// Of any hash: a client declares SHA-256 and sends what its handshake uses.
    AnyHash,
}

/// What an Le gets that differs from the length of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherLe {
    /// What is there; 61xx if more is.
    More61,
    /// 6Cxx, of commands that only read; `Le = 00` fits every answer.
    Wrong6C,
}

/// What a command without Le gets whose answer has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLe {
    /// 61xx, and the data by GET RESPONSE.
    More61,
    /// The data, as through a modem that fetches them by itself.
    Deliver,
}

/// How GET DATA shows the applet's proprietary id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppletId {
    /// With its length.
    Plain,
    /// With a length that is one too high.
    Overstated,
    /// Not at all.
    Absent,
}

/// Where templates of keys have the hash algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashPlace {
    /// Before the signature algorithms.
    BeforeSignature,
    /// Behind them.
    BehindSignature,
}

/// How the application's template shows the hash algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashWidth {
    /// In two bytes, as everywhere else.
    Two,
    /// In one.
    One,
}

/// How templates of files show size and usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTemplate {
    /// The size with its high byte first, then the usage.
    SizeAndUsage,
    /// The size with its low byte first, no usage.
    LittleEndianSize,
}

/// What SELECT does on a logical channel that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedChannel {
    /// 6881 (ISO 7816-4 section 5.4.2).
    Refuse,
    /// Opens it, as the Java Card runtime does.
    Open,
}

/// What opening a session does whose number is open already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopen {
    /// 6985.
    Refuse,
    /// Starts it anew.
    Restart,
}

/// What a byte 00 between the data of a command and its Le does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurplusByte {
    /// 6700.
    Refuse,
    /// Nothing.
    Ignore,
}

/// How much one short answer holds at most, and one READ FILE gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerMax {
    /// 256 bytes.
    Bytes256,
    /// 255 bytes; what is longer comes in more parts.
    Bytes255,
}

impl AnswerMax {
    /// The same as a number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            AnswerMax::Bytes256 => SHORT_ANSWER_MAX_BYTES,
            AnswerMax::Bytes255 => SHORT_ANSWER_MAX_BYTES - 1,
        }
    }
}

/// One choice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// How a computed signature is headed.
    pub signature_header: SignatureHeader,
    /// How ids of two bytes are looked up.
    pub id_order: IdOrder,
    /// Which digests a signature session takes.
    pub digest_length: DigestLength,
    /// What an Le gets that differs from the answer's length.
    pub other_le: OtherLe,
    /// What a command without Le gets whose answer has data.
    pub no_le: NoLe,
    /// How GET DATA shows the applet's id.
    pub applet_id: AppletId,
    /// Where templates of keys have the hash algorithms.
    pub hash_place: HashPlace,
    /// How the application's template shows the hash algorithms.
    pub hash_width: HashWidth,
    /// How templates of files show size and usage.
    pub file_template: FileTemplate,
    /// What SELECT does on a closed channel.
    pub closed_channel: ClosedChannel,
    /// What opening an open session does.
    pub reopen: Reopen,
    /// What a surplus 00 behind data does.
    pub surplus_byte: SurplusByte,
    /// How much an answer holds.
    pub answer_max: AnswerMax,
}

impl Quirks {
    /// No quirk: GSMA IoT.05 and ISO 7816-4 to the letter.
    pub const STRICT: Quirks = Quirks {
        signature_header: SignatureHeader::Ber,
        id_order: IdOrder::AsStored,
        digest_length: DigestLength::AsDeclared,
        other_le: OtherLe::More61,
        no_le: NoLe::More61,
        applet_id: AppletId::Plain,
        hash_place: HashPlace::BeforeSignature,
        hash_width: HashWidth::Two,
        file_template: FileTemplate::SizeAndUsage,
        closed_channel: ClosedChannel::Refuse,
        reopen: Reopen::Refuse,
        surplus_byte: SurplusByte::Refuse,
        answer_max: AnswerMax::Bytes256,
    };

    /// For wolfSSL's client: it selects on channel 1 without opening it, sends no Le, wants
    /// `33 00 40`, declares SHA-256 whatever it sends, and its ids of two bytes have the host's
    /// byte order. A client that was killed leaves its session open, so one may be started anew.
    pub const WOLFSSL: Quirks = Quirks {
        signature_header: SignatureHeader::Length16,
        id_order: IdOrder::Either,
        digest_length: DigestLength::AnyHash,
        no_le: NoLe::Deliver,
        closed_channel: ClosedChannel::Open,
        reopen: Reopen::Restart,
        ..Quirks::STRICT
    };

    /// For Orange's client: it reads the application's template by fixed positions (an applet id
    /// whose length is one too high, one byte of hash algorithms), wants a key's hash algorithms
    /// behind the signature algorithms, files without usage whose size has its low byte first,
    /// and sends a command again after 6Cxx. In a reader it sends a 00 behind the data of each
    /// command (`iot_safe_pcsc_sendAPDU` counts a byte too many), before Le if there is one.
    pub const ORANGE: Quirks = Quirks {
        other_le: OtherLe::Wrong6C,
        applet_id: AppletId::Overstated,
        hash_place: HashPlace::BehindSignature,
        hash_width: HashWidth::One,
        file_template: FileTemplate::LittleEndianSize,
        closed_channel: ClosedChannel::Open,
        surplus_byte: SurplusByte::Ignore,
        ..Quirks::STRICT
    };

    /// For Thales' client: it opens its signature session again and again without closing it, and
    /// asserts that an answer has at most 255 bytes. Its applet leaves out its id.
    pub const THALES: Quirks = Quirks {
        applet_id: AppletId::Absent,
        closed_channel: ClosedChannel::Open,
        reopen: Reopen::Restart,
        answer_max: AnswerMax::Bytes255,
        ..Quirks::STRICT
    };

    /// The profiles by name.
    pub const PROFILES: [(&'static str, Quirks); 4] = [
        ("strict", Quirks::STRICT),
        ("wolfssl", Quirks::WOLFSSL),
        ("orange", Quirks::ORANGE),
        ("thales", Quirks::THALES),
    ];

    /// The profile of a name.
    ///
    /// ```
    /// use warifu_card::Quirks;
    /// assert_eq!(Quirks::by_name("orange"), Some(Quirks::ORANGE));
    /// assert_eq!(Quirks::by_name("lemon"), None);
    /// ```
    #[must_use]
    pub fn by_name(name: &str) -> Option<Quirks> {
        Quirks::PROFILES.into_iter().find(|(known, _)| *known == name).map(|(_, quirks)| quirks)
    }

    /// The name of a profile; None for choices of one's own.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        Quirks::PROFILES.into_iter().find(|(_, quirks)| quirks == self).map(|(name, _)| name)
    }

    /// One byte for each choice, in the order of the fields, the last three in one: how the state
    /// file has them.
    #[must_use]
    pub(crate) fn to_bytes(self) -> [u8; 11] {
        [
            self.signature_header as u8,
            self.id_order as u8,
            self.digest_length as u8,
            self.other_le as u8,
            self.no_le as u8,
            self.applet_id as u8,
            self.hash_place as u8,
            self.hash_width as u8,
            self.file_template as u8,
            self.closed_channel as u8,
            self.reopen as u8 | (self.surplus_byte as u8) << 1 | (self.answer_max as u8) << 2,
        ]
    }

    /// The choices of bytes; None where one is no choice.
    #[must_use]
    pub(crate) fn from_bytes(bytes: &[u8; 11]) -> Option<Quirks> {
        fn one<T: Copy, const N: usize>(byte: u8, choices: [T; N]) -> Option<T> {
            choices.get(usize::from(byte)).copied()
        }
        let [header, order, digest, other, none, applet, place, width, file, closed, last] = *bytes;
        if last > 0b111 {
            return None;
        }
        let found = Quirks {
            signature_header: one(header, [SignatureHeader::Ber, SignatureHeader::Length16])?,
            id_order: one(order, [IdOrder::AsStored, IdOrder::Either])?,
            digest_length: one(digest, [DigestLength::AsDeclared, DigestLength::AnyHash])?,
            other_le: one(other, [OtherLe::More61, OtherLe::Wrong6C])?,
            no_le: one(none, [NoLe::More61, NoLe::Deliver])?,
            applet_id: one(applet, [AppletId::Plain, AppletId::Overstated, AppletId::Absent])?,
            hash_place: one(place, [HashPlace::BeforeSignature, HashPlace::BehindSignature])?,
            hash_width: one(width, [HashWidth::Two, HashWidth::One])?,
            file_template: one(file, [FileTemplate::SizeAndUsage, FileTemplate::LittleEndianSize])?,
            closed_channel: one(closed, [ClosedChannel::Refuse, ClosedChannel::Open])?,
            reopen: one(last & 1, [Reopen::Refuse, Reopen::Restart])?,
            surplus_byte: one(last >> 1 & 1, [SurplusByte::Refuse, SurplusByte::Ignore])?,
            answer_max: one(last >> 2, [AnswerMax::Bytes256, AnswerMax::Bytes255])?,
        };
        // A profile of a state file from before the last two choices.
        let older = |profile: &Quirks| {
            let Quirks { surplus_byte, answer_max, .. } = Quirks::STRICT;
            Quirks { surplus_byte, answer_max, ..*profile } == found
        };
        let profiles = Quirks::PROFILES.into_iter().map(|(_, profile)| profile);
        Some(profiles.into_iter().find(older).unwrap_or(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_round_trip() {
        for (name, quirks) in Quirks::PROFILES {
            assert_eq!(quirks.name(), Some(name));
            assert_eq!(Quirks::from_bytes(&quirks.to_bytes()), Some(quirks));
        }
        let own = Quirks { no_le: NoLe::Deliver, ..Quirks::STRICT };
        assert_eq!(own.name(), None);
        assert_eq!(Quirks::from_bytes(&[3; 11]), None);
        let mut older = Quirks::THALES.to_bytes();
        older[10] &= 1;
        assert_eq!(Quirks::from_bytes(&older), Some(Quirks::THALES));
        older[10] = 8;
        assert_eq!(Quirks::from_bytes(&older), None);
    }
}

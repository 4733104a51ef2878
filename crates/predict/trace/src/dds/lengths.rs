// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which datagrams a sample makes, and how long they are: those of Cyclone DDS 0.10.2, as
//! `tests/system/dds/test_lengths.py` and `test_fragments.py` capture them.

use warifu_model::Dds;

use super::wire;

/// A payload goes in fragments of this size where it does not go in one piece
/// (General/FragmentSize).
const FRAGMENT: u32 = 1_344;
/// What a DATA or DATA_FRAG takes of a payload, whatever protection adds: as many fragments as fit
/// a message.
const PART: u32 = 10 * FRAGMENT;
/// No RTPS message is longer (General/MaxMessageSize); what protects the whole of it comes on top.
const MESSAGE: u32 = 14_720;

/// A sample on its way, B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The payload, serialised.
    pub payload: u32,
    /// In the order in which they leave.
    pub datagrams: Vec<Datagram>,
}

/// A datagram of a sample, B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// DATA or DATA_FRAG and heartbeats; INFO_TS is before those of the first datagram.
    pub submessages: Vec<Submessage>,
    /// RTPS header and submessages before `rtps_protection_kind`.
    pub plain: u32,
    /// The whole.
    pub message: u32,
}

/// A submessage that `metadata_protection_kind` applies to, B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submessage {
    /// What it carries of the payload, if it is DATA or DATA_FRAG; a heartbeat otherwise.
    pub part: Option<Part>,
    /// Before metadata protection.
    pub plain: u32,
    /// After it.
    pub protected: u32,
}

/// What one DATA or DATA_FRAG carries of a payload, B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Counts from 0.
    pub index: u32,
    /// Before data protection, which each part has for itself.
    pub bytes: u32,
}

impl Lengths {
    /// Of a sample of so many bytes, its zero included.
    pub fn of(dds: &Dds, sample: u32) -> Lengths {
        let payload = wire::payload(sample);
        let parts = payload.div_ceil(PART);
        let mut datagrams = vec![Datagram::new(wire::INFO_TS)];
        for index in 0..parts {
            let part = Part { index, bytes: PART.min(payload - index * PART) };
            let beat = if index + 1 == parts { wire::HEARTBEAT } else { wire::HEARTBEAT_FRAG };
            let content = wire::protected_payload(dds, part.bytes);
            let data = if parts == 1 { wire::data(content) } else { wire::data_frag(content) };
            for (part, plain) in [(Some(part), data), (None, beat)] {
                let protected = wire::protected_submessage(dds, plain);
                let submessage = Submessage { part, plain, protected };
                // What does not fit any more begins the next: nn_xpack_addmsg.
                match datagrams.last_mut() {
                    Some(last) if last.plain + protected <= MESSAGE => last.add(submessage),
                    _ => {
                        let mut next = Datagram::new(0);
                        next.add(submessage);
                        datagrams.push(next);
                    }
                }
            }
        }
        for datagram in &mut datagrams {
            datagram.message = wire::message(dds, datagram.plain - wire::RTPS_HEADER);
        }
        Lengths { payload, datagrams }
    }

    /// How many DATA or DATA_FRAG there are.
    pub fn parts(&self) -> u32 {
        self.datagrams.iter().flat_map(Datagram::parts).count() as u32
    }
}

impl Datagram {
    /// One with so many bytes of other submessages.
    fn new(others: u32) -> Datagram {
        Datagram { submessages: Vec::new(), plain: wire::RTPS_HEADER + others, message: 0 }
    }

    fn add(&mut self, submessage: Submessage) {
        self.plain += submessage.protected;
        self.submessages.push(submessage);
    }

    /// What it carries of the payload.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.submessages.iter().filter_map(|submessage| submessage.part)
    }

    /// How much of the string is in it, its zero included.
    pub fn content(&self, sample: u32) -> u32 {
        let of = |Part { index, bytes }: Part| {
            let begin = index * PART;
            let string = |at: u32| at.clamp(wire::CDR, wire::CDR + sample);
            string(begin + bytes) - string(begin)
        };
        self.parts().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use warifu_model::{DdsAead, DdsCrypto, DdsMiddleware, DdsProtection};

    use super::*;
    use DdsProtection::{Encrypt, EncryptWithOriginAuthentication as Origin, None, Sign};

    fn dds(kinds: [DdsProtection; 3]) -> Dds {
        let [data_protection, metadata_protection, rtps_protection] = kinds;
        Dds {
            crypto: DdsCrypto::Builtin,
            aead: DdsAead::Aes256Gcm,
            data_protection,
            metadata_protection,
            rtps_protection,
            discovery_protection: Encrypt,
            middleware: DdsMiddleware::CycloneDds,
        }
    }

    fn messages(kinds: [DdsProtection; 3], sample: u32) -> Vec<u32> {
        let lengths = Lengths::of(&dds(kinds), sample);
        lengths.datagrams.iter().map(|datagram| datagram.message).collect()
    }

    /// As tcpdump saw them between two processes of Cyclone DDS 0.10.2, samples of 61 B; the test
    /// `tests/system/dds/test_lengths.py` captures them anew.
    #[test]
    fn lengths_of_cyclone() {
        for (kinds, expected) in [
            ([None, None, None], 160),
            ([Encrypt, None, None], 204),
            ([None, Encrypt, None], 272),
            ([None, Origin, None], 312),
            ([None, None, Encrypt], 240),
            ([None, None, Origin], 260),
            ([Encrypt, Encrypt, Sign], 388),
        ] {
            assert_eq!(messages(kinds, 61), [expected], "{kinds:?}");
        }
    }

    /// The same of 50 KiB; `tests/system/dds/test_fragments.py` captures them anew.
    #[test]
    fn datagrams_of_a_large_sample() {
        for (kinds, [first, between, last]) in [
            ([None, None, None], [13_536, 13_524, 10_976]),
            ([Encrypt, None, None], [13_580, 13_568, 11_020]),
            ([Encrypt, Encrypt, None], [13_692, 13_680, 11_132]),
            ([Encrypt, Encrypt, Sign], [13_764, 13_752, 11_204]),
            ([None, None, Encrypt], [13_616, 13_604, 11_056]),
            ([Encrypt, Origin, Origin], [13_832, 13_820, 11_272]),
        ] {
            assert_eq!(messages(kinds, 51_200), [first, between, between, last], "{kinds:?}");
        }
    }

    /// The longest that goes in one piece, and where the second part and its heartbeat find no
    /// room in the first datagram any more: captured.
    #[test]
    fn edges_of_a_datagram() {
        let plain = [None, None, None];
        for (kinds, sample, expected) in [
            (plain, 13_432, &[13_528][..]),
            (plain, 13_433, &[13_608]),
            (plain, 14_548, &[14_720]),
            (plain, 14_549, &[14_692, 52]),
            (plain, 14_580, &[14_720, 52]),
            (plain, 14_581, &[13_536, 1_240]),
            ([None, None, Encrypt], 14_548, &[14_800]),
            ([None, None, Encrypt], 14_552, &[14_772, 132]),
            ([None, None, Encrypt], 14_584, &[13_616, 1_320]),
            ([Encrypt, Encrypt, None], 14_236, &[14_720]),
            ([Encrypt, Encrypt, None], 14_240, &[14_636, 108]),
            ([Encrypt, Encrypt, None], 14_328, &[13_692, 1_140]),
            ([Encrypt, Encrypt, Sign], 14_324, &[14_792, 180]),
        ] {
            assert_eq!(messages(kinds, sample), expected, "{kinds:?} {sample}");
        }
    }

    #[test]
    fn each_byte_of_the_string_in_one_datagram() {
        for sample in [16, 13_432, 13_433, 14_549, 14_581, 153_600, 1 << 20, 8 << 20] {
            let lengths = Lengths::of(&dds([Encrypt, Encrypt, Sign]), sample);
            let content = lengths.datagrams.iter().map(|datagram| datagram.content(sample));
            assert_eq!(content.sum::<u32>(), sample);
            let bytes = lengths.datagrams.iter().flat_map(Datagram::parts).map(|part| part.bytes);
            assert_eq!(bytes.sum::<u32>(), lengths.payload);
            assert_eq!(lengths.parts(), lengths.payload.div_ceil(13_440));
        }
    }
}

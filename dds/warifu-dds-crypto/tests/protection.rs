// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one side protects the other reads, and nothing else.

mod common;

use std::collections::HashSet;

use common::{
    ENCRYPT, ENCRYPT_ORIGIN, Governance, NONE, SIGN, SIGN_ORIGIN, Side, message, pair, pair_with,
    received, submessage, vec,
};
use proptest::prelude::*;
use warifu_dds_crypto::algorithm::{Aead, Mode};
use warifu_dds_crypto::entity::Category;
use warifu_dds_crypto::error::Error;
use warifu_dds_crypto::keys::MasterKey;
use warifu_dds_crypto::settings::Settings;
use warifu_dds_crypto::wire;

const PROTECTED: [common::Governance; 4] = [
    Governance::of_all(SIGN),
    Governance::of_all(ENCRYPT),
    Governance::of_all(SIGN_ORIGIN),
    Governance::of_all(ENCRYPT_ORIGIN),
];

fn each_aead_and_governance(check: impl Fn(&Side, &Side, Governance)) {
    for aead in Aead::ALL {
        for governance in PROTECTED {
            let (alice, bob) = pair(aead, governance);
            check(&alice, &bob, governance);
        }
    }
}

#[test]
fn samples_of_any_length_are_read() {
    each_aead_and_governance(|alice, bob, governance| {
        for length in [1, 15, 16, 17, 64, 1000, 70_000] {
            let sample: Vec<u8> = (0..length).map(|index| (index % 253) as u8).collect();
            let sent = alice.factory.encode_payload(alice.writer, &sample, vec).expect("sent");
            let is_plain = sent.windows(sample.len()).any(|window| window == sample);
            let encrypts = governance.data == Some(Mode::Encrypt) && length >= 15;
            assert!(!encrypts || !is_plain, "the sample is readable on its way");
            let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
            assert_eq!(read.expect("read"), sample);
        }
    });
}

#[test]
fn submessages_of_writers_and_readers_are_read() {
    each_aead_and_governance(|alice, bob, _| {
        for octets in [8, 64, 60_000] {
            let plain = submessage(octets);
            let readers = [alice.peer_reader];
            let sent = alice.factory.encode_writer_submessage(alice.writer, &readers, &plain, vec);
            let sent = sent.expect("sent");
            let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent);
            let relation = relation.expect("a relation");
            assert_eq!(relation.category, Category::Writer);
            assert_eq!((relation.local, relation.remote), (bob.reader, bob.peer_writer));
            let read =
                bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, &sent, vec);
            assert_eq!(read.expect("read"), plain);

            let writers = [alice.peer_writer];
            let sent = alice.factory.encode_reader_submessage(alice.reader, &writers, &plain, vec);
            let sent = sent.expect("sent");
            let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent);
            let relation = relation.expect("a relation");
            assert_eq!(relation.category, Category::Reader);
            assert_eq!((relation.local, relation.remote), (bob.writer, bob.peer_reader));
            let read =
                bob.factory.decode_reader_submessage(bob.writer, bob.peer_reader, &sent, vec);
            assert_eq!(read.expect("read"), plain);
        }
    });
}

#[test]
fn rtps_messages_are_read_with_their_source() {
    each_aead_and_governance(|alice, bob, _| {
        let plain = message(1200);
        let sent = alice.factory.encode_message(alice.participant, &[alice.peer], &plain, vec);
        let sent = sent.expect("sent");
        assert_eq!(sent[..20], plain[..20]);
        let read = bob.factory.decode_message(bob.participant, bob.peer, &sent, vec);
        let read = read.expect("read");
        assert_eq!(read[..20], plain[..20]);
        assert_eq!(read[20..24], [0x0c, 1, 20, 0], "INFO_SRC comes first");
        assert_eq!(read[28..44], plain[4..20], "version, vendor and GUID prefix");
        assert_eq!(read[44..], plain[20..]);
    });
}

#[test]
fn buffers_are_allocated_once_at_the_size_that_is_used() {
    each_aead_and_governance(|alice, _, _| {
        let exact = |capacity: usize| Ok(Vec::with_capacity(capacity));
        let factory = &alice.factory;
        let plain = submessage(64);
        let all = [
            factory.encode_payload(alice.writer, &plain, exact),
            factory.encode_writer_submessage(alice.writer, &[alice.peer_reader], &plain, exact),
            factory.encode_reader_submessage(alice.reader, &[alice.peer_writer], &plain, exact),
            factory.encode_message(alice.participant, &[alice.peer], &message(64), exact),
        ];
        for sent in all {
            let sent: Vec<u8> = sent.expect("sent");
            assert_eq!(sent.len(), sent.capacity());
            assert_eq!(sent.len() % 4, 0, "a submessage begins at a multiple of 4");
        }
    });
}

#[test]
fn keys_travel_encrypted_whatever_is_protected_otherwise() {
    for aead in Aead::ALL {
        for governance in [Governance::of_all(NONE), Governance::of_all(SIGN_ORIGIN)] {
            let (alice, bob) = pair(aead, governance);
            let plain = submessage(200);
            let readers = [alice.peer_volatile_reader];
            let sent = alice.factory.encode_writer_submessage(
                alice.volatile_writer,
                &readers,
                &plain,
                vec,
            );
            let sent = sent.expect("sent");
            let header = wire::submessage_header(&sent).expect("a header");
            assert_eq!(header.kind.to_wire(), [0, 0, 0, 4], "AES-256-GCM for any AEAD");
            assert_eq!(header.key_id, 0);
            let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent);
            let relation = relation.expect("a relation");
            assert_eq!(relation.remote, bob.peer_volatile_writer);
            let (local, remote) = (relation.local, relation.remote);
            let read = bob.factory.decode_writer_submessage(local, remote, &sent, vec);
            assert_eq!(read.expect("read"), plain);
        }
    }
}

#[test]
fn standard_key_lengths_mix() {
    let settings = |aead| Settings { aead, ..Settings::default() };
    let governance = Governance::of_all(ENCRYPT);
    let alice = Side::new(settings(Aead::Aes128Gcm), governance, 1);
    let bob = Side::new(settings(Aead::Aes256Gcm), governance, 2);
    bob.learn(&alice).expect("keys of 128 bit");
    alice.learn(&bob).expect("keys of 256 bit");
    let sent = alice.factory.encode_payload(alice.writer, b"sample", vec).expect("sent");
    let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
    assert_eq!(read.expect("read"), b"sample");
}

#[test]
fn unlike_ciphers_refuse_each_others_keys_and_name_both() {
    for ours in Aead::ALL {
        for theirs in Aead::ALL.into_iter().filter(|theirs| theirs.class_id() != ours.class_id()) {
            let settings = |aead| Settings { aead, ..Settings::default() };
            // Even where nothing is protected: what is protected may differ by topic.
            for governance in [Governance::of_all(ENCRYPT), Governance::of_all(NONE)] {
                let alice = Side::new(settings(ours), governance, 1);
                let bob = Side::new(settings(theirs), governance, 2);
                let refused = alice.learn(&bob).expect_err("another class");
                let text = refused.to_string();
                assert!(
                    text.contains(ours.class_id()) && text.contains(theirs.class_id()),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn a_token_of_a_cipher_under_another_ones_class_is_refused() {
    let governance = Governance::of_all(ENCRYPT);
    let settings = |aead| Settings { aead, ..Settings::default() };
    let alice = Side::new(settings(Aead::Aegis128L), governance, 1);
    let bob = Side::new(settings(Aead::AsconAead128), governance, 2);
    let tokens = bob.factory.participant_tokens(bob.participant, bob.peer).expect("tokens");
    let mut lying = received(&tokens);
    lying[0].class_id = Aead::Aegis128L.class_id();
    let set = alice.factory.set_participant_tokens(alice.participant, alice.peer, &lying);
    assert!(matches!(set, Err(Error::Token(_))), "{set:?}");
}

#[test]
fn a_protected_entity_refuses_a_peer_without_keys() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let none = Side::new(Settings::default(), Governance::of_all(NONE), 3);
    let tokens = none.factory.participant_tokens(none.participant, none.peer).expect("tokens");
    let set = bob.factory.set_participant_tokens(bob.participant, bob.peer, &received(&tokens));
    assert!(matches!(set, Err(Error::Token(_))), "{set:?}");
    assert!(alice.factory.set_writer_tokens(alice.reader, alice.peer_writer, &[]).is_err());
    assert!(alice.factory.set_reader_tokens(alice.writer, alice.peer_reader, &[]).is_err());
}

#[test]
fn a_reader_without_a_key_says_so_where_samples_are_protected() {
    let tokens = |governance| {
        let side = Side::new(Settings::default(), governance, 1);
        side.factory.reader_tokens(side.reader, side.peer_writer).expect("tokens")
    };
    let samples = Governance { data: Some(Mode::Encrypt), metadata: NONE, rtps: NONE };
    let said = tokens(samples);
    assert_eq!(said.len(), 1);
    let key = MasterKey::from_token(&said[0].key_material).expect("a token");
    assert!(key.is_none(), "it is one of no key");
    assert!(tokens(Governance::of_all(NONE)).is_empty());
    // With a writer of ours it changes nothing.
    let (alice, bob) = pair(Aead::Aes256Gcm, samples);
    let sent = alice.factory.encode_payload(alice.writer, b"sample", vec).expect("encoded");
    let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
    assert_eq!(read.expect("decoded"), b"sample");
}

#[test]
fn a_signed_message_is_refused_where_encrypted_ones_are_expected_and_the_reverse() {
    let signs = Governance::of_all(SIGN);
    let encrypts = Governance::of_all(ENCRYPT);
    for (ours, theirs) in [(signs, encrypts), (encrypts, signs)] {
        let alice = Side::new(Settings::default(), theirs, 1);
        let bob = Side::new(Settings::default(), ours, 2);
        bob.learn(&alice).expect("keys");
        let sent = alice.factory.encode_payload(alice.writer, b"sample", vec).expect("sent");
        let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
        assert!(matches!(read, Err(Error::Protection(_))), "{read:?}");
        let plain = message(64);
        let sent = alice.factory.encode_message(alice.participant, &[alice.peer], &plain, vec);
        let sent = sent.expect("sent");
        let read = bob.factory.decode_message(bob.participant, bob.peer, &sent, vec);
        assert!(matches!(read, Err(Error::Protection(_))), "{read:?}");
    }
}

#[test]
fn a_message_for_others_alone_is_refused_where_the_origin_is_authenticated() {
    for governance in [Governance::of_all(SIGN_ORIGIN), Governance::of_all(ENCRYPT_ORIGIN)] {
        let (alice, bob) = pair(Aead::Aes256Gcm, governance);
        let plain = submessage(64);
        let sent = alice.factory.encode_writer_submessage(alice.writer, &[], &plain, vec);
        let sent = sent.expect("sent");
        let read = bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, &sent, vec);
        assert!(matches!(read, Err(Error::NotForUs(_))), "{read:?}");
    }
}

#[test]
fn one_reader_cannot_forge_the_tag_of_another() {
    // Carol has Alice's sender key, as Bob has, and makes a message with it: Bob's key she lacks.
    let governance = Governance::of_all(ENCRYPT_ORIGIN);
    let (alice, bob) = pair(Aead::Aes256Gcm, governance);
    let peer =
        alice.factory.register_remote_participant(alice.participant, 8, &common::shared_secret());
    let carol = alice.factory.register_remote_reader(alice.writer, peer.expect("Carol"));
    let carol = carol.expect("a reader of Carol's");
    let plain = submessage(64);
    let sent = alice.factory.encode_writer_submessage(alice.writer, &[carol], &plain, vec);
    let mut forged = sent.expect("sent for Carol");
    let for_both = [alice.peer_reader, carol];
    let sent = alice.factory.encode_writer_submessage(alice.writer, &for_both, &plain, vec);
    let sent = sent.expect("sent for both");
    let tags = wire::submessage(&sent).expect("a submessage").receivers;
    assert_eq!(tags.iter().count(), 2);
    let read = bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, &sent, vec);
    assert_eq!(read.expect("Bob's tag is the first of two"), plain);
    // The id of Bob's key, over Carol's tag.
    let (bobs_id, _) = tags.iter().next().expect("Bob's");
    let at = forged.len() - wire::RECEIVER_TAG_BYTES;
    forged[at..at + 4].copy_from_slice(&bobs_id.to_be_bytes());
    let read = bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, &forged, vec);
    assert_eq!(read, Err(Error::Forged("receiver-specific tag")));
}

#[test]
fn repeated_submessages_and_messages_are_refused() {
    each_aead_and_governance(|alice, bob, _| {
        let plain = submessage(64);
        let readers = [alice.peer_reader];
        let mut all = Vec::new();
        for _ in 0..600 {
            let sent = alice.factory.encode_writer_submessage(alice.writer, &readers, &plain, vec);
            all.push(sent.expect("sent"));
        }
        let decode =
            |sent| bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, sent, vec);
        // In any order: UDP has none.
        for sent in all.iter().rev() {
            assert_eq!(decode(sent).expect("read"), plain);
        }
        for sent in &all[..512] {
            assert_eq!(decode(sent), Err(Error::Replayed));
        }
        let sent =
            alice.factory.encode_message(alice.participant, &[alice.peer], &message(64), vec);
        let sent = sent.expect("sent");
        let decode = || bob.factory.decode_message(bob.participant, bob.peer, &sent, vec);
        decode().expect("read");
        assert_eq!(decode(), Err(Error::Replayed));
    });
}

#[test]
fn no_nonce_returns_across_sessions_and_restarts() {
    for aead in Aead::ALL {
        let settings = Settings { aead, max_blocks: 20 };
        let mut seen = HashSet::new();
        let mut sessions = HashSet::new();
        let mut keys = HashSet::new();
        for restart in 0..3 {
            let governance = Governance::of_all(ENCRYPT);
            let alice = Side::new(settings, governance, 10 + restart);
            let bob = Side::new(settings, governance, 20 + restart);
            bob.learn(&alice).expect("keys");
            let tokens = alice.factory.writer_tokens(alice.writer, alice.peer_reader);
            let tokens = tokens.expect("tokens");
            assert!(keys.insert(tokens[1].key_material.to_vec()), "a key lives one run");
            for _ in 0..100 {
                let sent = alice.factory.encode_payload(alice.writer, &[5; 64], vec);
                let sent = sent.expect("sent");
                let header = wire::payload(&sent).expect("a payload").header;
                assert!(seen.insert((restart, header.nonce.to_vec())), "a nonce returns");
                sessions.insert((restart, header.session_id()));
                let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
                assert_eq!(read.expect("read in any session"), [5; 64]);
            }
        }
        // 64 B are 4 blocks and one for the tag: four messages a session.
        assert_eq!(sessions.len(), 3 * 25, "{aead:?}");
    }
}

#[test]
fn threads_never_get_the_same_nonce() {
    let settings = Settings { max_blocks: 100, ..Settings::default() };
    let (alice, _) = pair_with(settings, Governance::of_all(ENCRYPT));
    let nonces = |_| {
        let sent = alice.factory.encode_payload(alice.writer, &[5; 64], vec).expect("sent");
        wire::payload(&sent).expect("a payload").header.nonce.to_vec()
    };
    let all: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..2000).map(nonces).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 4 * 2000);
}

#[test]
fn a_session_ends_before_its_limit_is_passed() {
    let settings = Settings { max_blocks: 100, ..Settings::default() };
    let (alice, _) = pair_with(settings, Governance::of_all(ENCRYPT));
    let mut blocks = std::collections::HashMap::new();
    for length in (1..400).map(|step| step * 7 % 600 + 1) {
        let sent = alice.factory.encode_payload(alice.writer, &vec![1; length], vec);
        let session = wire::payload(&sent.expect("sent")).expect("a payload").header.session_id();
        *blocks.entry(session).or_insert(0) += length.div_ceil(16) + 1;
    }
    assert!(blocks.len() > 10);
    assert!(blocks.values().all(|blocks| *blocks <= 100), "{blocks:?}");
}

#[test]
fn two_participants_of_one_process_each_read_the_same_peer() {
    for governance in PROTECTED {
        let settings = Settings::default();
        let alice = Side::new(settings, governance, 1);
        let bob = Side::new(settings, governance, 2);
        let (factory, shared) = (&bob.factory, common::shared_secret());
        // Bob's second participant: the authentication plugin knows Alice by one handle.
        let second = factory.register_local_participant(&settings, governance.rtps).expect("one");
        let known = factory.register_remote_participant(second, 7, &shared).expect("Alice");
        assert_eq!(known, bob.peer);
        // And to Alice it is another.
        let other = alice.factory.register_remote_participant(alice.participant, 9, &shared);
        let other = other.expect("Bob's second");
        let tokens = |of| alice.factory.participant_tokens(alice.participant, of).expect("tokens");
        let (first, later) = (tokens(alice.peer), tokens(other));
        factory.set_participant_tokens(bob.participant, bob.peer, &received(&first)).expect("set");
        factory.set_participant_tokens(second, bob.peer, &received(&later)).expect("set");
        let plain = message(64);
        let send = |to: &[_]| alice.factory.encode_message(alice.participant, to, &plain, vec);
        let sent = send(&[alice.peer, other]).expect("sent to both");
        for local in [bob.participant, second] {
            let read = factory.decode_message(local, bob.peer, &sent, vec).expect("read");
            assert_eq!(read[44..], plain[20..]);
        }
        factory.unregister_participant(second).expect("unregistered");
        let sent = send(&[alice.peer, other]).expect("sent to both");
        assert_eq!(
            factory.decode_message(second, bob.peer, &sent, vec),
            Err(Error::Handle(second))
        );
        factory
            .decode_message(bob.participant, bob.peer, &sent, vec)
            .expect("the first still reads");
    }
}

#[test]
fn two_readers_of_one_process_read_what_is_sent_to_either() {
    for governance in PROTECTED {
        let (alice, bob) = pair(Aead::Aes256Gcm, governance);
        let endpoint = warifu_dds_crypto::factory::Endpoint {
            aead: None,
            protection: governance.metadata,
            payload: governance.data,
            is_volatile: false,
        };
        let second = bob.factory.register_local_reader(bob.participant, endpoint).expect("one");
        let writer = bob.factory.register_remote_writer(second, bob.peer).expect("Alice's writer");
        let reader = alice.factory.register_remote_reader(alice.writer, alice.peer);
        let reader = reader.expect("Bob's second reader");
        let tokens = alice.factory.writer_tokens(alice.writer, reader).expect("tokens");
        bob.factory.set_writer_tokens(second, writer, &received(&tokens)).expect("set");
        let plain = submessage(64);
        for to in [&[alice.peer_reader][..], &[reader], &[alice.peer_reader, reader]] {
            let sent = alice.factory.encode_writer_submessage(alice.writer, to, &plain, vec);
            let sent = sent.expect("sent");
            let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent);
            let relation = relation.expect("one of the two");
            let (local, remote) = (relation.local, relation.remote);
            let read = bob.factory.decode_writer_submessage(local, remote, &sent, vec);
            assert_eq!(read.expect("read"), plain);
        }
    }
}

#[test]
fn handles_that_were_given_back_are_unknown() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let sent = alice.factory.encode_payload(alice.writer, b"sample", vec).expect("sent");
    bob.factory.unregister_writer(bob.peer_writer).expect("unregistered");
    let again = bob.factory.register_remote_writer(bob.reader, bob.peer).expect("a new one");
    assert_ne!(again, bob.peer_writer);
    let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
    assert_eq!(read, Err(Error::Handle(bob.peer_writer)));
    let read = bob.factory.decode_payload(bob.reader, again, &sent, vec);
    assert_eq!(read, Err(Error::UnknownKey), "it has no keys yet");
    assert!(bob.factory.unregister_reader(bob.writer).is_err(), "a writer is no reader");
}

#[test]
fn relations_end_with_their_endpoint() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let plain = submessage(64);
    let readers = [alice.peer_reader];
    let sent = alice.factory.encode_writer_submessage(alice.writer, &readers, &plain, vec);
    let sent = sent.expect("sent");
    bob.factory.preprocess(bob.participant, bob.peer, &sent).expect("a relation");
    bob.factory.unregister_writer(bob.peer_writer).expect("unregistered");
    let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent);
    assert_eq!(relation, Err(Error::UnknownKey));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_samples_are_refused(
        aead in prop::sample::select(&Aead::ALL),
        governance in prop::sample::select(&PROTECTED),
        seed in any::<prop::sample::Index>(),
        sample in prop::collection::vec(any::<u8>(), 1..200),
        bits in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let (alice, bob) = pair(aead, governance);
        let sent = alice.factory.encode_payload(alice.writer, &sample, vec).unwrap();
        let mut flipped = sent.clone();
        let bits: std::collections::BTreeSet<_> =
            bits.iter().map(|bit| bit.index(sent.len() * 8)).collect();
        for bit in bits {
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assume!(flipped != sent);
        let cut = &sent[..seed.index(sent.len())];
        for damaged in [&flipped[..], cut] {
            let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, damaged, vec);
            prop_assert!(read.is_err(), "{read:?}");
        }
        // And whatever came before spoils nothing.
        let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec);
        prop_assert_eq!(read.unwrap(), sample);
    }

    #[test]
    fn damaged_submessages_and_messages_give_nothing_but_what_was_sent(
        aead in prop::sample::select(&Aead::ALL),
        governance in prop::sample::select(&PROTECTED),
        index in any::<prop::sample::Index>(),
    ) {
        let (alice, bob) = pair(aead, governance);
        let plain = submessage(64);
        let readers = [alice.peer_reader];
        let sent = alice.factory.encode_writer_submessage(alice.writer, &readers, &plain, vec);
        let mut damaged = sent.unwrap();
        let bit = index.index(damaged.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        let read =
            bob.factory.decode_writer_submessage(bob.reader, bob.peer_writer, &damaged, vec);
        // Flags of submessages that say nothing here, and padding, may change.
        prop_assert!(read.is_err() || read.unwrap() == plain);

        let plain = message(64);
        let sent = alice.factory.encode_message(alice.participant, &[alice.peer], &plain, vec);
        let mut damaged = sent.unwrap();
        let bit = index.index((damaged.len() - 20) * 8) + 20 * 8;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let read = bob.factory.decode_message(bob.participant, bob.peer, &damaged, vec);
        prop_assert!(read.is_err() || read.unwrap()[44..] == plain[20..]);
    }
}

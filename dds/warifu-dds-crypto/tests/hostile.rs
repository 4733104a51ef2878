// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What somebody in the network tries with what was recorded, and a peer with the keys that it was
//! given.

mod common;

use common::{
    ENCRYPT, ENCRYPT_ORIGIN, Forge, Governance, NONE, SIGN, Side, key, message, pair, pair_with,
    received, shared_secret, submessage, vec,
};
use warifu_dds_crypto::algorithm::{Aead, Mode};
use warifu_dds_crypto::error::{Error, Result};
use warifu_dds_crypto::exchange::PeerToken;
use warifu_dds_crypto::keys::MasterKey;
use warifu_dds_crypto::settings::Settings;
use warifu_dds_crypto::wire::{self, Form, HeaderOctets, RTPS_HEADER_BYTES};

/// Of a sender whose messages of 64 B have a session each.
const SHORT_SESSIONS: Settings = Settings { aead: Aead::Aes256Gcm, max_blocks: 5 };

fn read_submessage(by: &Side, sent: &[u8]) -> Result<Vec<u8>> {
    by.factory.decode_writer_submessage(by.reader, by.peer_writer, sent, vec)
}

fn read_message(by: &Side, sent: &[u8]) -> Result<Vec<u8>> {
    by.factory.decode_message(by.participant, by.peer, sent, vec)
}

fn send_submessage(by: &Side) -> Vec<u8> {
    let readers = [by.peer_reader];
    let sent = by.factory.encode_writer_submessage(by.writer, &readers, &submessage(64), vec);
    sent.expect("sent")
}

fn send_message(by: &Side, plain: &[u8]) -> Vec<u8> {
    by.factory.encode_message(by.participant, &[by.peer], plain, vec).expect("sent")
}

#[test]
fn recordings_of_sessions_long_past_are_refused() {
    for governance in [Governance::of_all(ENCRYPT), Governance::of_all(ENCRYPT_ORIGIN)] {
        let (alice, bob) = pair_with(SHORT_SESSIONS, governance);
        let submessages: Vec<_> = (0..60).map(|_| send_submessage(&alice)).collect();
        let messages: Vec<_> = (0..60).map(|_| send_message(&alice, &message(64))).collect();
        let session = |sent: &[u8]| wire::submessage_header(sent).expect("a header").session_id();
        assert_eq!(session(&submessages[59]).wrapping_sub(session(&submessages[0])), 59);
        for (submessage, message) in submessages.iter().zip(&messages) {
            read_submessage(&bob, submessage).expect("read");
            read_message(&bob, message).expect("read");
        }
        // Again and again: an old one must not make room for itself.
        for _ in 0..3 {
            for (submessage, message) in submessages.iter().zip(&messages) {
                assert_eq!(read_submessage(&bob, submessage), Err(Error::Replayed));
                assert_eq!(read_message(&bob, message), Err(Error::Replayed));
            }
        }
        read_submessage(&bob, &send_submessage(&alice)).expect("the next is read");
    }
}

#[test]
fn a_sample_that_is_sent_again_long_after_is_read() {
    let (alice, bob) = pair_with(SHORT_SESSIONS, Governance::of_all(ENCRYPT));
    let send = || alice.factory.encode_payload(alice.writer, &[5; 64], vec).expect("sent");
    let samples: Vec<_> = (0..60).map(|_| send()).collect();
    for _ in 0..2 {
        for sample in &samples {
            let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, sample, vec);
            assert_eq!(read.expect("read"), [5; 64]);
        }
    }
}

#[test]
fn who_has_the_key_and_is_not_the_origin_neither_silences_nor_speaks() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT_ORIGIN));
    // Mallory has matched the same writer.
    let peer = alice.factory.register_remote_participant(alice.participant, 8, &shared_secret());
    let mallory = alice.factory.register_remote_reader(alice.writer, peer.expect("Mallory"));
    let tokens = alice.factory.writer_tokens(alice.writer, mallory.expect("Mallory's reader"));
    let master = key(&tokens.expect("tokens")[0]);
    let first = send_submessage(&alice);
    read_submessage(&bob, &first).expect("read");
    let seen = wire::submessage(&first).expect("a submessage");
    let (bobs_id, bobs_tag) = seen.receivers.iter().next().expect("Bob's tag");
    for ahead in 1..50 {
        let session_id = seen.header.session_id().wrapping_add(ahead);
        for tags in [&[][..], &[(bobs_id, [7; 16])], &[(bobs_id, *bobs_tag)]] {
            let forge =
                Forge { master: &master, form: Form::Submessage, session_id, count: 1, tags };
            read_submessage(&bob, &forge.make(&submessage(64))).expect_err("no tag of Alice's");
        }
    }
    read_submessage(&bob, &send_submessage(&alice)).expect("Alice is still heard");
}

#[test]
fn a_sample_is_no_submessage_and_a_submessage_no_sample() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let tokens = alice.factory.writer_tokens(alice.writer, alice.peer_reader).expect("tokens");
    let keys = [key(&tokens[0]), key(&tokens[1])];
    assert_ne!(keys[0].id, keys[1].id);
    let again = |form, master, protected: &wire::Protected<'_>| {
        let header = &protected.header;
        let octets = HeaderOctets::new(header.kind, header.key_id, header.nonce);
        let forge = Forge { master, form, session_id: 0, count: 0, tags: &[] };
        forge.wrap(&octets, protected.body, protected.tag)
    };
    // A sample whose octets are those of a submessage.
    let sent = alice.factory.encode_payload(alice.writer, &submessage(64), vec).expect("sent");
    let forged = again(Form::Submessage, &keys[1], &wire::payload(&sent).expect("a payload"));
    assert!(bob.factory.preprocess(bob.participant, bob.peer, &forged).is_err());
    assert_eq!(read_submessage(&bob, &forged), Err(Error::UnknownKey));
    let sent = send_submessage(&alice);
    let forged = again(Form::Payload, &keys[0], &wire::submessage(&sent).expect("a submessage"));
    let read = bob.factory.decode_payload(bob.reader, bob.peer_writer, &forged, vec);
    assert_eq!(read, Err(Error::UnknownKey));
    read_submessage(&bob, &sent).expect("as it was meant");
}

#[test]
fn one_key_for_both_does_not_make_a_sample_a_submessage() {
    // As Fast DDS 2.9 has it (AESGCMGMAC_KeyFactory.cpp, register_local_datawriter).
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let tokens = alice.factory.writer_tokens(alice.writer, alice.peer_reader).expect("tokens");
    let one = &received(&tokens)[..1];
    bob.factory.set_writer_tokens(bob.reader, bob.peer_writer, one).expect("set");
    let master = &key(&tokens[0]);
    let sample = [&[0, 1, 0, 0][..], &[9; 60]].concat();
    let make = |form, count, plain: &[u8]| {
        Forge { master, form, session_id: 5, count, tags: &[] }.make(plain)
    };
    let read_sample =
        |sent: &[u8]| bob.factory.decode_payload(bob.reader, bob.peer_writer, sent, vec);
    let one = make(Form::Submessage, 1, &submessage(64));
    assert_eq!(read_submessage(&bob, &one).expect("read"), submessage(64));
    assert_eq!(read_sample(&make(Form::Payload, 2, &sample)).expect("read"), sample);
    for wrong in [
        read_submessage(&bob, &make(Form::Submessage, 3, &sample)),
        read_sample(&make(Form::Payload, 4, &submessage(64))),
    ] {
        assert!(matches!(wrong, Err(Error::Malformed(_))), "{wrong:?}");
    }
}

/// An INFO_SRC (RTPS 2.2, section 9.4.5.9).
fn source(prefix: [u8; 12]) -> Vec<u8> {
    [&[0x0c, 1, 20, 0, 0, 0, 0, 0, 2, 1, 1, 16][..], &prefix].concat()
}

#[test]
fn a_participant_speaks_for_those_of_its_identity_alone() {
    // Of common::message.
    const OWN: [u8; 12] = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12];
    const SAME_SUBJECT: [u8; 12] = [9, 8, 7, 6, 5, 4, 0xaa, 0xbb, 0xcc, 0, 0, 1];
    const ANOTHER: [u8; 12] = [9, 8, 7, 6, 5, 5, 3, 2, 1, 0, 11, 12];
    for governance in [Governance::of_all(ENCRYPT), Governance::of_all(SIGN)] {
        let (alice, bob) = pair(Aead::Aes256Gcm, governance);
        let with = |parts: &[&[u8]]| {
            let plain = [&message(64)[..], &parts.concat()].concat();
            read_message(&bob, &send_message(&alice, &plain))
        };
        let data = submessage(32);
        for prefix in [OWN, SAME_SUBJECT] {
            with(&[&source(prefix), &data]).expect("the same identity");
        }
        let mut to_the_end = source(ANOTHER);
        to_the_end[2] = 0;
        let timestamp_of_nothing = [9, 1, 0, 0];
        for refused in [
            with(&[&source(ANOTHER), &data]),
            with(&[&source(SAME_SUBJECT), &data, &source(ANOTHER), &data]),
            with(&[&to_the_end]),
            with(&[&timestamp_of_nothing, &source(ANOTHER)]),
            with(&[&source(OWN)[..8]]),
        ] {
            assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
        }
        // Behind a length of 0 all is the content of one submessage, also for the core.
        with(&[&[0x15, 1, 0, 0], &source(ANOTHER)]).expect("no INFO_SRC to anyone");
    }
}

#[test]
fn headers_in_the_cores_order_are_read() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let mut sent = send_message(&alice, &message(64));
    for word in sent[8..RTPS_HEADER_BYTES].chunks_mut(4) {
        word.reverse();
    }
    read_message(&bob, &sent).expect("as Cyclone gives it");
    let mut sent = send_message(&alice, &message(64));
    sent[9] ^= 1;
    assert!(matches!(read_message(&bob, &sent), Err(Error::Malformed(_))), "another sender");
}

#[test]
fn a_submessage_does_not_change_the_source_of_what_follows() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let plain = source([1; 12]);
    let sent =
        alice.factory.encode_writer_submessage(alice.writer, &[alice.peer_reader], &plain, vec);
    let read = read_submessage(&bob, &sent.expect("sent"));
    assert!(matches!(read, Err(Error::Malformed(_))), "{read:?}");
}

#[test]
fn another_peers_key_ids_capture_nothing() {
    for governance in [Governance::of_all(ENCRYPT), Governance::of_all(ENCRYPT_ORIGIN)] {
        let (alice, bob) = pair(Aead::Aes256Gcm, governance);
        // Mallory names Alice's key ids, of which the network knows, as her own.
        let peer = bob.factory.register_remote_participant(bob.participant, 9, &shared_secret());
        let peer = peer.expect("Mallory");
        let writer = bob.factory.register_remote_writer(bob.reader, peer).expect("a writer");
        let reader = bob.factory.register_remote_reader(bob.writer, peer).expect("a reader");
        let all = [
            alice.factory.participant_tokens(alice.participant, alice.peer).expect("tokens"),
            alice.factory.writer_tokens(alice.writer, alice.peer_reader).expect("tokens"),
            alice.factory.reader_tokens(alice.reader, alice.peer_writer).expect("tokens"),
        ];
        let own: Vec<Vec<Vec<u8>>> = all
            .iter()
            .map(|tokens| tokens.iter().map(|token| with_other_keys(&token.key_material)).collect())
            .collect();
        let tokens = |of: usize| -> Vec<PeerToken<'_>> {
            let class_id = Aead::Aes256Gcm.class_id();
            let tokens = own[of].iter();
            tokens.map(|key_material| PeerToken { class_id, key_material }).collect()
        };
        bob.factory.set_participant_tokens(bob.participant, peer, &tokens(0)).expect("set");
        bob.factory.set_writer_tokens(bob.reader, writer, &tokens(1)).expect("set");
        bob.factory.set_reader_tokens(bob.writer, reader, &tokens(2)).expect("set");
        let sent = send_submessage(&alice);
        let relation = bob.factory.preprocess(bob.participant, bob.peer, &sent).expect("Alice's");
        assert_eq!(relation.remote, bob.peer_writer);
        read_submessage(&bob, &sent).expect("read");
        read_message(&bob, &send_message(&alice, &message(64))).expect("read");
        // When Mallory leaves, Alice stays.
        bob.factory.unregister_writer(writer).expect("unregistered");
        bob.factory.unregister_participant(peer).expect("unregistered");
        let sent = send_submessage(&alice);
        bob.factory.preprocess(bob.participant, bob.peer, &sent).expect("still Alice's");
        read_submessage(&bob, &sent).expect("read");
    }
}

/// A token with its ids and other keys: behind the kind come the salt, the id and
/// the key, each of the two with its length before it.
fn with_other_keys(token: &[u8]) -> Vec<u8> {
    let mut other = token.to_vec();
    other[8] ^= 1;
    other[48] ^= 1;
    other
}

#[test]
fn participants_of_one_process_each_read_their_own_cipher() {
    // Alice has AEGIS; of Bob's two participants the first has AES, and Cyclone asks it first.
    let governance = Governance::of_all(ENCRYPT_ORIGIN);
    let settings = |aead| Settings { aead, ..Settings::default() };
    let alice = Side::new(settings(Aead::Aegis128L), governance, 1);
    let bob = Side::new(settings(Aead::Aes256Gcm), governance, 2);
    let second = bob
        .factory
        .register_local_participant(&settings(Aead::Aegis128L), governance.rtps)
        .expect("Bob's second");
    let peer = bob.factory.register_remote_participant(second, 7, &shared_secret());
    assert_eq!(peer, Ok(bob.peer), "one remote participant for both");
    let other = alice.factory.register_remote_participant(alice.participant, 8, &shared_secret());
    let other = other.expect("Bob's second, as Alice knows it");
    let tokens = alice.factory.participant_tokens(alice.participant, other).expect("tokens");
    let set = |local| bob.factory.set_participant_tokens(local, bob.peer, &received(&tokens));
    assert!(matches!(set(bob.participant), Err(Error::Class { .. })));
    set(second).expect("of its class");
    let sent =
        alice.factory.encode_message(alice.participant, &[alice.peer, other], &message(64), vec);
    let sent = sent.expect("sent");
    let first = read_message(&bob, &sent).expect_err("of another cipher");
    // DDS_SECURITY_ERR_INVALID_CRYPTO_RECEIVER_SIGN_CODE: Cyclone goes on with the next.
    assert_eq!(first.code(), 124, "{first}");
    bob.factory.decode_message(second, bob.peer, &sent, vec).expect("of its cipher");
}

#[test]
fn writers_and_readers_count_for_themselves_where_keys_are_exchanged() {
    // Fast DDS 2.9 begins both at session 0, under one key, and renews them every 32 messages.
    let master = &MasterKey::key_exchange(&shared_secret()).expect("a key");
    let bob = Side::new(Settings::default(), Governance::of_all(NONE), 2);
    let read = |session_id, count, plain: &[u8]| {
        let forge = Forge { master, form: Form::Submessage, session_id, count, tags: &[] };
        let sent = forge.make(plain);
        let (reader, writer) = (bob.volatile_reader, bob.peer_volatile_writer);
        bob.factory.decode_writer_submessage(reader, writer, &sent, vec)
    };
    let data = submessage(64);
    let acknowledgement = [&[6, 1, 24, 0][..], &[0; 24]].concat();
    for session in 0..60 {
        read(session, 1, &data).expect("the writer's");
        if session % 4 == 3 {
            read(session / 4, 2, &acknowledgement).expect("the reader's, who says less");
        }
    }
    assert_eq!(read(59, 1, &data), Err(Error::Replayed));
    assert_eq!(read(2, 1, &data), Err(Error::Replayed), "of the writer, long past");
    assert_eq!(read(12, 2, &acknowledgement), Err(Error::Replayed));
}

#[test]
fn keys_for_one_participant_are_not_tried_for_another() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    // Bob's second participant has not come so far that it could exchange keys.
    let second = bob.factory.register_local_participant(&Settings::default(), ENCRYPT);
    let second = second.expect("Bob's second");
    bob.factory.register_remote_participant(second, 7, &shared_secret()).expect("Alice");
    let to = [alice.peer_volatile_reader];
    let sent =
        alice.factory.encode_writer_submessage(alice.volatile_writer, &to, &submessage(64), vec);
    let sent = sent.expect("sent");
    for (local, is_found) in [(bob.participant, true), (second, false), (0, true)] {
        let relation = bob.factory.preprocess(local, bob.peer, &sent);
        assert_eq!(relation.is_ok(), is_found, "{relation:?}");
    }
}

#[test]
fn our_own_messages_are_not_taken_for_the_peers() {
    // Both sides exchange keys under the same one.
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    let plain = submessage(64);
    let send = |by: &Side| {
        let to = [by.peer_volatile_reader];
        by.factory.encode_writer_submessage(by.volatile_writer, &to, &plain, vec).expect("sent")
    };
    let read = |by: &Side, sent: &[u8]| {
        let (reader, writer) = (by.volatile_reader, by.peer_volatile_writer);
        by.factory.decode_writer_submessage(reader, writer, sent, vec)
    };
    let sent = send(&alice);
    assert_eq!(read(&alice, &sent), Err(Error::Replayed));
    assert_eq!(read(&bob, &sent).expect("read"), plain);
    // The same content encrypted anew, as RTPS does when it is asked for it again.
    assert_eq!(read(&bob, &send(&alice)).expect("read again"), plain);
    assert_eq!(read(&alice, &send(&bob)).expect("read"), plain);
}

#[test]
fn a_forked_child_does_not_encrypt_under_its_parents_nonces() {
    let (alice, bob) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
    // SAFETY: the child calls what it is made for, and ends at once.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        let refused = [
            alice.factory.encode_payload(alice.writer, &[5; 64], vec),
            alice.factory.encode_message(alice.participant, &[alice.peer], &message(64), vec),
        ];
        let are_all = refused.iter().all(|refused| refused == &Err(Error::Forked));
        let says_why = Error::Forked.to_string().contains("fork");
        // A participant that is made in the child has keys of its own.
        let (new, _) = pair(Aead::Aes256Gcm, Governance::of_all(ENCRYPT));
        let is_new = new.factory.encode_payload(new.writer, &[5; 64], vec).is_ok();
        // SAFETY: it ends without the handlers of the parent.
        unsafe { libc::_exit(if are_all && says_why && is_new { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a place for how it ended.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
    let sent = alice.factory.encode_payload(alice.writer, &[5; 64], vec).expect("the parent may");
    bob.factory.decode_payload(bob.reader, bob.peer_writer, &sent, vec).expect("read");
}

#[test]
fn samples_alone_leave_no_key_for_submessages() {
    let governance = Governance { data: Some(Mode::Encrypt), metadata: NONE, rtps: NONE };
    let (alice, bob) = pair(Aead::Aes256Gcm, governance);
    let tokens = alice.factory.writer_tokens(alice.writer, alice.peer_reader).expect("tokens");
    let master = &key(&tokens[0]);
    let forge = Forge { master, form: Form::Submessage, session_id: 1, count: 1, tags: &[] };
    let sent = forge.make(&submessage(64));
    assert!(bob.factory.preprocess(bob.participant, bob.peer, &sent).is_err());
    assert!(read_submessage(&bob, &sent).is_err());
}

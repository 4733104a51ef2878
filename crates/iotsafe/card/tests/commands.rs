// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each command's answers and status words.

mod common;

use common::{Client, fields, init, key_data};
use warifu_card::crypto::{Hash, SecretBytes};
use warifu_card::object::{KeyAttributes, KeyType, Name, ObjectKind, access};
use warifu_card::tlv::tag;
use warifu_card::{Card, KeySource, PersonaliseError, Pin, PinScope, Quirks, Response, padded};

fn sw(response: &Response) -> u16 {
    response.sw.0
}

#[test]
fn open_and_close_channels() {
    let mut client = Client::new(Quirks::STRICT);
    for number in 1..=3 {
        assert_eq!(client.raw(&[0, 0x70, 0, 0, 1]).data, [number]);
    }
    assert_eq!(sw(&client.raw(&[0, 0x70, 0, 0, 1])), 0x6a81);
    assert_eq!(sw(&client.raw(&[0, 0x70, 0, 2])), 0x6a81);
    assert_eq!(sw(&client.raw(&[2, 0x70, 0x80, 0])), 0x9000);
    assert_eq!(sw(&client.raw(&[2, 0x70, 0, 0, 1])), 0x6881);
    assert_eq!(sw(&client.raw(&[0, 0x70, 0x80, 2])), 0x6881);
    assert_eq!(sw(&client.raw(&[0, 0x70, 0, 2])), 0x9000);
    assert_eq!(sw(&client.raw(&[0, 0x70, 0x80, 0])), 0x6a86);
    assert_eq!(sw(&client.raw(&[0, 0x70, 0x80, 4])), 0x6a86);
    // A channel knows its own selection and sessions.
    client.channel = 2;
    assert_eq!(sw(&client.ask(0x84, 0, 0, &[])), 0x6985);
    client.select();
    client.get(0x2a, 0, 1, &init(0x84, 1, 3, 1));
    client.channel = 1;
    client.select();
    assert_eq!(sw(&client.send(0x2b, 0x80, 1, &[])), 0x6985);
}

#[test]
fn select_on_a_closed_channel() {
    for (quirks, expected) in [(Quirks::STRICT, 0x6881), (Quirks::WOLFSSL, 0x9000)] {
        let mut client = Client::new(quirks);
        client.channel = 1;
        assert_eq!(sw(&client.ask(0x84, 0, 0, &[])), 0x6881);
        assert_eq!(sw(&client.raw(&[1, 0xa4, 4, 0, 2, 1, 2])) == 0x6a82, expected == 0x9000);
        assert_eq!(sw(&client.ask(0x84, 0, 0, &[])), 0x6881, "a failed SELECT opens nothing");
        assert_eq!(sw(&client.select()), expected);
    }
}

#[test]
fn invalid_classes_instructions_and_parameters() {
    let mut client = Client::selected(Quirks::STRICT);
    for (command, expected) in [
        (&[0xff, 0x84, 0, 0, 8][..], 0x6e00),
        (&[0x40, 0x84, 0, 0, 8], 0x6e00),
        (&[0x8c, 0x84, 0, 0, 8], 0x6882),
        (&[0x83, 0x84, 0, 0, 8], 0x6881),
        (&[0x80, 0x99, 0, 0, 8], 0x6d00),
        (&[0x80, 0x84, 1, 0, 8], 0x6a86),
        (&[0x80, 0x84, 0, 0], 0x6700),
        (&[0x80, 0x84, 0, 0, 1, 1, 8], 0x6700),
        (&[0x80, 0x84, 0], 0x6700),
        (&[0x00, 0xa4, 4, 0, 2, 1, 2], 0x6a82),
        (&[0x00, 0xa4, 0, 0, 2, 1, 2], 0x6a86),
        (&[0x80, 0xcb, 0xc5, 0, 0], 0x6a86),
        (&[0x80, 0xcb, 0xc3, 0, 3, 0x83, 1, 9, 0], 0x6a82),
        (&[0x80, 0xcb, 0xc3, 0, 3, 0x84, 1, 2, 0], 0x6a80),
        (&[0x80, 0xcb, 0xc3, 0, 6, 0x83, 1, 2, 0x73, 1, 2, 0], 0x6a80),
        (&[0x80, 0xb9, 0, 0, 3, 0x84, 1, 1, 0], 0x6985),
        (&[0x80, 0xb9, 0, 0, 3, 0x84, 1, 9, 0], 0x6a82),
        (&[0x80, 0xcd, 0, 0, 3, 0x85, 1, 5, 0], 0x6985),
        (&[0x80, 0x46, 0, 0, 6, 0x84, 1, 1, 0x85, 1, 5, 0], 0x6985),
        (&[0x80, 0x24, 0, 0, 3, 0x85, 1, 1], 0x6985),
        (&[0x80, 0x24, 0, 0x10, 3, 0x85, 1, 5], 0x6a86),
        (&[0x80, 0x24, 1, 0], 0x6985),
        (&[0x80, 0xd8, 0x80, 0], 0x6985),
        (&[0x80, 0xd8, 0x40, 0], 0x6a86),
        (&[0x80, 0xb0, 0, 0, 3, 0x83, 1, 2, 0], 0x6985),
        (&[0x00, 0xc0, 0, 0, 0], 0x6985),
        (&[0x00, 0x20, 0, 1], 0x6984),
        (&[0x80, 0x48, 3, 0, 0], 0x6a86),
        (&[0x80, 0x4a, 0, 0, 4, 0x91, 2, 0, 1, 0], 0x6a80),
    ] {
        assert_eq!(
            format!("{:04x}", sw(&client.raw(command))),
            format!("{expected:04x}"),
            "{command:02x?}"
        );
    }
}

#[test]
fn unsupported_algorithms() {
    let mut client = Client::selected(Quirks::STRICT);
    for (mode, hash, signature) in
        [(3, 1, 1), (3, 1, 2), (0, 1, 4), (4, 1, 4), (3, 3, 4), (3, 0, 4)]
    {
        let mut data = init(0x84, 1, mode, hash);
        *data.last_mut().unwrap() = signature;
        assert_eq!(sw(&client.send(0x2a, 0, 1, &data)), 0x6a80, "{mode} {hash} {signature}");
    }
    assert_eq!(sw(&client.send(0x2a, 0, 1, &init(0x84, 4, 3, 1))), 0x6985, "an empty place");
}

#[test]
fn get_response() {
    let mut client = Client::selected(Quirks::STRICT);
    let list = client.get(0xcb, 1, 0, &[]);
    assert!(list.len() < 256, "{}", list.len());
    let first = client.raw(&[0x80, 0xcb, 1, 0, 10]);
    assert_eq!((first.data.len(), sw(&first)), (10, 0x6100 | (list.len() as u16 - 10)));
    let second = client.raw(&[0x00, 0xc0, 0, 0, 20]);
    let rest = client.raw(&[0x00, 0xc0, 0, 0, 0]);
    assert_eq!([first.data, second.data, rest.data].concat(), list);
    assert_eq!(sw(&client.raw(&[0x00, 0xc0, 0, 0, 0])), 0x6985);
    // Without Le all of it waits, until another command comes.
    assert_eq!(sw(&client.send(0xcd, 0, 0, &[0x85, 1, 1])), 0x6147);
    client.get(0x84, 0, 0, &[]);
    assert_eq!(sw(&client.raw(&[0x00, 0xc0, 0, 0, 0])), 0x6985);
}

#[test]
fn long_answer_in_parts() {
    let mut client = Client::selected(Quirks::ORANGE);
    for id in 10..20 {
        let name = Name { id: vec![id; 20], label: vec![id; 60], access: access::READ };
        client.card.add_file(name, 1, &[id]).unwrap();
    }
    let first = client.ask(0xcb, 1, 0, &[]);
    assert_eq!((first.data.len(), sw(&first)), (256, 0x6100));
    let mut list = first.data;
    loop {
        let part = client.raw(&[0x00, 0xc0, 0, 0, 0]);
        list.extend_from_slice(&part.data);
        match sw(&part) {
            0x9000 => break,
            sw => assert_eq!(sw >> 8, 0x61),
        }
    }
    let extended = client.raw(&[0x80, 0xcb, 1, 0, 0, 0, 0]);
    assert_eq!(extended.data, list);
}

#[test]
fn interrupted_command_chain() {
    let mut client = Client::selected(Quirks::STRICT);
    assert_eq!(sw(&client.raw(&[0x90, 0xcd, 0, 0, 1, 0x85])), 0x9000);
    assert_eq!(sw(&client.raw(&[0x80, 0x84, 0, 0, 8])), 0x6883);
    assert_eq!(sw(&client.raw(&[0x80, 0x84, 0, 0, 8])), 0x9000);
    let part = [&[0x90, 0xcd, 0, 0, 0xff][..], &[0; 0xff]].concat();
    let refused = (0..200).map(|_| sw(&client.raw(&part))).find(|sw| *sw != 0x9000);
    assert_eq!(refused, Some(0x6a84));
}

#[test]
fn object_templates() {
    let mut client = Client::selected(Quirks::STRICT);
    client.card.write_file(&[2], &[7; 600]).unwrap();
    let file = client.get(0xcb, 0xc3, 0, &[0x83, 1, 2]);
    let inner = fields(&[
        (0x73, b"client"),
        (0x83, &[2]),
        (0x60, &[1]),
        (0x4a, &[1]),
        (0x20, &[2, 0x58]),
        (0x21, &[2]),
    ]);
    assert_eq!(file, fields(&[(0xc3, &inner)]));
    let key = client.get(0xcb, 0xc1, 0, &[0x74, 6, b'c', b'l', b'i', b'e', b'n', b't']);
    let inner = fields(&[
        (0x74, b"client"),
        (0x84, &[1]),
        (0x60, &[1]),
        (0x4a, &[1]),
        (0x4b, &[0x13]),
        (0x4e, &[1]),
        (0x61, &[7]),
        (0x91, &[0, 7]),
        (0x92, &[4]),
        (0x6f, &[1]),
    ]);
    assert_eq!(key, fields(&[(0xc1, &inner)]));
    let name = Name::slot(6, "", 0);
    client.card.add_secret(name, SecretBytes::new(vec![1; 16])).unwrap();
    let secret = client.get(0xcb, 0xc4, 0, &[0x86, 1, 6]);
    assert_eq!(secret[..5], [0xc4, 18, 0x86, 1, 6]);
}

#[test]
fn two_byte_ids_in_either_order() {
    for (quirks, swapped) in [(Quirks::STRICT, 0x6a82), (Quirks::WOLFSSL, 0x9000)] {
        let mut client = Client::selected(quirks);
        let name = Name { id: vec![1, 2], label: Vec::new(), access: access::READ };
        client.card.add_file(name, 1, &[5]).unwrap();
        assert_eq!(sw(&client.ask(0xb0, 0, 0, &[0x83, 2, 1, 2])), 0x9000);
        assert_eq!(sw(&client.ask(0xb0, 0, 0, &[0x83, 2, 2, 1])), swapped);
    }
}

#[test]
fn message_in_parts_and_as_last_block() {
    let mut client = Client::selected(Quirks::STRICT);
    let text: Vec<u8> = (0..200).collect();
    let point = client.card.export_public_key(&[1]).unwrap();
    let digest = Hash::Sha256.digest(&text);
    client.get(0x2a, 0, 1, &init(0x84, 1, 1, 1));
    let data = fields(&[(tag::FULL_TEXT, &text)]);
    client.get(0x2b, 0, 1, &data[..150]);
    let signature = client.get(0x2b, 0x80, 1, &data[150..]);
    assert!(point.verify(&digest, signature[2..].try_into().unwrap()));
    // The other modes' fields are no text for this one.
    assert_eq!(sw(&client.ask(0x2b, 0x80, 1, &fields(&[(tag::FINAL_HASH, &digest)]))), 0x6a80);
    assert_eq!(sw(&client.ask(0x2b, 0x80, 1, &[])), 0x6a80);

    // SHA-256 after one block of 64 zeros.
    let state = "da5698be17b9b46962335799779fbeca8ce5d491c0d26243bafef9ea1837a9d8";
    let digest = Hash::Sha256.digest(&[&[0; 64][..], b"end"].concat());
    client.get(0x2a, 0, 2, &init(0x84, 1, 2, 1));
    let last_block = |hashed: &[u8]| {
        let state = common::hex(state);
        fields(&[
            (tag::LAST_BLOCK, b"end"),
            (tag::INTERMEDIATE_HASH, &state),
            (tag::BYTES_HASHED, hashed),
        ])
    };
    let signature = client.get(0x2b, 0x80, 2, &last_block(&[0, 0, 0, 64]));
    assert!(point.verify(&digest, signature[2..].try_into().unwrap()));
    assert_eq!(sw(&client.ask(0x2b, 0x80, 2, &last_block(&[0, 0, 0, 63]))), 0x6a80);
    assert_eq!(sw(&client.ask(0x2b, 0x80, 2, &last_block(&[64]))), 0x6a80);
}

#[test]
fn session_numbers_and_close() {
    let mut client = Client::selected(Quirks::STRICT);
    for number in 0..6 {
        client.get(0x2a, 0, number, &init(0x84, 1, 3, 1));
    }
    assert_eq!(sw(&client.ask(0x2a, 0, 6, &init(0x84, 1, 3, 1))), 0x6989);
    assert_eq!(sw(&client.ask(0x2a, 0, 5, &init(0x84, 1, 3, 1))), 0x6985);
    client.get(0x2a, 1, 5, &[]);
    assert_eq!(sw(&client.ask(0x2a, 1, 5, &[])), 0x6985);
    client.get(0x2a, 0, 5, &init(0x84, 1, 3, 1));
    // A longer digest than declared is for the cards that take any.
    let digest = fields(&[(tag::FINAL_HASH, &[7; 48])]);
    assert_eq!(sw(&client.ask(0x2b, 0x80, 5, &digest)), 0x6a80);
    client.card.delete(ObjectKind::PrivateKey, &[1]).unwrap();
    assert_eq!(sw(&client.ask(0x2b, 0x80, 5, &fields(&[(tag::FINAL_HASH, &[7; 32])]))), 0x6a82);
}

#[test]
fn generate_store_and_agree_on_both_curves() {
    let mut client = Client::selected(Quirks::STRICT);
    for (id, key_type) in
        [(9, KeyType::BrainpoolP256r1Volatile), (10, KeyType::Secp256r1Persistent)]
    {
        let both = access::READ | access::UPDATE;
        let attributes = KeyAttributes::general(key_type);
        let (card, rng) = (&mut client.card, &mut client.rng);
        card.add_key_pair(Name::slot(id, "", both), attributes, KeySource::Empty, rng).unwrap();
        card.add_public_key(Name::slot(id + 10, "", both), attributes, None).unwrap();
        client.card.take_dirty();
        client.get(0xb9, 0, 0, &[0x84, 1, id]);
        assert_eq!(client.card.take_dirty(), !key_type.is_volatile());
        let peer = key_type.curve().generate(&mut client.rng);
        let data = key_data(peer.public().unwrap().bytes());
        client.get(0x24, 0, 0, &[0x85, 1, id + 10]);
        client.get(0xd8, 0, 0, &data[..30]);
        client.get(0xd8, 0x80, 0, &data[30..]);
        assert_eq!(client.card.take_dirty(), !key_type.is_volatile());
        assert_eq!(client.get(0xcd, 0, 0, &[0x85, 1, id + 10]), data);
        let mut off = data.clone();
        *off.last_mut().unwrap() ^= 1;
        assert_eq!(sw(&client.ask(0xd8, 0x80, 0, &off)), 0x6a80);
        client.get(0x24, 1, 0, &[]);
        let shared = client.get(0x46, 0, 0, &[0x84, 1, id, 0x85, 1, id + 10]);
        let own = client.card.export_public_key(&[id]).unwrap();
        assert_eq!(peer.shared_secret(&own).unwrap().expose(), shared);
    }
    assert_eq!(sw(&client.ask(0x46, 0, 0, &[0x84, 1, 9, 0x85, 1, 20])), 0x6981, "two curves");
}

#[test]
fn premaster_secret_of_a_stored_secret() {
    let mut client = Client::selected(Quirks::STRICT);
    let name = Name::slot(6, "psk", 0);
    client.card.add_secret(name, SecretBytes::new(vec![9; 2])).unwrap();
    let with = |source: &[(u8, &[u8])]| {
        let mut parts = source.to_vec();
        parts.extend([(tag::LABEL_AND_SEED, &b"seed"[..]), (tag::OUTPUT_LENGTH, &[40])]);
        fields(&parts)
    };
    let given =
        |client: &mut Client, secret: &[u8]| client.get(0x48, 0, 0, &with(&[(0xd1, secret)]));
    let psk = client.get(0x48, 1, 0, &with(&[(0x86, &[6])]));
    assert_eq!(psk, given(&mut client, &[0, 2, 0, 0, 0, 2, 9, 9]));
    let psk_ecdhe = client.get(0x48, 2, 0, &with(&[(0x76, b"psk"), (0xd4, &[5])]));
    assert_eq!(psk_ecdhe, given(&mut client, &[0, 1, 5, 0, 2, 9, 9]));
    for (mode, source) in [
        (1, vec![(0xd1, &[1][..])]),
        (0, vec![(0xd1, &[1][..]), (0x86, &[6])]),
        (2, vec![(0x86, &[6][..])]),
        (0, vec![]),
    ] {
        assert_eq!(sw(&client.ask(0x48, mode, 0, &with(&source))), 0x6a80);
    }
}

#[test]
fn pin_counter_lock_and_signing() {
    let mut client = Client::selected(Quirks::STRICT);
    client.card.set_pin(Pin::new("1234", PinScope::Signing, 3));
    let verify =
        |client: &mut Client, digits: &str| sw(&client.send(0x20, 0, 1, &*padded(digits).unwrap()));
    let sign = |client: &mut Client| sw(&client.ask(0x2a, 0, 1, &init(0x84, 1, 3, 1)));
    assert_eq!(sw(&client.send(0x20, 0, 1, b"1234")), 0x6700);
    assert_eq!(sw(&client.send(0x20, 0, 2, &[])), 0x6a86);
    assert_eq!((sign(&mut client), sw(&client.send(0x20, 0, 1, &[]))), (0x6982, 0x63c3));
    client.get(0xb9, 0, 0, &[0x84, 1, 4]);
    client.card.take_dirty();
    assert_eq!((verify(&mut client, "9999"), client.card.take_dirty()), (0x63c2, true));
    assert_eq!((verify(&mut client, "1234"), client.card.take_dirty()), (0x9000, true));
    assert_eq!((sign(&mut client), sw(&client.send(0x20, 0, 1, &[]))), (0x9000, 0x9000));
    assert_eq!(verify(&mut client, "9999"), 0x63c2);
    let digest = fields(&[(tag::FINAL_HASH, &[7; 32])]);
    assert_eq!(sw(&client.ask(0x2b, 0x80, 1, &digest)), 0x6982, "a wrong try takes it back");
    assert_eq!([verify(&mut client, "9999"), verify(&mut client, "9999")], [0x63c1, 0x63c0]);
    assert_eq!(verify(&mut client, "1234"), 0x6983);
    // The lock survives what a card survives.
    let mut again = Card::from_bytes(&client.card.to_bytes()).unwrap();
    assert_eq!(again.settings().pin.as_ref().unwrap().tries_left(), 0);
    again.unblock_pin();
    assert_eq!(again.settings().pin.as_ref().unwrap().tries_left(), 3);
}

#[test]
fn personalisation_limits() {
    let mut client = Client::selected(Quirks::STRICT);
    let (card, rng) = (&mut client.card, &mut client.rng);
    let before = card.to_bytes();
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    let mut pair = |card: &mut Card, name, source: KeySource<'_>| {
        card.add_key_pair(name, attributes, source, rng)
    };
    let taken = pair(card, Name::slot(1, "", 1), KeySource::Generate);
    assert_eq!(taken, Err(PersonaliseError::Taken));
    let zero = pair(card, Name::slot(9, "", 1), KeySource::Scalar(&[0; 32]));
    assert_eq!(zero, Err(PersonaliseError::Scalar));
    let long = Name { id: vec![1; 21], label: Vec::new(), access: 1 };
    let long = pair(card, long, KeySource::Generate);
    assert_eq!(long, Err(PersonaliseError::Name { id_bytes: 21, label_bytes: 0 }));
    let big = card.write_file(&[2], &vec![0; 0x8000]);
    assert_eq!(big, Err(PersonaliseError::Length { found_bytes: 0x8000, max_bytes: 0x7fff }));
    let empty = card.add_secret(Name::slot(9, "", 1), SecretBytes::new(Vec::new()));
    assert_eq!(empty, Err(PersonaliseError::Length { found_bytes: 0, max_bytes: 255 }));
    assert_eq!(card.delete(ObjectKind::File, &[9]), Err(PersonaliseError::NotFound));
    assert_eq!(card.to_bytes(), before);
    for id in 10..40 {
        card.add_file(Name::slot(id, "", 1), 1, &[1]).unwrap();
    }
    assert_eq!(card.add_file(Name::slot(40, "", 1), 1, &[1]), Err(PersonaliseError::Full));
    assert_eq!(card.list().len(), 2 + 3 + 32);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Public known answers, through the card's commands where a command gives them.

mod common;

use chacha20::ChaCha20Rng;
use common::{Client, fields, hex, init, vectors};
use rand_core::SeedableRng;
use warifu_card::crypto::{Curve, Hash, SecretBytes, prf_tls12};
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::tlv::tag;
use warifu_card::{AIDS, Card, KeySource, Nonce, Settings};

fn hash(name: &str) -> Hash {
    match name {
        "SHA-256" => Hash::Sha256,
        "SHA-384" => Hash::Sha384,
        "SHA-512" => Hash::Sha512,
        other => panic!("{other}"),
    }
}

fn scalar(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
}

/// A client of a card with deterministic nonces and one key pair, number 1.
fn client_with_key(key_type: KeyType, key: &[u8; 32]) -> Client {
    let settings = Settings { nonce: Nonce::Deterministic, ..Settings::default() };
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut card = Card::new(settings);
    let name = Name::slot(1, "", access::READ);
    let attributes = KeyAttributes::general(key_type);
    card.add_key_pair(name, attributes, KeySource::Scalar(key), &mut rng).unwrap();
    let mut client = Client { card, rng, channel: 0, sent: Vec::new() };
    client.select();
    client
}

#[test]
fn rfc_6979_signatures_by_command() {
    let blocks = vectors("rfc6979-p256");
    let (key, cases) = blocks.split_first().unwrap();
    let mut client = client_with_key(KeyType::Secp256r1Persistent, &scalar(&key["key"]));
    let point = client.get(0xcd, 0, 0, &[0x85, 1, 1]);
    let expected = [hex(&key["public_x"]), hex(&key["public_y"])].concat();
    assert_eq!(point[point.len() - 64..], expected);
    assert_eq!(cases.len(), 6);
    for case in cases {
        let hash = hash(&case["hash"]);
        let digest = hash.digest(case["text"].as_bytes());
        let expected = [vec![0x33, 0x40], hex(&case["r"]), hex(&case["s"])].concat();
        for (mode, text) in [
            (1, fields(&[(tag::FULL_TEXT, case["text"].as_bytes())])),
            (3, fields(&[(tag::FINAL_HASH, &digest)])),
        ] {
            client.get(0x2a, 0, 1, &init(tag::PRIVATE_KEY_ID, 1, mode, hash.bit()));
            assert_eq!(client.get(0x2b, 0x80, 1, &text), expected, "{case:?}");
            client.get(0x2a, 1, 1, &[]);
        }
    }
}

#[test]
fn rfc_5869_extract_by_command() {
    let mut client = Client::selected(warifu_card::Quirks::STRICT);
    let cases = vectors("rfc5869-hkdf");
    assert_eq!(cases.len(), 3);
    for case in cases {
        let (secret, salt) = (hex(&case["secret"]), hex(&case["salt"]));
        let name = [0, hash(&case["hash"]).bit()];
        let mut parts: Vec<(u8, &[u8])> = vec![(tag::SECRET_VALUE, &secret), (tag::HASH, &name)];
        if !salt.is_empty() {
            parts.push((tag::SALT, &salt));
        }
        assert_eq!(client.get(0x4a, 0, 0, &fields(&parts)), hex(&case["prk"]));
    }
}

#[test]
fn tls_12_prf_by_command() {
    let mut client = Client::selected(warifu_card::Quirks::STRICT);
    let cases = vectors("tls12-prf");
    assert_eq!(cases.len(), 3);
    for case in cases {
        let (hash, output) = (hash(&case["hash"]), hex(&case["output"]));
        let (secret, seed) =
            (hex(&case["secret"]), [hex(&case["label"]), hex(&case["seed"])].concat());
        assert_eq!(prf_tls12(hash, &secret, &seed, output.len()).expose(), output);
        let name = Name::slot(hash.bit(), "", 0);
        client.card.add_secret(name, SecretBytes::new(secret.clone())).unwrap();
        let length = [output.len() as u8];
        for source in [(tag::SECRET_VALUE, &secret[..]), (tag::SECRET_ID, &[hash.bit()])] {
            let parts = fields(&[
                source,
                (tag::LABEL_AND_SEED, &seed),
                (tag::OUTPUT_LENGTH, &length),
                (tag::HASH, &[0, hash.bit()]),
            ]);
            assert_eq!(client.get(0x48, 0, 0, &parts), output);
        }
    }
}

#[test]
fn rfc_7027_diffie_hellman_by_command() {
    let blocks = vectors("rfc7027-brainpool");
    let case = &blocks[0];
    let point = |x: &str, y: &str| [vec![4], hex(&case[x]), hex(&case[y])].concat();
    let (own, peer) = (point("public_a_x", "public_a_y"), point("public_b_x", "public_b_y"));
    let key_type = KeyType::BrainpoolP256r1Persistent;
    let mut client = client_with_key(key_type, &scalar(&case["private_a"]));
    assert_eq!(&client.card.export_public_key(&[1]).unwrap().bytes()[..], own);
    let peer = Curve::BrainpoolP256r1.point(&peer).unwrap();
    let attributes = KeyAttributes::general(key_type);
    client.card.add_public_key(Name::slot(5, "", 3), attributes, Some(peer)).unwrap();
    let shared = client.get(0x46, 0, 0, &[0x84, 1, 1, 0x85, 1, 5]);
    assert_eq!(shared, hex(&case["shared_x"]));
}

#[test]
fn select_by_every_aid() {
    for aid in AIDS {
        let mut client = Client::new(warifu_card::Quirks::STRICT);
        let command = [&[0, 0xa4, 4, 0, aid.len() as u8], aid, &[0]].concat();
        let information = client.raw(&command);
        assert_eq!(information.data[4..], *aid);
        assert_eq!(information.data[..4], [0x6f, aid.len() as u8 + 2, 0x84, aid.len() as u8]);
    }
}

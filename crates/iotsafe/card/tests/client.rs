// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes as wolfSSL's client drives the card, every value checked by the p256 crate.
//!
//! Its commands come on channel 1, which it never opens, without Le, and with signatures behind
//! `33 00 40`. A TLS 1.3 handshake is 29 of them, a TLS 1.2 handshake 26.

mod common;

use chacha20::ChaCha20Rng;
use common::{Client, fields, init, key_data};
use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::elliptic_curve::sec1::ToSec1Point;
use rand_core::{Rng, SeedableRng};
use warifu_card::crypto::{Hash, hkdf_extract};
use warifu_card::object::slot;
use warifu_card::tlv::tag;
use warifu_card::{Quirks, StatusWord};

/// The other end: the server, its chain, its ephemeral key.
struct Peer {
    secret: p256::SecretKey,
}

impl Peer {
    fn new(rng: &mut ChaCha20Rng) -> Peer {
        loop {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            if let Ok(secret) = p256::SecretKey::from_slice(&bytes) {
                return Peer { secret };
            }
        }
    }

    fn point(&self) -> Vec<u8> {
        self.secret.public_key().to_sec1_point(false).as_bytes().to_vec()
    }

    fn sign(&self, digest: &[u8]) -> Vec<u8> {
        let key = SigningKey::from(&self.secret);
        let signature: Signature = key.sign_prehash(digest).unwrap();
        signature.to_bytes().to_vec()
    }

    fn shared(&self, point: &[u8]) -> Vec<u8> {
        let own = p256::PublicKey::from_sec1_bytes(point).unwrap();
        self.secret.diffie_hellman(&own).raw_secret_bytes().to_vec()
    }
}

/// wolfSSL's client on a card of its profile.
fn wolfssl() -> Client {
    let mut client = Client::new(Quirks::WOLFSSL);
    client.channel = 1;
    assert_eq!(client.select().sw, StatusWord::OK);
    client.sent.clear();
    client
}

fn done(client: &mut Client, ins: u8, p1: u8, p2: u8, data: &[u8]) -> Vec<u8> {
    let answer = client.send(ins, p1, p2, data);
    assert_eq!(answer.sw, StatusWord::OK, "{ins:02x} {p1:02x} {p2:02x} {data:02x?}");
    answer.data
}

/// Three commands: open, write, close.
fn put_public_key(client: &mut Client, id: u8, point: &[u8]) {
    done(client, 0x24, 0, 2, &[0x85, 1, id]);
    done(client, 0xd8, 0x80, 2, &key_data(point));
    done(client, 0x24, 1, 2, &[]);
}

/// Six commands: the key, then open, verify, close.
fn verify(client: &mut Client, signer: &Peer, digest: &[u8], signature: &[u8]) -> StatusWord {
    let id = slot::PEER_KEY;
    put_public_key(client, id, &signer.point());
    done(client, 0x2c, 0, 1, &init(tag::PUBLIC_KEY_ID, id, 3, 1));
    let mut text = fields(&[(tag::FINAL_HASH, digest)]);
    text.extend([0x33, 0, 64]);
    text.extend_from_slice(signature);
    let answer = client.send(0x2d, 0x80, 1, &text);
    done(client, 0x2c, 1, 1, &[]);
    answer.sw
}

/// Three commands: open, sign, close.
fn sign(client: &mut Client, digest: &[u8]) -> Vec<u8> {
    done(client, 0x2a, 0, 1, &init(tag::PRIVATE_KEY_ID, slot::CLIENT_KEY, 3, 1));
    let answer = done(client, 0x2b, 0x80, 1, &fields(&[(tag::FINAL_HASH, digest)]));
    done(client, 0x2a, 1, 1, &[]);
    assert_eq!(answer[..3], [0x33, 0, 64]);
    answer[3..].to_vec()
}

/// One command: the ephemeral key pair's public half.
fn generate(client: &mut Client) -> Vec<u8> {
    let answer = done(client, 0xb9, 0, 0, &[0x84, 1, slot::ECDH_PAIR]);
    let id = slot::ECDH_PAIR;
    let head = [0x84, 1, id, 0x85, 1, id, 0x34, 0x45, 0x49, 0x43, 0x86, 0x41];
    assert_eq!(answer[..head.len()], head);
    answer[head.len()..].to_vec()
}

/// Four commands: the peer's key, then Diffie-Hellman.
fn agree(client: &mut Client, peer: &Peer) -> Vec<u8> {
    put_public_key(client, slot::PEER_KEY, &peer.point());
    done(client, 0x46, 0, 0, &[0x84, 1, slot::ECDH_PAIR, 0x85, 1, slot::PEER_KEY])
}

fn extract(client: &mut Client, salt: &[u8], secret: &[u8]) -> Vec<u8> {
    let parts = [(tag::SECRET_VALUE, secret), (tag::SALT, salt), (tag::HASH, &[0, 1])];
    let prk = done(client, 0x4a, 0, 0, &fields(&parts));
    assert_eq!(prk, hkdf_extract(Hash::Sha256, salt, secret).expose());
    prk
}

fn count(client: &Client, ins: u8) -> usize {
    client.sent.iter().filter(|sent| **sent == ins).count()
}

fn client_key(client: &Client) -> VerifyingKey {
    let point = client.card.export_public_key(&[slot::CLIENT_KEY]).unwrap();
    VerifyingKey::from_sec1_bytes(point.bytes()).unwrap()
}

#[test]
fn tls_13_handshake_takes_29_commands() {
    let mut client = wolfssl();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let [root, issuer, server, ephemeral] = [(); 4].map(|()| Peer::new(&mut rng));
    let own = generate(&mut client);
    let early = extract(&mut client, &[0; 32], &[0; 32]);
    let shared = agree(&mut client, &ephemeral);
    assert_eq!(shared, ephemeral.shared(&own));
    let handshake = extract(&mut client, &early, &shared);
    // The chain and CertificateVerify: SHA-256, and a SHA-384 that is declared as SHA-256.
    for (signer, hash) in [(&root, Hash::Sha384), (&issuer, Hash::Sha256), (&server, Hash::Sha256)]
    {
        let digest = hash.digest(b"certificate");
        let sw = verify(&mut client, signer, &digest, &signer.sign(&digest));
        assert_eq!(sw, StatusWord::OK);
    }
    extract(&mut client, &handshake, &[0; 32]);
    let digest = Hash::Sha256.digest(b"CertificateVerify");
    let signature = Signature::from_slice(&sign(&mut client, &digest)).unwrap();
    client_key(&client).verify_prehash(&digest, &signature).unwrap();

    let counts = [0x24, 0xd8, 0x2c, 0x2d, 0x4a, 0x2a, 0x2b, 0xb9, 0x46];
    let counts = counts.map(|ins| count(&client, ins));
    assert_eq!(counts, [8, 4, 6, 3, 3, 2, 1, 1, 1]);
    assert_eq!(client.sent.len(), 29);
}

#[test]
fn tls_12_handshake_takes_26_commands() {
    let mut client = wolfssl();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let [root, issuer, server, ephemeral] = [(); 4].map(|()| Peer::new(&mut rng));
    for signer in [&root, &issuer, &server] {
        let digest = Hash::Sha512.digest(b"certificate or ServerKeyExchange");
        let sw = verify(&mut client, signer, &digest, &signer.sign(&digest));
        assert_eq!(sw, StatusWord::OK);
    }
    let own = generate(&mut client);
    assert_eq!(agree(&mut client, &ephemeral), ephemeral.shared(&own));
    let digest = Hash::Sha256.digest(b"CertificateVerify");
    let signature = Signature::from_slice(&sign(&mut client, &digest)).unwrap();
    client_key(&client).verify_prehash(&digest, &signature).unwrap();
    assert_eq!(client.sent.len(), 26);
}

#[test]
fn invalid_signature_keeps_the_session() {
    let mut client = wolfssl();
    let peer = Peer::new(&mut ChaCha20Rng::seed_from_u64(4));
    let digest = Hash::Sha256.digest(b"certificate");
    let mut signature = peer.sign(&digest);
    signature[40] ^= 1;
    assert_eq!(verify(&mut client, &peer, &digest, &signature), StatusWord::BAD_SIGNATURE);
    signature[40] ^= 1;
    assert_eq!(verify(&mut client, &peer, &digest, &signature), StatusWord::OK);
}

/// Orange's client: opens a channel, reads the application by position, closes a session before
/// it opens one, sends again after 6Cxx.
#[test]
fn orange_client() {
    let mut client = Client::new(Quirks::ORANGE);
    assert_eq!(client.raw(&[0, 0x70, 0, 0, 1]).data, [1]);
    client.channel = 1;
    assert_eq!(client.select().sw, StatusWord::OK);
    let again = client.raw(&[1, 0xcb, 0, 0, 0x44]).sw;
    assert_eq!(again.0 >> 8, 0x6c);
    let application = client.raw(&[1, 0xcb, 0, 0, again.0 as u8]).data;
    assert_eq!(application.len(), usize::from(again.0 as u8));
    let id = usize::from(application[4]) - 1;
    assert_eq!((application[0], application[3]), (0x10, 0x11));
    let mut tags = Vec::new();
    let mut rest = &application[5 + id..];
    while let [tag, length, value @ ..] = rest {
        tags.push(*tag);
        rest = &value[usize::from(*length)..];
    }
    assert_eq!(tags, [0xb1, 0xb2, 0xb3, 0xb4, 0x90, 0x91, 0x92, 0x93, 0x94, 0xb7]);

    assert_eq!(client.send(0x2a, 1, 1, &[]).sw, StatusWord::CONDITIONS);
    client.get(0x2a, 0, 1, &init(tag::PRIVATE_KEY_ID, slot::CLIENT_KEY, 3, 1));
    let digest = Hash::Sha256.digest(b"text");
    let signature = client.get(0x2b, 0x80, 1, &fields(&[(tag::FINAL_HASH, &digest)]));
    assert_eq!(signature[..2], [0x33, 0x40]);
    let signature = Signature::from_slice(&signature[2..]).unwrap();
    client_key(&client).verify_prehash(&digest, &signature).unwrap();
    client.get(0x2a, 1, 1, &[]);

    // In a reader it sends a 00 behind the data, and then Le if there is one.
    let read = [0x81, 0xcd, 0, 0, 3, 0x85, 1, slot::CLIENT_KEY];
    let exact = client.raw(&[&read[..], &[0]].concat());
    assert_eq!(exact.sw, StatusWord::OK);
    assert_eq!(client.raw(&[&read[..], &[0, 0]].concat()), exact);
    assert_eq!(client.raw(&[&read[..], &[0, 0, 0]].concat()).sw, StatusWord::WRONG_LENGTH);
    assert_eq!(client.raw(&[&read[..], &[1, 0]].concat()).sw, StatusWord::WRONG_LENGTH);
    let mut strict = Client::selected(Quirks::STRICT);
    let refused = strict.raw(&[&[0x80][..], &read[1..], &[0, 0]].concat());
    assert_eq!(refused.sw, StatusWord::WRONG_LENGTH);
}

/// Thales' client: session 0, opened for each signature and never closed; files from where the last
/// answer ended until one is empty, and none longer than 255 bytes, which it asserts.
#[test]
fn thales_client() {
    let mut client = Client::selected(Quirks::THALES);
    let certificate: Vec<u8> = (0..600_u16).map(|byte| byte as u8).collect();
    client.card.write_file(&[slot::CLIENT_CERTIFICATE], &certificate).unwrap();
    let digest = Hash::Sha256.digest(b"text");
    for _ in 0..2 {
        client.get(0x2a, 0, 0, &init(tag::PRIVATE_KEY_ID, slot::CLIENT_KEY, 3, 1));
        client.get(0x2b, 0x80, 0, &fields(&[(tag::FINAL_HASH, &digest)]));
    }
    let mut read = Vec::new();
    loop {
        let [high, low] = (read.len() as u16).to_be_bytes();
        let part = client.get(0xb0, high, low, &[0x83, 1, slot::CLIENT_CERTIFICATE]);
        assert!(part.len() <= 255);
        if part.is_empty() {
            break;
        }
        read.extend(part);
    }
    assert_eq!(read, certificate);
    assert!(client.get(0xb0, 2, 0x58, &[0x83, 1, slot::CLIENT_CERTIFICATE]).is_empty());
    let application = client.get(0xcb, 0, 0, &[]);
    assert!(!application.contains(&0x11));
}

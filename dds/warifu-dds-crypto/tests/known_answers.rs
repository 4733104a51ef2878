// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every cipher's public known answers, in `vectors/`.

use std::fs;
use std::path::Path;

use warifu_dds_crypto::algorithm::Aead;
use warifu_dds_crypto::cipher::{Cipher, Tag};

/// One line of a file: a message that is authentic, or one that is not.
struct Answer {
    line: String,
    is_valid: bool,
    key: Vec<u8>,
    nonce: Vec<u8>,
    associated: Vec<u8>,
    message: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Tag,
}

fn answers(folder: &str) -> Vec<Answer> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(folder)
        .join("vectors.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(answer).collect()
}

fn answer(line: &str) -> Answer {
    let fields: Vec<&str> = line.split(' ').collect();
    let [result, key, nonce, associated, message, ciphertext, tag] = fields[..] else {
        panic!("{line}: expected seven fields");
    };
    assert!(["valid", "invalid"].contains(&result), "{line}");
    Answer {
        line: line.to_owned(),
        is_valid: result == "valid",
        key: octets(key),
        nonce: octets(nonce),
        associated: octets(associated),
        message: octets(message),
        ciphertext: octets(ciphertext),
        tag: octets(tag).try_into().expect("a tag of 16 B"),
    }
}

fn octets(hex: &str) -> Vec<u8> {
    if hex == "-" {
        return Vec::new();
    }
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|p| u8::from_str_radix(p, 16).ok()))
        .map(|octet| octet.unwrap_or_else(|| panic!("{hex}: expected hexadecimal")))
        .collect()
}

/// Holds the cipher against a folder's answers; gives how many were authentic and not.
fn check(folder: &str, aead: impl Fn(usize) -> Aead) -> (usize, usize) {
    let (mut valid, mut invalid) = (0, 0);
    for answer in answers(folder) {
        let cipher = Cipher::new(aead(answer.key.len()), &answer.key).expect("a key's length");
        let mut content = answer.ciphertext.clone();
        let opened = cipher.open(&answer.nonce, &answer.associated, &mut content, &answer.tag);
        assert_eq!(opened.is_ok(), answer.is_valid, "{}", answer.line);
        if !answer.is_valid {
            invalid += 1;
            continue;
        }
        valid += 1;
        assert_eq!(content, answer.message, "{}", answer.line);
        let tag = cipher.seal(&answer.nonce, &answer.associated, &mut content);
        assert_eq!(content, answer.ciphertext, "{}", answer.line);
        assert_eq!(tag, Some(answer.tag), "{}", answer.line);
        if answer.message.is_empty() {
            assert_eq!(cipher.sign(&answer.nonce, &answer.associated), Some(answer.tag));
        }
    }
    (valid, invalid)
}

const fn aes(key_bytes: usize) -> Aead {
    if key_bytes == 16 { Aead::Aes128Gcm } else { Aead::Aes256Gcm }
}

#[test]
fn aes_gcm() {
    assert_eq!(check("wycheproof-aes-gcm", aes), (79, 54));
}

#[test]
fn aes_gcm_of_nists_validation() {
    assert_eq!(check("nist-aes-gcm", aes), (150, 50));
}

#[test]
fn aes_gmac() {
    assert_eq!(check("wycheproof-aes-gmac", aes), (30, 108));
}

#[test]
fn aegis_128l() {
    assert_eq!(check("wycheproof-aegis-128l", |_| Aead::Aegis128L), (367, 112));
}

#[test]
fn aegis_256() {
    assert_eq!(check("wycheproof-aegis-256", |_| Aead::Aegis256), (360, 112));
}

#[test]
fn ascon_aead128() {
    assert_eq!(check("wycheproof-ascon-aead128", |_| Aead::AsconAead128), (128, 124));
}

#[test]
fn ascon_aead128_of_nists_competition() {
    assert_eq!(check("ascon-kat-aead128", |_| Aead::AsconAead128), (137, 0));
}

#[test]
fn chacha20_poly1305() {
    assert_eq!(check("wycheproof-chacha20-poly1305", |_| Aead::ChaCha20Poly1305), (256, 60));
}

#[test]
fn deoxys_ii_128() {
    assert_eq!(check("deoxys-ii-128", |_| Aead::DeoxysII128), (8, 0));
}

#[test]
fn a_tag_with_any_bit_changed_is_refused() {
    for aead in Aead::ALL {
        let cipher = Cipher::new(aead, &vec![3; aead.key_bytes()]).expect("a key");
        let nonce = vec![5; aead.nonce_bytes()];
        for length in [0, 1, 16, 100] {
            let mut sealed = vec![9; length];
            let tag = cipher.seal(&nonce, b"associated", &mut sealed).expect("sealed");
            for bit in 0..128 {
                let mut changed = tag;
                changed[bit / 8] ^= 1 << (bit % 8);
                let mut content = sealed.clone();
                let opened = cipher.open(&nonce, b"associated", &mut content, &changed);
                assert!(opened.is_err(), "{aead:?}, {length} B, bit {bit}");
            }
            assert!(cipher.open(&nonce, b"associated", &mut sealed, &tag).is_ok());
        }
    }
}

#[test]
fn keys_and_nonces_of_other_lengths_are_refused() {
    for aead in Aead::ALL {
        for length in (0..40).filter(|length| *length != aead.key_bytes()) {
            assert!(Cipher::new(aead, &vec![1; length]).is_none(), "{aead:?} {length}");
        }
        let cipher = Cipher::new(aead, &vec![1; aead.key_bytes()]).expect("a key");
        for length in (0..40).filter(|length| *length != aead.nonce_bytes()) {
            assert_eq!(cipher.sign(&vec![0; length], b"message"), None, "{aead:?} {length}");
            assert!(cipher.verify(&vec![0; length], b"message", &[0; 16]).is_err());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tests of the card share: a client that sends commands, and known answers.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;
use std::path::Path;

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_card::tlv::{self, tag};
use warifu_card::{AIDS, Card, Quirks, Response, Settings, StatusWord};

/// A client of a card on one logical channel, with a record of what it sent.
pub struct Client {
    pub card: Card,
    pub rng: ChaCha20Rng,
    pub channel: u8,
    /// The instructions so far.
    pub sent: Vec<u8>,
}

impl Client {
    /// On the basic channel of a card with the usual slots, nothing selected.
    pub fn new(quirks: Quirks) -> Client {
        let settings = Settings { quirks, ..Settings::default() };
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let card = Card::with_usual_slots(settings, &mut rng).unwrap();
        Client { card, rng, channel: 0, sent: Vec::new() }
    }

    /// The same with the applet selected.
    pub fn selected(quirks: Quirks) -> Client {
        let mut client = Client::new(quirks);
        assert_eq!(client.select().sw, StatusWord::OK);
        client
    }

    pub fn raw(&mut self, command: &[u8]) -> Response {
        self.sent.push(command[1]);
        self.card.transmit(command, &mut self.rng)
    }

    /// Without Le.
    pub fn send(&mut self, ins: u8, p1: u8, p2: u8, data: &[u8]) -> Response {
        let mut command = vec![0x80 | self.channel, ins, p1, p2];
        command.push(data.len() as u8);
        command.extend_from_slice(data);
        self.raw(&command)
    }

    /// With Le = 00.
    pub fn ask(&mut self, ins: u8, p1: u8, p2: u8, data: &[u8]) -> Response {
        let mut command = vec![0x80 | self.channel, ins, p1, p2];
        if !data.is_empty() {
            command.push(data.len() as u8);
            command.extend_from_slice(data);
        }
        command.push(0);
        self.raw(&command)
    }

    /// With Le = 00, and it must succeed.
    pub fn get(&mut self, ins: u8, p1: u8, p2: u8, data: &[u8]) -> Vec<u8> {
        let answer = self.ask(ins, p1, p2, data);
        assert_eq!(answer.sw, StatusWord::OK, "{ins:02x} {p1:02x} {p2:02x} {data:02x?}");
        answer.data
    }

    pub fn select(&mut self) -> Response {
        let command = [&[self.channel, 0xa4, 4, 0, AIDS[0].len() as u8], AIDS[0]].concat();
        self.raw(&command)
    }
}

/// What INIT carries: key, mode, hash, ECDSA.
pub fn init(id_tag: u8, id: u8, mode: u8, hash: u8) -> Vec<u8> {
    let parts: [(u8, &[u8]); 4] =
        [(id_tag, &[id]), (tag::MODE, &[mode]), (tag::HASH, &[0, hash]), (tag::SIGNATURE, &[4])];
    fields(&parts)
}

pub fn fields(parts: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|(tag, value)| tlv::push(&mut out, *tag, value));
    out
}

/// `34 { 49 { 86 { point } } }`.
pub fn key_data(point: &[u8]) -> Vec<u8> {
    tlv::field(0x34, &tlv::field(0x49, &tlv::field(0x86, point)))
}

/// The blocks of a file of known answers: `key = value` lines, blocks apart by empty lines.
pub fn vectors(folder: &str) -> Vec<BTreeMap<String, String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors");
    let text = std::fs::read_to_string(root.join(folder).join("vectors.txt")).unwrap();
    let block = |block: &str| -> BTreeMap<String, String> {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (key, value) = line.split_once(" =").unwrap();
                (key.to_owned(), value.trim().to_owned())
            })
            .collect()
    };
    text.split("\n\n").map(block).filter(|block| !block.is_empty()).collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().map(|byte| (byte as char).to_digit(16).unwrap() as u8).collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
}

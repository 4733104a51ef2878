// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are what a program types to the virtual modem. It answers in bounded length, its
//! sessions are channels of the card, and after a reset of its settings it is a modem as before.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use warifu_card::{Card, Settings};
use warifu_card_server::at::{Commands, Modem, Sim};

/// The card's longest answer as text, with what stands around it; a line may have several commands.
const SAID_BYTES_A_COMMAND: usize = 2 * 0x1_0002 + 100;

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let [commands, typed @ ..] = bytes else { return };
    let commands = if commands & 1 == 0 { Commands::All } else { Commands::Ccho };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut card = Card::new(Settings::default());
    let mut modem = Modem::new(commands);
    let mut talk = |modem: &mut Modem, byte: u8| {
        let line = modem.push(byte);
        let mut asked = 0;
        if let Some(line) = line {
            modem.obey(&line, &mut |apdu| {
                asked += 1;
                Sim::Answer(card.transmit(apdu, &mut rng).to_bytes())
            });
        }
        (modem.take_output(), asked)
    };
    for &byte in typed {
        let (said, asked) = talk(&mut modem, byte);
        assert!(said.len() <= (asked + 1) * SAID_BYTES_A_COMMAND, "{} B", said.len());
    }
    // The line that was begun ends; then all settings are those of the beginning, and the echo off.
    for &byte in b"\rAT&F\rATE0\r" {
        talk(&mut modem, byte);
    }
    let said: Vec<u8> = b"AT\r".iter().flat_map(|&byte| talk(&mut modem, byte).0).collect();
    assert_eq!(said, b"\r\nOK\r\n");
}

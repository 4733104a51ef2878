// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `spare_place STATE`: gives a virtual card two empty places for key pairs that last, ids 08 and
//! 09, as a card's maker would, for test suites that generate keys on the token.

use std::process::ExitCode;
use std::{env, error::Error, fs};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::{Card, KeySource};

fn main() -> ExitCode {
    match add_places() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spare_place: {error}");
            ExitCode::FAILURE
        }
    }
}

fn add_places() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a card's state")?;
    let mut card = Card::from_bytes(&fs::read(&path)?)?;
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    for id in [8, 9] {
        let name = Name::slot(id, "", access::READ | access::UPDATE);
        // Nothing is drawn from it: the places are empty.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        card.add_key_pair(name, attributes, KeySource::Empty, &mut rng)?;
    }
    fs::write(&path, card.to_bytes())?;
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of all lengths, from cards that give 256 or 255 bytes at once, and tell or do not tell how
//! long a file is.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_card::object::slot;
use warifu_card::{ATR, Card, Quirks, Settings};
use warifu_iotsafe_client::transport::Local;
use warifu_iotsafe_client::{CardToken, Options, Token};

#[test]
fn files_of_all_lengths_from_every_profile() {
    let soon = || Instant::now() + Duration::from_secs(20);
    for (name, quirks) in Quirks::PROFILES {
        for length in [1, 254, 255, 256, 257, 509, 510, 511, 512, 513, 765, 768, 1200] {
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let settings = Settings { quirks, ..Settings::default() };
            let mut card = Card::with_usual_slots(settings, &mut rng).unwrap();
            let content: Vec<u8> = (0..length).map(|at: u16| (at % 251) as u8).collect();
            card.write_file(&[slot::CLIENT_CERTIFICATE], &content).unwrap();
            let card = Arc::new(Mutex::new((card, rng)));
            let exchange = move |apdu: &[u8]| {
                let (card, rng) = &mut *card.lock().unwrap();
                card.transmit(apdu, rng).to_bytes()
            };
            let local = Local::new(exchange, || ATR.to_vec());
            let mut token = CardToken::new(Box::new(local), Options::default());
            let files = token.objects(soon()).unwrap().files;
            let file = files.iter().find(|file| file.id == [slot::CLIENT_CERTIFICATE]).unwrap();
            for size_bytes in [file.size_bytes, None] {
                let file = warifu_iotsafe_client::File { size_bytes, ..file.clone() };
                let read = token.read_file(&file, soon()).unwrap();
                assert_eq!(read, content, "{name} {length} {size_bytes:?}");
            }
        }
    }
}

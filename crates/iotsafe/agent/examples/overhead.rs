// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the card's signature takes by itself, and C_SignInit and C_Sign of the module around a card
//! in the same process. One number a line, ns: `own N` and `in_process N`, turn by turn.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use cryptoki_sys::*;
use rand_core::SeedableRng;
use warifu_card::{ATR, Card, Reset, Settings};
use warifu_iotsafe_client::transport::Local;
use warifu_iotsafe_client::{CardToken, Options, Token};
use warifu_pkcs11::functions::{general_purpose, object_management, session_management, signing};
use warifu_pkcs11::mechanism::{Mechanism, Parameter};
use warifu_pkcs11::output::BufferSize;
use warifu_pkcs11::slot::SlotConfig;
use warifu_pkcs11::template::{self, Template};

type Own = Arc<Mutex<Duration>>;

fn token(own: &Own) -> CardToken {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let card = Card::with_usual_slots(Settings::default(), &mut rng).expect("the usual slots");
    let card = Arc::new(Mutex::new((card, rng)));
    let (own, other) = (Arc::clone(own), Arc::clone(&card));
    let exchange = move |apdu: &[u8]| {
        let (card, rng) = &mut *card.lock().expect("no panic before");
        let start = Instant::now();
        let answer = card.transmit(apdu, rng).to_bytes();
        *own.lock().expect("no panic before") += start.elapsed();
        answer
    };
    let reset = move || {
        other.lock().expect("no panic before").0.reset(Reset::Cold);
        ATR.to_vec()
    };
    CardToken::new(Box::new(Local::new(exchange, reset)), Options::default())
}

fn main() -> io::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1000_u32);
    let own = Own::default();
    let in_token = Arc::clone(&own);
    general_purpose::provide(Box::new(move || {
        let config = SlotConfig {
            location: "local".to_owned(),
            label: None,
            card_hashes: false,
            replace_keys: false,
            timeout: Duration::from_secs(10),
        };
        vec![(config, Box::new(token(&in_token)) as Box<dyn Token>)]
    }));
    let failed = |rv: warifu_pkcs11::rv::Rv| io::Error::other(warifu_pkcs11::rv::name(rv.0));
    general_purpose::initialise(Default::default()).map_err(failed)?;
    let library = general_purpose::current().map_err(failed)?;
    let handle =
        session_management::open_session(&library, 0, CKF_SERIAL_SESSION).map_err(failed)?;
    let wanted = Template::new(vec![(CKA_CLASS, template::number(CKO_PRIVATE_KEY))]);
    object_management::find_objects_init(&library, handle, &wanted.map_err(failed)?)
        .map_err(failed)?;
    let key = object_management::find_objects(&library, handle, 1).map_err(failed)?[0];
    object_management::find_objects_final(&library, handle).map_err(failed)?;
    let mechanism = Mechanism { kind: CKM_ECDSA, parameter: Parameter::None };
    let mut out = io::stdout().lock();
    for turn in 0..count {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&turn.to_be_bytes());
        *own.lock().expect("no panic before") = Duration::ZERO;
        let start = Instant::now();
        signing::sign_init(&library, handle, Some(&mechanism), key).map_err(failed)?;
        signing::sign(&library, handle, &digest, BufferSize(Some(64))).map_err(failed)?;
        let all = start.elapsed();
        writeln!(out, "own {}", own.lock().expect("no panic before").as_nanos())?;
        writeln!(out, "in_process {}", all.as_nanos())?;
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ten thousand signatures through module, socket and agent, under faults of every kind: on a
//! virtual clock the hours of waiting take none.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Bench, PIN, World, locked};
use cryptoki_sys::*;
use warifu_agent_protocol::AgentClient;
use warifu_agent_protocol::AgentToken;
use warifu_card::PinScope;
use warifu_card::faults::{Plan, Rates};
use warifu_model::Nanos;
use warifu_os::{Clock, VirtualClock};
use warifu_pkcs11::functions::{general_purpose, object_management, session_management, signing};
use warifu_pkcs11::library::Library;
use warifu_pkcs11::mechanism::{Mechanism, Parameter};
use warifu_pkcs11::output::{BufferSize, Output};
use warifu_pkcs11::rv::{self, Rv};
use warifu_pkcs11::slot::SlotConfig;
use warifu_pkcs11::template::{self, Template};

/// In all; half with late answers that come in time, half with some that do not.
const SIGNATURES: u32 = 10_000;
/// What one C_ call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The errors that C_SignInit and C_Sign may end with here; all others are a mistake of ours.
const DEFINITE: [CK_RV; 4] =
    [CKR_DEVICE_ERROR, CKR_DEVICE_REMOVED, CKR_TOKEN_NOT_PRESENT, CKR_TOKEN_NOT_RECOGNIZED];

fn rates(late_by: Duration) -> Rates {
    Rates {
        lost: 0.02,
        late: 0.02,
        late_by: Nanos(late_by.as_nanos() as u64),
        flipped: 0.03,
        wrong_status: 0.02,
        removed: 0.01,
        reset: 0.02,
        power_cut: 0.02,
    }
}

#[test]
fn faults_give_correct_signatures_or_definite_errors() {
    let late = [Duration::from_secs(1), Duration::from_secs(5)];
    let benches = late.map(|late_by| {
        let plan = Plan::Rates(rates(late_by));
        let world = World::new(Some(PinScope::Signing), plan, late_by.as_secs());
        Bench::new(world, Some(PIN), Vec::new())
    });
    let paths: Vec<_> = benches.iter().map(|bench| bench.path.clone()).collect();
    assert!(general_purpose::provide(Box::new(move || {
        let slots = paths.iter().map(|path| {
            let config = SlotConfig {
                location: "agent".to_owned(),
                label: None,
                card_hashes: false,
                replace_keys: false,
                timeout: TIMEOUT,
            };
            let token = AgentToken::new(AgentClient::new(path, None));
            (config, Box::new(token) as Box<dyn warifu_iotsafe_client::Token>)
        });
        slots.collect()
    })));
    general_purpose::initialise(Default::default()).unwrap();
    let library = general_purpose::current().unwrap();
    let mut results: BTreeMap<&str, u32> = BTreeMap::new();
    for (slot, bench) in benches.iter().enumerate() {
        run(&library, slot as CK_SLOT_ID, bench, &mut results);
        let world = bench.world();
        let counts = world.card.counts();
        println!("late by {:?}: {} commands, faults {counts:?}", late[slot], world.commands);
        println!("retries {}", bench.metric("warifu_agent_retries_total{card=\"card\"}"));
        assert_eq!(counts.len(), 8, "every kind of fault: {counts:?}");
        assert_eq!(world.tries_left(), 3, "the right PIN costs no try");
    }
    println!("results of {SIGNATURES}: {results:?}");
    let signed = results["CKR_OK"];
    assert_eq!(results.values().sum::<u32>(), SIGNATURES);
    assert!(signed > SIGNATURES * 8 / 10 && signed < SIGNATURES, "{results:?}");
    general_purpose::finalise().unwrap();
}

/// Half of the signatures, with the card in one slot.
fn run(
    library: &Library,
    slot: CK_SLOT_ID,
    bench: &Bench,
    results: &mut BTreeMap<&'static str, u32>,
) {
    let point = bench.world().card.card().export_public_key(&[1]).unwrap();
    let mut open: Option<(CK_SESSION_HANDLE, CK_OBJECT_HANDLE)> = None;
    let mut done = 0;
    while done < SIGNATURES / 2 {
        let (session, key) = match open {
            Some(open) => open,
            None => match find(library, slot) {
                Ok(found) => *open.insert(found),
                // The card could not be read; the next signature tries again.
                Err(Rv(rv)) => {
                    assert!(DEFINITE.contains(&rv), "{}", rv::name(rv));
                    continue;
                }
            },
        };
        done += 1;
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&done.to_be_bytes());
        let start = bench.clock.now();
        let result = sign(library, session, key, &digest);
        let took = bench.clock.now() - start;
        assert!(took <= TIMEOUT, "signature {done} took {took:?}");
        *results.entry(name(&result)).or_default() += 1;
        match result {
            Ok(signature) => assert!(point.verify(&digest, &signature), "signature {done}"),
            Err(Rv(rv)) => assert!(DEFINITE.contains(&rv), "signature {done}: {}", rv::name(rv)),
        }
        if done.is_multiple_of(100) {
            close(bench);
        }
    }
    let (session, _) = open.unwrap();
    library.close_session(session).unwrap();
    assert_eq!(library.session_counts(slot), (0, 0));
}

/// After some idle time nothing is open on the card.
fn close(bench: &Bench) {
    for _ in 0..200 {
        bench.clock.advance(bench.holder().settings.idle_close);
        bench.holder().tick();
    }
    bench.holder().close(bench.clock.now() + TIMEOUT);
    assert_eq!(bench.world().open_channels(), 0);
}

fn name(result: &Result<[u8; 64], Rv>) -> &'static str {
    result.map_or_else(|Rv(rv)| rv::name(rv), |_| "CKR_OK")
}

fn find(library: &Library, slot: CK_SLOT_ID) -> Result<(CK_SESSION_HANDLE, CK_OBJECT_HANDLE), Rv> {
    let handle = session_management::open_session(library, slot, CKF_SERIAL_SESSION)?;
    let wanted =
        Template::new(vec![(CKA_CLASS, template::number(CKO_PRIVATE_KEY)), (CKA_ID, vec![1])])?;
    let found = object_management::find_objects_init(library, handle, &wanted)
        .and_then(|()| object_management::find_objects(library, handle, 1))
        .and_then(|found| object_management::find_objects_final(library, handle).map(|()| found));
    match found.as_deref() {
        Ok([key]) => Ok((handle, *key)),
        Ok(other) => panic!("{} keys", other.len()),
        Err(rv) => {
            library.close_session(handle)?;
            Err(*rv)
        }
    }
}

fn sign(
    library: &Library,
    session: CK_SESSION_HANDLE,
    key: CK_OBJECT_HANDLE,
    digest: &[u8],
) -> Result<[u8; 64], Rv> {
    let mechanism = Mechanism { kind: CKM_ECDSA, parameter: Parameter::None };
    signing::sign_init(library, session, Some(&mechanism), key)?;
    match signing::sign(library, session, digest, BufferSize(Some(64)))? {
        Output::Bytes(bytes) => Ok(bytes[..].try_into().unwrap()),
        _ => panic!("no signature"),
    }
}

#[test]
fn late_answer_on_the_line_reaches_the_next_command() {
    // Or else the run above would show nothing of the resets.
    use warifu_iotsafe_client::Transport;
    let script = [None, Some(warifu_card::faults::Fault::LateAnswer { by: Nanos(5_000_000_000) })];
    let world = World::new(None, Plan::Script(script.into_iter().collect()), 1);
    let clock = VirtualClock::starting_at(common::UNIX_START);
    let mut line = common::Line {
        world: Arc::<Mutex<World>>::clone(&world),
        clock: clock.clone(),
        resets: true,
    };
    let select = [0, 0xa4, 4, 0x0c, 7, 0xa0, 0, 0, 5, 0x59, 0, 0x10];
    let end = || clock.now() + Duration::from_secs(3);
    assert!(line.exchange(&select, end()).is_ok());
    assert!(line.exchange(&[0x80, 0x84, 0, 0, 8], end()).is_err());
    let answer = line.exchange(&[0x80, 0x84, 0, 0, 16], end()).unwrap();
    assert_eq!(answer.len(), 8 + 2, "the late one");
    assert_eq!(locked(&world).commands, 2);
}

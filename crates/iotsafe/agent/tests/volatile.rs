// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two programs at one agent whose card has one container for a volatile key pair: each slot here
//! is a program's, with a connection of its own. Alone in its process: the module is one.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::{Bench, World};
use cryptoki_sys::*;
use warifu_agent_protocol::{AgentClient, AgentToken};
use warifu_card::faults::Plan;
use warifu_iotsafe_client::{Curve, Token};
use warifu_pkcs11::der;
use warifu_pkcs11::functions::{
    general_purpose, key_management, object_management, session_management,
};
use warifu_pkcs11::mechanism::{Mechanism, Parameter};
use warifu_pkcs11::rv::Rv;
use warifu_pkcs11::slot::SlotConfig;
use warifu_pkcs11::template::Template;

#[test]
fn volatile_container_in_use_and_given_back() {
    let world = World::new(None, Plan::Script(VecDeque::new()), 1);
    let bench = Bench::new(world, None, Vec::new());
    bench.idle();
    let path = bench.path.clone();
    general_purpose::provide(Box::new(move || {
        let slot = |_| {
            let config = SlotConfig {
                location: "agent".to_owned(),
                label: None,
                card_hashes: false,
                replace_keys: false,
                timeout: Duration::from_secs(20),
            };
            let token = AgentToken::new(AgentClient::new(&path, None));
            (config, Box::new(token) as Box<dyn Token>)
        };
        [0, 1].map(slot).into()
    }));
    general_purpose::initialise(Default::default()).unwrap();
    let library = general_purpose::current().unwrap();
    let open = |slot| session_management::open_session(&library, slot, CKF_SERIAL_SESSION).unwrap();
    let (one, other) = (open(0), open(1));
    let mechanism = Mechanism { kind: CKM_EC_KEY_PAIR_GEN, parameter: Parameter::None };
    let generate = |session, curve| {
        let public = Template::new(vec![(CKA_EC_PARAMS, der::ec_params(curve).to_vec())]).unwrap();
        let private = Template::default();
        key_management::generate_key_pair(&library, session, &mechanism, &public, &private)
    };
    let (public, private) = generate(one, Curve::Secp256r1).unwrap();
    assert_eq!(generate(other, Curve::Secp256r1), Err(Rv(CKR_DEVICE_MEMORY)));
    let none = generate(other, Curve::BrainpoolP256r1);
    assert_eq!(none, Err(Rv(CKR_TEMPLATE_INCONSISTENT)), "the card has no such container");

    object_management::destroy_object(&library, one, public).unwrap();
    assert_eq!(generate(other, Curve::Secp256r1), Err(Rv(CKR_DEVICE_MEMORY)));
    object_management::destroy_object(&library, one, private).unwrap();
    generate(other, Curve::Secp256r1).unwrap();
    assert_eq!(generate(one, Curve::Secp256r1), Err(Rv(CKR_DEVICE_MEMORY)));
    // The end of a session destroys its objects (PKCS#11 2.40 section 5.6).
    let second = open(1);
    session_management::close_session(&library, other).unwrap();
    generate(one, Curve::Secp256r1).unwrap();
    session_management::close_session(&library, second).unwrap();
}

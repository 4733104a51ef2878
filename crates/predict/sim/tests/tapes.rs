// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trial that is told from others has the event engine's outcome to the nanosecond.

mod common;

use proptest::prelude::*;
use warifu_model::Catalog;
use warifu_sim::{CaseModel, Outcome, Simulator, trial_seed};

/// A device whose times differ widely from call to call, so that what a party waits for comes now
/// before it has computed to its end, now after; and whose interface differs as well.
fn catalog() -> Catalog {
    let mut catalog = common::catalog("0.1 ms");
    let laws = [
        ("even", "{ quantiles = [\"0.02 ms\", \"0.2 ms\", \"0.5 ms\"] }"),
        ("wild", "{ quantiles = [\"0 ms\", \"1 ms\", \"4 ms\", \"70 ms\"] }"),
    ];
    for (name, law) in laws {
        common::add_device(&mut catalog, name, law, "");
    }
    // What a connection's computing has in common.
    let shared = "[speed]\nconnection = [0.5, 1, 3]\n";
    common::add_device(&mut catalog, "shared", laws[0].1, shared);
    catalog
}

/// Some case that tapes may tell.
fn any_case() -> impl Strategy<Value = (&'static str, String)> {
    let device = prop::sample::select(vec!["xeon-2-5-ghz-vm", "shared", "even", "wild"]);
    let link = (
        prop::sample::select(vec![
            "0 ms", "0.3 ms", "5 ms", "12 ms", "20 ms", "28 ms", "39 ms", "60 ms", "150 ms",
            "900 ms",
        ]),
        prop::sample::select(vec!["0 %", "2 %", "20 %"]),
        prop::sample::select(vec!["", "rate = \"60 kbit/s\"", "rate = \"1 Mbit/s\""]),
        prop::sample::select(vec!["", "", "jitter = [\"0 ms\", \"1 ms\", \"40 ms\"]"]),
        any::<bool>(),
        prop::sample::select(vec![3, 1000]),
        prop::sample::select(vec![576, 1500]),
    );
    let stack = (
        prop::sample::select(vec!["1.2", "1.3"]),
        prop::sample::select(vec!["full", "resumed"]),
        prop::sample::select(vec!["mutual", "server"]),
        prop::sample::select(vec![1, 3, 10]),
        any::<bool>(),
        prop::sample::select(vec!["software", "constant", "iot-safe-sakomoto"]),
        prop::sample::select(vec![846, 40_000]),
    );
    (device, link, stack).prop_map(|(device, link, stack)| {
        let (rtt, loss, rate, jitter, keep_order, queue, mtu) = link;
        let (tls, session, authentication, initcwnd, nagle, key_store, body) = stack;
        let settings = format!(
            "key_store = \"{key_store}\"\n\
             [link]\nprofile = \"loopback\"\nrtt = \"{rtt}\"\nloss = \"{loss}\"\n{rate}\n{jitter}\n\
             keep_order = {keep_order}\nqueue_packets = {queue}\nmtu = {mtu}\n\
             [stack]\nprotocol = \"https\"\ntls = \"{tls}\"\nsession = \"{session}\"\n\
             authentication = \"{authentication}\"\ninitcwnd = {initcwnd}\nnagle = {nagle}\n\
             [pattern]\nkind = \"request\"\nresponse_body = \"{body} B\"\n"
        );
        (device, settings)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Marks, stages and counters, whatever was run before.
    #[test]
    fn told_trials_are_the_event_engines((device, settings) in any_case(), seed: u64) {
        let catalog = catalog();
        let case = common::case_of(device, &settings, &catalog);
        let model = CaseModel::compile(&case, &catalog).unwrap();
        let (mut remembers, mut runs) = (Simulator::new(), Simulator::without_memory());
        let (mut told, mut run) = (Outcome::default(), Outcome::default());
        for trial in 0..400 {
            let seed = trial_seed(seed, &case.id(), trial);
            remembers.run(&model, seed, &mut told);
            runs.run(&model, seed, &mut run);
            prop_assert_eq!(&told, &run, "trial {}", trial);
        }
        prop_assert_eq!(runs.told(), 0);
    }
}

/// The share of trials that a case of so many needs no events for, %.
fn told(device: &str, settings: &str, trials: u64) -> f64 {
    let catalog = catalog();
    let case = common::case_of(device, settings, &catalog);
    let model = CaseModel::compile(&case, &catalog).unwrap();
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    for trial in 0..trials {
        simulator.run(&model, trial_seed(1, &case.id(), trial), &mut outcome);
    }
    simulator.told() as f64 * 100.0 / trials as f64
}

#[test]
fn most_trials_of_a_calibrated_machine() {
    let lossless = common::CALIBRATED.replace("2 %", "0 %");
    let share = told(common::CALIBRATED_DEVICE, &lossless, 20_000);
    assert!(share > 90.0, "{share} %");
    let share = told(common::CALIBRATED_DEVICE, common::CALIBRATED, 20_000);
    assert!(share > 60.0, "{share} %");
}

/// Whether an acknowledgement is delayed, and how the delay is adapted, is a matter of ticks where
/// answers come about 40 ms later; so it is of an answer without a certificate.
#[test]
fn most_trials_whose_acknowledgements_depend_on_ticks() {
    for rtt in ["10 ms", "20 ms", "24 ms", "40 ms", "60 ms"] {
        for (tls, session) in [("1.2", "full"), ("1.2", "resumed"), ("1.3", "resumed")] {
            let settings = common::CALIBRATED
                .replace("2 %", "0 %")
                .replace("60 ms", rtt)
                .replace("\"1.3\"", &format!("\"{tls}\""))
                .replace("\"full\"", &format!("\"{session}\""));
            let share = told(common::CALIBRATED_DEVICE, &settings, 2_000);
            assert!(share > 90.0, "{share} % at {rtt}, TLS {tls}, {session}");
        }
    }
}

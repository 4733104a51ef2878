// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds for every case and seed.

mod common;

use proptest::prelude::*;
use warifu_model::{Catalog, Metric, Stage};
use warifu_sim::{CaseModel, ConnectionOutcome, Outcome, Simulator, simulate_packets, trial_seed};

fn model(settings: &str, catalog: &Catalog) -> CaseModel {
    CaseModel::compile(&common::case(settings, catalog), catalog).unwrap()
}

/// The connections of some trials with these settings.
fn connections(settings: &str, seed: u64, trials: u64) -> Vec<ConnectionOutcome> {
    let catalog = common::catalog("70 us");
    let model = model(settings, &catalog);
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let run = |trial| {
        simulator.run(&model, seed.wrapping_add(trial), &mut outcome);
        outcome.connections.clone()
    };
    (0..trials).flat_map(run).collect()
}

/// The settings of some case, within all that a study can say of link, stack and pattern.
fn any_settings() -> impl Strategy<Value = String> {
    let loss = vec![
        "loss = \"0 %\"",
        "loss = \"2 %\"",
        "loss = \"20 %\"",
        "loss = { good_to_bad = \"2 %\", bad_to_good = \"30 %\", loss_good = \"0 %\", \
         loss_bad = \"60 %\" }",
    ];
    settings_over(loss, any::<bool>().boxed(), vec![3, 1000])
}

/// The same over a link that loses packets by one of these laws, may keep their order, and has room
/// for so many of them.
fn settings_over(
    loss: Vec<&'static str>,
    keep_order: BoxedStrategy<bool>,
    queue: Vec<u32>,
) -> impl Strategy<Value = String> {
    let link = (
        prop::sample::select(vec!["0 ms", "5 ms", "60 ms", "150 ms", "900 ms"]),
        prop::sample::select(loss),
        prop::sample::select(vec!["", "rate = \"60 kbit/s\"", "rate = \"1 Mbit/s\""]),
        prop::sample::select(vec!["", "jitter = [\"0 ms\", \"1 ms\", \"40 ms\"]"]),
        keep_order,
        prop::sample::select(queue),
        prop::sample::select(vec![576, 1500]),
    );
    let stack = (
        prop::sample::select(vec![
            "tls = \"1.2\"\nsession = \"full\"",
            "tls = \"1.2\"\nsession = \"ticket\"",
            "tls = \"1.3\"\nsession = \"full\"",
            "tls = \"1.3\"\nsession = \"psk_dhe_ke\"",
            "tls = \"1.3\"\nsession = \"0-rtt\"",
        ]),
        prop::sample::select(vec!["server", "mutual"]),
        prop::sample::select(vec![1, 3]),
        prop::sample::select(vec![1, 3, 10]),
        any::<bool>(),
        prop::sample::select(vec!["cubic", "reno"]),
    );
    let pattern = (prop::sample::select(vec![1, 4]), prop::sample::select(vec![846, 40_000]));
    let key_store = prop::sample::select(vec!["software", "constant", "iot-safe-sakomoto"]);
    (link, stack, pattern, key_store).prop_map(|(link, stack, pattern, key_store)| {
        let (rtt, loss, rate, jitter, keep_order, queue, mtu) = link;
        let (tls, authentication, chain, initcwnd, nagle, control) = stack;
        let (concurrent, body) = pattern;
        format!(
            "key_store = \"{key_store}\"\n[link]\nprofile = \"loopback\"\nrtt = \"{rtt}\"\n{loss}\n\
             {rate}\n{jitter}\nkeep_order = {keep_order}\nqueue_packets = {queue}\nmtu = {mtu}\n\
             [stack]\nprotocol = \"https\"\n{tls}\nauthentication = \"{authentication}\"\n\
             chain_length = {chain}\ninitcwnd = {initcwnd}\nnagle = {nagle}\n\
             congestion_control = \"{control}\"\n\
             [pattern]\nkind = \"request\"\nconcurrent = {concurrent}\n\
             response_body = \"{body} B\"\n"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Not a nanosecond is lost: the stages of every connection add up to its metric, and its
    /// parts to the whole, whatever was lost, queued, reordered or waited for.
    #[test]
    fn stages_add_up(settings in any_settings(), seed: u64) {
        let catalog = common::catalog("70 us");
        let model = model(&settings, &catalog);
        let mut simulator = Simulator::new();
        let mut outcome = Outcome::default();
        for trial in 0..8 {
            simulator.run(&model, seed.wrapping_add(trial), &mut outcome);
            for connection in outcome.connections.iter().filter(|connection| !connection.failed) {
                let total = connection.value(Metric::HttpsEstablishment);
                prop_assert_eq!(connection.stages.iter().sum::<u64>(), total);
                // One record is there as a whole: its end has no mark of its own.
                let passed = if settings.contains("846 B") { 4 } else { 5 };
                let marks = &connection.marks[..passed];
                prop_assert!(marks.is_sorted() || settings.contains("0-rtt"));
                prop_assert!(total > 0);
                prop_assert!(connection.value(Metric::PacketsLink) >= 4);
            }
        }
    }

    /// Time is put down to loss recovery only where something was lost: it can neither hide what
    /// the link or the programs took nor be hidden by it.
    #[test]
    fn nothing_lost_is_nothing_recovered(
        settings in settings_over(vec!["loss = \"0 %\""], Just(true).boxed(), vec![10_000]),
        seed: u64,
    ) {
        for connection in connections(&settings, seed, 4) {
            prop_assert!(!connection.failed);
            prop_assert_eq!(connection.stages[Stage::LossRecovery as usize], 0);
            let total = connection.value(Metric::HttpsEstablishment);
            prop_assert_eq!(connection.stages.iter().sum::<u64>(), total);
        }
    }

    /// Where packets are lost and keep their order, recovery takes time only if a segment is sent
    /// again.
    #[test]
    fn nothing_sent_again_is_nothing_recovered(
        settings in settings_over(vec!["loss = \"2 %\""], Just(true).boxed(), vec![10_000]),
        seed: u64,
    ) {
        for connection in connections(&settings, seed, 8).iter().filter(|of| !of.failed) {
            if connection.value(Metric::SegmentsRetransmitted) == 0 {
                prop_assert_eq!(connection.stages[Stage::LossRecovery as usize], 0);
            }
        }
    }

    /// The same seed gives the same trial, whatever the simulator did before.
    #[test]
    fn a_trial_depends_on_case_and_seed_alone(
        first in any_settings(), second in any_settings(), seed: u64,
    ) {
        let catalog = common::catalog("70 us");
        let (first, second) = (model(&first, &catalog), model(&second, &catalog));
        let (mut fresh, mut used) = (Outcome::default(), Outcome::default());
        Simulator::new().run(&first, seed, &mut fresh);
        let mut simulator = Simulator::new();
        for trial in 0..4 {
            simulator.run(&second, trial, &mut used);
        }
        simulator.run(&first, seed, &mut used);
        prop_assert_eq!(fresh, used);
    }
}

#[test]
fn losses_are_as_frequent_as_the_study_says() {
    let catalog = common::catalog("0 ms");
    let case = common::case(common::REFERENCE, &catalog);
    let model = CaseModel::compile(&case, &catalog).unwrap();
    let mut simulator = Simulator::new();
    let mut outcome = Outcome::default();
    let (mut late, trials) = (0, 20_000);
    for trial in 0..trials {
        simulator.run(&model, trial_seed(1, &case.seed_id(), trial), &mut outcome);
        late += u64::from(outcome.connections[0].marks[1] > 60_000_000);
    }
    // connect() is late if the SYN or the SYN-ACK is lost: 1 - 0.98^2 = 3.96 %, within five
    // standard deviations of 0.138 %.
    let share = late as f64 / trials as f64;
    assert!((share - 0.0396).abs() < 0.007, "{share}");
}

#[test]
fn a_shared_loop_serves_one_connection_after_the_other() {
    let catalog = common::catalog("1 ms");
    let settings = "key_store = \"constant\"\n[link]\nprofile = \"loopback\"\nrtt = \"10 ms\"\n\
                    [stack]\nprotocol = \"https\"\ntls = \"1.3\"\nauthentication = \"mutual\"\n\
                    [pattern]\nkind = \"request\"\nconcurrent = 3\n";
    let model = model(settings, &catalog);
    let mut outcome = Outcome::default();
    Simulator::new().run(&model, 1, &mut outcome);
    let mut totals: Vec<u64> = outcome.connections.iter().map(|c| c.marks[3] / 1_000_000).collect();
    totals.sort_unstable();
    // Each signature takes 476 ms of the client's one loop.
    assert!(totals[0] > 476 && totals[1] > 2 * 476 && totals[2] > 3 * 476, "{totals:?}");
    assert!(totals[2] < 3 * 476 + 200, "{totals:?}");
}

#[test]
fn workers_serve_side_by_side() {
    let catalog = common::catalog("5 ms");
    let settings = "key_store = \"constant\"\n[link]\nprofile = \"loopback\"\nrtt = \"10 ms\"\n\
                    [stack]\nprotocol = \"https\"\ntls = \"1.3\"\nauthentication = \"server\"\n\
                    [pattern]\nkind = \"request\"\nconcurrent = 8\n";
    let last = |workers| {
        let mut case = common::case(settings, &catalog);
        case.server.workers = workers;
        let model = CaseModel::compile(&case, &catalog).unwrap();
        let mut outcome = Outcome::default();
        Simulator::new().run(&model, 1, &mut outcome);
        outcome.connections.iter().map(|connection| connection.marks[3]).max().unwrap()
    };
    let (one, four, eight, many) = (last(1), last(4), last(8), last(100));
    // The client's eight connections share its one loop, which bounds what workers can save.
    assert!(one > four && four >= eight, "{one} {four} {eight}");
    assert_eq!(eight, many, "a worker that nobody needs changes nothing");
}

#[test]
fn a_script_drops_what_it_names_and_nothing_else() {
    let catalog = common::catalog("0 ms");
    let model = model(common::REFERENCE, &catalog);
    let events = simulate_packets(&model, &[0, 2], &[1], 7);
    let dropped = |heading| {
        let ours = events.iter().filter(|event| event.heading == heading);
        ours.enumerate().filter(|(_, event)| event.dropped).map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(dropped(warifu_sim::Heading::Up), [0, 2]);
    assert_eq!(dropped(warifu_sim::Heading::Down), [1]);
}

/// Where trials without loss repeat one another the simulator remembers them; it must make no
/// difference to the nanosecond, wherever the trial lies relative to the ticks.
#[test]
fn what_is_remembered_is_what_would_have_been() {
    let settings = [
        ("0 ms", common::REFERENCE.to_owned()),
        ("70 us", common::REFERENCE.to_owned()),
        ("9 ms", common::REFERENCE.to_owned()),
        ("70 us", common::REFERENCE.replace("60 ms", "150 ms")),
        ("70 us", common::REFERENCE.replace("60 ms", "2 ms")),
        ("13 ms", common::REFERENCE.replace("60 ms", "2 ms")),
        ("70 us", common::REFERENCE.replace("loss", "rate = \"60 kbit/s\"\nloss")),
        ("70 us", common::REFERENCE.replace("[stack]", "[stack]\nnagle = true\n")),
    ];
    for (time, settings) in settings {
        let catalog = common::catalog(time);
        let case = common::case(&settings, &catalog);
        let model = CaseModel::compile(&case, &catalog).unwrap();
        let mut remembering = Simulator::new();
        let (mut with, mut without) = (Outcome::default(), Outcome::default());
        for trial in 0..3_000 {
            let seed = trial_seed(3, &case.seed_id(), trial);
            remembering.run(&model, seed, &mut with);
            // A fresh one remembers nothing.
            Simulator::new().run(&model, seed, &mut without);
            assert_eq!(with, without, "{time} {settings} trial {trial}");
        }
    }
}

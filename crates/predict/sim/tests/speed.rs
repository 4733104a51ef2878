// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a connection's computing has in common, and what it costs after a rest.

mod common;

use std::path::Path;

use warifu_model::{Case, Catalog, ProfileKind, Stage, Study};
use warifu_sim::{CaseModel, ConnectionOutcome, Outcome, Simulator};

const TRIALS: u64 = 300;
const DEVICE: &str = "xeon-2-5-ghz-vm";

/// With the shipped device's profile as `change` makes it.
fn catalog(change: impl Fn(&str) -> String) -> Catalog {
    let mut catalog = common::catalog("1 ms");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../profiles/devices");
    let text = std::fs::read_to_string(root.join(DEVICE).with_extension("toml")).unwrap();
    let text = change(&text);
    catalog.add(ProfileKind::Device, DEVICE, &text, DEVICE).expect("a valid profile");
    catalog
}

fn with_speed(factors: &str) -> Catalog {
    catalog(|text| {
        let speed = format!("\n[speed]\nconnection = {factors}\n\n[[operation]]\n");
        text.replacen("\n[[operation]]\n", &speed, 1)
    })
}

fn case(settings: &str, catalog: &Catalog) -> Case {
    let text = format!(
        "name = \"test\"\nseed = 1\ntrials = 1\ndevice = \"{DEVICE}\"\nserver = \"{DEVICE}\"\n\
         link.profile = \"loopback\"\nlink.rtt = \"0 ms\"\n[stack]\nprotocol = \"https\"\n\
         tls = \"1.3\"\nauthentication = \"mutual\"\n{settings}"
    );
    let study = Study::parse(&text, "test.toml", catalog).unwrap_or_else(|error| panic!("{error}"));
    study.cases.into_iter().next().expect("a study has a case")
}

/// The connections of trials by the same seeds, whatever the case.
fn connections(settings: &str, catalog: &Catalog) -> Vec<ConnectionOutcome> {
    run(&CaseModel::compile(&case(settings, catalog), catalog).unwrap())
}

fn run(model: &CaseModel) -> Vec<ConnectionOutcome> {
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    (0..TRIALS)
        .map(|seed| {
            simulator.run(model, seed, &mut outcome);
            outcome.connections[0]
        })
        .collect()
}

fn median(connections: &[ConnectionOutcome], of: impl Fn(&ConnectionOutcome) -> u64) -> f64 {
    let mut values: Vec<u64> = connections.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// How much of the spread there is between the 5th and the 95th in a hundred, by the median.
fn spread(connections: &[ConnectionOutcome], of: impl Fn(&ConnectionOutcome) -> u64) -> f64 {
    let mut values: Vec<u64> = connections.iter().map(of).collect();
    values.sort_unstable();
    let at = |share: usize| values[values.len() * share / 100] as f64;
    (at(95) - at(5)) / at(50)
}

fn first(connection: &ConnectionOutcome) -> u64 {
    connection.marks[3]
}

#[test]
fn factor_of_one_changes_no_nanosecond() {
    let without = connections("", &catalog(str::to_owned));
    assert_eq!(connections("", &with_speed("[1]")), without);
    assert_eq!(connections("", &with_speed("[1.0, 1.0, 1.0]")), without);
}

#[test]
fn every_step_takes_the_factor() {
    let (one, two) = (connections("", &with_speed("[1]")), connections("", &with_speed("[2]")));
    for (before, after) in one.iter().zip(&two) {
        for stage in [Stage::ClientCompute, Stage::ServerCompute] {
            let [before, after] = [before, after].map(|of| of.stages[stage as usize]);
            // What overlaps on the way may change places between the two.
            assert!(before > 0 && after.abs_diff(2 * before) < before / 2, "{before} {after}");
        }
    }
    let ratio = median(&two, first) / median(&one, first);
    // All but the network's interfaces.
    assert!((1.85..=2.0).contains(&ratio), "{ratio}");
}

/// Steps nearly cancel; what they share does not.
#[test]
fn connections_spread_by_what_they_share() {
    let alone = connections("", &with_speed("[1]"));
    let shared = connections("", &with_speed("[0.9, 1, 1.3]"));
    let compute = |of: &ConnectionOutcome| of.stages[Stage::ClientCompute as usize];
    // From 0.91 to 1.27 of the median, and what the steps add.
    let wider = spread(&shared, compute) - spread(&alone, compute);
    assert!(wider > 0.15, "{wider}");
    let change = median(&shared, first) / median(&alone, first);
    assert!((change - 1.0).abs() < 0.05, "{change}");
}

#[test]
fn recorded_trials_are_the_same_to_the_nanosecond() {
    let catalog = with_speed("[0.9, 1, 1.3]");
    let case = case("", &catalog);
    let recorded = CaseModel::compile_to_record(&case, &catalog).unwrap();
    assert_eq!(run(&recorded), run(&CaseModel::compile(&case, &catalog).unwrap()));
}

/// A rest holds for all of a connection; a pause that is shorter, or none, leaves costs as they
/// are.
#[test]
fn costs_after_a_rest() {
    let rested = catalog(|text| {
        let sign = "\nname = \"server.sign\"\n";
        assert!(text.contains(sign));
        let text = text.replace(sign, &format!("{sign}rested = \"40 ms\"\n"));
        text.replacen("\nidle_threshold", "\nrest_threshold = \"300 ms\"\nidle_threshold", 1)
    });
    let usual = connections("", &rested);
    assert_eq!(usual, connections("", &catalog(str::to_owned)));
    assert_eq!(usual, connections("[pattern]\npause = \"299 ms\"\n", &rested));
    let after = connections("[pattern]\npause = \"600 ms\"\n", &rested);
    let longer = median(&after, first) - median(&usual, first);
    assert!((39.0e6..40.0e6).contains(&longer), "{longer}");
    let id = |settings: &str| case(settings, &rested).id();
    assert_ne!(id(""), id("[pattern]\npause = \"40 ms\"\n"));
}

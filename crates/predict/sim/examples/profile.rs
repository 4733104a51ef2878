// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the reference models for a profiler, or prints one trial packet by packet.
//!
//! `cargo run --release --example profile -- [TRIALS [MODEL [LOSS]]]`, where MODEL is `constant`
//! (every operation takes the same time, and a signature 476 ms) or `calibrated` (every cost is
//! drawn from a calibrated machine's profile), and LOSS is as a study has it, `2 %` by default; or
//! `-- packets [UP [DOWN]]` with comma-separated numbers of the packets to drop in each direction.

use std::time::Instant;

use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds, simulate_packets};

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let catalog = common::catalog("0 ms");
    if arguments.first().is_some_and(|word| word == "packets") {
        let case = common::case(common::REFERENCE, &catalog);
        let model = CaseModel::compile(&case, &catalog).expect("the reference model compiles");
        let drops = |index: usize| -> Vec<u64> {
            let list = arguments.get(index).map_or("", String::as_str);
            list.split(',').filter_map(|number| number.parse().ok()).collect()
        };
        for event in simulate_packets(&model, &drops(1), &drops(2), 1) {
            println!("{event}");
        }
        return;
    }
    let trials: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let loss = arguments.get(2).map_or("2 %", String::as_str);
    let case = match arguments.get(1).map(String::as_str) {
        None | Some("constant") => common::case(&common::REFERENCE.replace("2 %", loss), &catalog),
        Some("calibrated") => {
            let settings = common::CALIBRATED.replace("2 %", loss);
            common::case_of(common::CALIBRATED_DEVICE, &settings, &catalog)
        }
        Some(other) => panic!("the model is {other}: expected constant or calibrated"),
    };
    let begin = Instant::now();
    let model = CaseModel::compile(&case, &catalog).expect("the reference model compiles");
    let compiled = begin.elapsed().as_secs_f64();
    let mut simulator = Simulator::new();
    let mut outcome = Outcome::default();
    let mut values = Vec::with_capacity(trials as usize);
    let (begin, seeds) = (Instant::now(), TrialSeeds::new(1, &case.seed_id()));
    for trial in 0..trials {
        simulator.run(&model, seeds.of(trial), &mut outcome);
        let connection = &outcome.connections[0];
        if !connection.failed {
            values.push(connection.marks[3] as f64 / 1e6);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    values.sort_by(f64::total_cmp);
    let at = |p: f64| values[((values.len() as f64 * p) as usize).min(values.len() - 1)];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    println!(
        "{:.0} trials/s, {:.0} us to compile, {:.1} % told from others",
        trials as f64 / seconds,
        compiled * 1e6,
        simulator.told() as f64 * 100.0 / trials as f64
    );
    println!(
        "mean {mean:.1} P50 {:.1} P90 {:.1} P95 {:.1} P99 {:.1} P99.9 {:.1} ms, {} failed",
        at(0.5),
        at(0.9),
        at(0.95),
        at(0.99),
        at(0.999),
        trials as usize - values.len()
    );
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times the exact tier beside 50,000 trials of the event tier, in turn, and compares their noise
//! in P99 over as many seeds as there are runs.
//!
//! `cargo run --release --example exact -- [RUNS [LOSS]]`; prints one JSON object.

use std::time::{Duration, Instant};

use warifu_model::CaseId;
use warifu_sim::{Accuracy, Atom, CaseModel, Enumerated, Outcome, Simulator, TrialSeeds};

#[path = "../tests/common/mod.rs"]
mod common;

const TRIALS: u64 = 50_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runs: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(5);
    let loss = arguments.get(1).map_or("2 %", String::as_str);
    let catalog = common::catalog("0.1 ms");
    let settings = common::CALIBRATED.replace("2 %", loss);
    let case = common::case_of(common::CALIBRATED_DEVICE, &settings, &catalog);
    let model = CaseModel::compile(&case, &catalog).expect("the case compiles");
    let (mut exact, mut events) = (Half::default(), Half::default());
    let mut enumerated = Enumerated::default();
    for seed in 0..runs {
        let begin = Instant::now();
        let mut atoms = Vec::new();
        let keep =
            |atom: Atom, outcome: &Outcome| atoms.push((common::time_ns(outcome), atom.weight));
        enumerated = Simulator::new()
            .enumerate(&model, seed, Accuracy::default(), &mut || true, keep)
            .expect("only losses and costs depend on chance");
        exact.add(begin.elapsed(), atoms);

        let begin = Instant::now();
        let seeds = TrialSeeds::new(seed, &CaseId("events".to_owned()));
        let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
        let mut atoms = Vec::new();
        for trial in 0..TRIALS {
            simulator.run(&model, seeds.of(trial), &mut outcome);
            atoms.push((common::time_ns(&outcome), 1.0));
        }
        events.add(begin.elapsed(), atoms);
    }
    println!(
        "{{\"runs\": {runs}, \"patterns\": {}, \"trials\": {}, \"residual\": {:e}, \"exact\": {}, \
         \"events\": {}}}",
        enumerated.patterns,
        enumerated.trials,
        enumerated.residual,
        exact.json(),
        events.json()
    );
}

/// What the runs of one tier gave.
#[derive(Default)]
struct Half {
    seconds: Vec<f64>,
    p99_ms: Vec<f64>,
    p50_ms: Vec<f64>,
}

impl Half {
    fn add(&mut self, taken: Duration, mut atoms: Vec<(u64, f64)>) {
        self.seconds.push(taken.as_secs_f64());
        atoms.sort_unstable_by_key(|&(time, _)| time);
        let milliseconds = |share: f64| common::quantile(&atoms, share) as f64 / 1e6;
        self.p50_ms.push(milliseconds(0.50));
        self.p99_ms.push(milliseconds(0.99));
    }

    fn json(&self) -> String {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        format!(
            "{{\"median_s\": {:.4}, \"p50_deviation_ms\": {:.5}, \"p99_deviation_ms\": {:.5}, \
             \"p99_ms\": {:.3}}}",
            seconds[seconds.len() / 2],
            deviation(&self.p50_ms),
            deviation(&self.p99_ms),
            self.p99_ms.iter().sum::<f64>() / self.p99_ms.len() as f64
        )
    }
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

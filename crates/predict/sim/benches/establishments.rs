// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Establishments a second on one core: the reference model, and what each mechanism adds to it.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds};

#[path = "../tests/common/mod.rs"]
mod common;

/// Trials of one measurement, enough for rare losses to take their part.
const TRIALS: u64 = 1_000;

fn bench(criterion: &mut Criterion) {
    let catalog = common::catalog("0.1 ms");
    let reference = common::REFERENCE;
    let settings = [
        ("reference", reference.to_owned()),
        ("loss-free", reference.replace("2 %", "0 %")),
        ("tls-1.2", reference.replace("\"1.3\"", "\"1.2\"")),
        ("resumed", reference.replace("\"full\"", "\"resumed\"")),
        ("250-kbit", reference.replace("rtt =", "rate = \"250 kbit/s\"\nrtt =")),
        ("jitter", reference.replace("rtt =", "jitter = [\"0 ms\", \"1 ms\", \"8 ms\"]\nrtt =")),
    ];
    let mut group = criterion.benchmark_group("establishments");
    group.throughput(Throughput::Elements(TRIALS));
    let constant = settings.map(|(name, settings)| (name, "constant", settings));
    let calibrated = ("calibrated", common::CALIBRATED_DEVICE, common::CALIBRATED.to_owned());
    for (name, device, settings) in [calibrated].into_iter().chain(constant) {
        let case = common::case_of(device, &settings, &catalog);
        let model = CaseModel::compile(&case, &catalog).expect("the case compiles");
        let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
        let seeds = TrialSeeds::new(1, &case.seed_id());
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for trial in 0..TRIALS {
                    simulator.run(&model, seeds.of(trial), &mut outcome);
                    black_box(&outcome);
                }
            });
        });
    }
    group.finish();

    let case = common::case(reference, &catalog);
    criterion.bench_function("compile a case", |bencher| {
        bencher.iter(|| CaseModel::compile(black_box(&case), &catalog));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);

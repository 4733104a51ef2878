// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case in the exact tier, as rows whose weights are probabilities.

use std::collections::BTreeMap;

use warifu_model::{Case, Metric, Stage};
use warifu_results::{NoiseAtom, NoiseOfMetric, NoisePattern, Rows, WeightedTrial};
use warifu_sim::{
    Accuracy, Atom, CaseModel, Enumerated, Outcome, Simulator, TooManyPatterns, TrialSeeds,
};

use crate::rows::Columns;

/// What the exact tier gave of a case.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub rows: Rows,
    /// What it left out.
    pub enumerated: Enumerated,
    /// Atoms that came to nothing.
    pub failed: u64,
    /// How sure its probabilities are, by metric.
    pub noise: BTreeMap<String, NoiseOfMetric>,
}

/// How the exact tier would treat a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Treatment {
    /// Its patterns of losses are enumerated.
    Enumerated,
    /// Nothing is lost: there is one pattern, and what differs is drawn. That is what trials do,
    /// whose noise is told.
    ByTrials,
    /// Not at all: more depends on chance than losses, costs, lengths and phases.
    OtherChance,
    /// Not at all: the patterns that are taken at most lack too much of its probability.
    TooMany(TooManyPatterns),
}

impl Treatment {
    /// That of a case's model; runs some trials of it.
    pub(crate) fn of(simulator: &mut Simulator, model: &CaseModel) -> Treatment {
        if !model.can_be_enumerated() {
            return Treatment::OtherChance;
        }
        if !model.loses() {
            return Treatment::ByTrials;
        }
        match simulator.few_patterns_suffice(model, Accuracy::default()) {
            Ok(()) => Treatment::Enumerated,
            Err(too_many) => Treatment::TooMany(too_many),
        }
    }
}

/// Enumerates a case; `None` where it does not qualify, and if `go_on` says no.
pub(crate) fn exact(
    simulator: &mut Simulator,
    (case, model): (&Case, &CaseModel),
    groups: usize,
    study_seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Exact> {
    let columns = Columns::of(case);
    let metrics = columns.of_connections();
    // Of each metric a value of each trial that did not fail.
    let mut values: Vec<Vec<u64>> = vec![Vec::new(); metrics.len()];
    let mut trials: Vec<WeightedTrial> = Vec::new();
    let mut patterns: Vec<NoisePattern> = Vec::new();
    let mut failing: Vec<WeightedTrial> = Vec::new();
    let mut stages: Vec<(u64, [u64; Stage::ALL.len()], f64)> = Vec::new();
    let (mut failed, mut failed_weight) = (0, 0.0);
    let with_stages = columns.with_stages();
    let keep = |atom: Atom, outcome: &Outcome| {
        let Atom { weight, pattern, .. } = atom;
        let number = pattern as usize;
        // A pattern that is met in no trial has no atom.
        patterns.resize(patterns.len().max(number + 1), NoisePattern::default());
        patterns[number].trials = atom.trials;
        patterns[number].weight += weight;
        let Some(connection) = outcome.connections.first() else { return };
        if connection.failed {
            failed += 1;
            failed_weight += weight;
            failing.push(WeightedTrial { weight, pattern });
            return;
        }
        trials.push(WeightedTrial { weight, pattern });
        for (values, &metric) in values.iter_mut().zip(metrics) {
            values.push(connection.value(metric));
        }
        if let Some(metric) = with_stages {
            stages.push((connection.value(metric), connection.stages, weight));
        }
    };
    // A case's own seed, as its trials have.
    let seed = TrialSeeds::new(study_seed, &case.seed_id()).of(0);
    let enumerated = simulator.enumerate(model, seed, Accuracy::default(), go_on, keep)?;
    let mut rows = Rows::default();
    let of_failing = NoiseOfMetric::of_failing(&failing, &patterns);
    let mut noise = BTreeMap::from([(Metric::ConnectionFailed.name().to_owned(), of_failing)]);
    for (values, &metric) in values.iter().zip(metrics) {
        let atoms = NoiseAtom::in_order(values, &trials);
        noise.insert(metric.name().to_owned(), NoiseOfMetric::of(&atoms, &patterns));
        let mut atoms: Vec<(u64, f64)> = atoms.iter().map(|of| (of.value, of.weight)).collect();
        rows.push_weighted(metric, &mut atoms, failed_weight, groups, study_seed);
    }
    if let Some(metric) = with_stages {
        rows.push_weighted_stages(metric, &stages, study_seed);
    }
    columns.push_failed_weight(&mut rows, failed_weight, study_seed);
    Some(Exact { rows, enumerated, failed, noise })
}

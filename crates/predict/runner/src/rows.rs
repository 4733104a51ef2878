// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trial gives, as the rows of a case.

use warifu_model::{Case, Definition, Metric, Scope, Stage};
use warifu_results::{Row, Rows};
use warifu_sim::{ConnectionOutcome, Outcome};

/// The metrics of a case, but for those that say what failed.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    of_connections: Vec<Metric>,
    /// One that is divided into stages.
    with_stages: Option<Metric>,
    /// None where a scenario has one connection alone.
    of_scenarios: Vec<Metric>,
}

/// What is kept of the trials of a case until it is finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    connections: Vec<Kept>,
    /// Empty where the case has no metric of scenarios.
    scenarios: Vec<Kept>,
}

/// What is kept of a connection, or of all connections of a trial together.
#[derive(Clone, Debug)]
struct Kept {
    trial: u64,
    connection: u32,
    seed: u64,
    failed: bool,
    /// Of each metric of the case with that scope, in their order.
    values: [u64; Metric::ALL.len()],
    /// Zero for a scenario.
    stages: [u64; Stage::ALL.len()],
}

impl Columns {
    /// Those of a case.
    pub(crate) fn of(case: &Case) -> Columns {
        let with_scope = |scope| {
            let wanted = move |metric: &&Metric| {
                metric.applies_to(case)
                    && metric.scope() == scope
                    && metric.definition() != Definition::Failed
            };
            Metric::ALL.iter().filter(wanted).copied().collect()
        };
        Columns {
            of_connections: with_scope(Scope::Connection),
            with_stages: Metric::with_stages(&case.stack),
            of_scenarios: with_scope(Scope::Scenario),
        }
    }

    /// Keeps what a trial gave.
    pub(crate) fn keep(&self, trials: &mut Trials, trial: u64, seed: u64, outcome: &Outcome) {
        for (connection, of) in (0..).zip(&outcome.connections) {
            trials.connections.push(self.connection(trial, connection, seed, of));
        }
        if !self.of_scenarios.is_empty() {
            trials.scenarios.push(self.scenario(trial, seed, outcome));
        }
    }

    fn connection(&self, trial: u64, connection: u32, seed: u64, of: &ConnectionOutcome) -> Kept {
        let mut values = [0; Metric::ALL.len()];
        if !of.failed {
            for (value, &metric) in values.iter_mut().zip(&self.of_connections) {
                *value = of.value(metric);
            }
        }
        Kept { trial, connection, seed, failed: of.failed, values, stages: of.stages }
    }

    fn scenario(&self, trial: u64, seed: u64, outcome: &Outcome) -> Kept {
        let mut values = [0; Metric::ALL.len()];
        let mut failed = false;
        for (value, &metric) in values.iter_mut().zip(&self.of_scenarios) {
            match outcome.value(metric) {
                Some(number) => *value = number,
                None => failed = true,
            }
        }
        let stages = [0; Stage::ALL.len()];
        Kept { trial, connection: 0, seed, failed, values, stages }
    }

    /// Every trial with every metric, and the stages that took time.
    pub(crate) fn every_trial(&self, chunks: &[&Trials]) -> Rows {
        let mut rows = Rows::default();
        for of in chunks.iter().flat_map(|chunk| &chunk.connections) {
            if of.failed {
                rows.push(of.row(Metric::ConnectionFailed, None, 1));
                continue;
            }
            of.push(&self.of_connections, &mut rows);
            let Some(metric) = self.with_stages else { continue };
            for (stage, value) in Stage::ALL.into_iter().zip(of.stages) {
                if value > 0 {
                    rows.push(of.row(metric, Some(stage), value));
                }
            }
        }
        for of in chunks.iter().flat_map(|chunk| &chunk.scenarios) {
            match of.failed {
                true => rows.push(of.row(Metric::ScenarioFailed, None, 1)),
                false => of.push(&self.of_scenarios, &mut rows),
            }
        }
        rows
    }

    /// A weighted distribution of each metric, and the stages by bands of trials.
    pub(crate) fn distributions(&self, chunks: &[&Trials], groups: usize, seed: u64) -> Rows {
        let mut rows = Rows::default();
        let connections = chunks.iter().flat_map(|chunk| &chunk.connections);
        let good = connections.clone().filter(|of| !of.failed);
        let failed = connections.filter(|of| of.failed).count();
        let mut totals = Vec::new();
        for (index, &metric) in self.of_connections.iter().enumerate() {
            let mut values: Vec<u64> = good.clone().map(|of| of.values[index]).collect();
            if self.with_stages == Some(metric) {
                totals.clone_from(&values);
            }
            rows.push_distribution(metric, &mut values, failed, groups, seed);
        }
        if let Some(metric) = self.with_stages {
            let stages: Vec<_> = good.map(|of| of.stages).collect();
            rows.push_stages(metric, &totals, &stages, seed);
        }
        push_failed(&mut rows, Metric::ConnectionFailed, failed, seed);

        let scenarios = chunks.iter().flat_map(|chunk| &chunk.scenarios);
        let good = scenarios.clone().filter(|of| !of.failed);
        let failed = scenarios.filter(|of| of.failed).count();
        for (index, &metric) in self.of_scenarios.iter().enumerate() {
            let mut values: Vec<u64> = good.clone().map(|of| of.values[index]).collect();
            rows.push_distribution(metric, &mut values, failed, groups, seed);
        }
        push_failed(&mut rows, Metric::ScenarioFailed, failed, seed);
        rows
    }
}

impl Kept {
    fn row(&self, metric: Metric, stage: Option<Stage>, value: u64) -> Row {
        let Kept { connection, trial, seed, .. } = *self;
        Row { connection, trial, metric, stage, value: value as f64, weight: 1.0, seed }
    }

    fn push(&self, metrics: &[Metric], rows: &mut Rows) {
        for (&metric, value) in metrics.iter().zip(self.values) {
            rows.push(self.row(metric, None, value));
        }
    }
}

/// Adds how many failed, if any.
fn push_failed(rows: &mut Rows, metric: Metric, failed: usize, seed: u64) {
    if failed > 0 {
        let weight = failed as f64;
        rows.push(Row { connection: 0, trial: 0, metric, stage: None, value: 1.0, weight, seed });
    }
}

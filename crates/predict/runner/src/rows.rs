// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trial gives, as the rows of a case.

use warifu_model::{Case, Definition, Metric, Scope, Stage};
use warifu_results::{Row, Rows};
use warifu_sim::ConnectionOutcome;

/// The metrics that connections of a case have, unless they fail.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    metrics: Vec<Metric>,
    /// The one that is divided into stages.
    with_stages: Option<Metric>,
}

/// What is kept of a connection until its case is finished.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    trial: u64,
    connection: u32,
    seed: u64,
    failed: bool,
    /// Of each metric of the case, in their order.
    values: [u64; Metric::ALL.len()],
    stages: [u64; Stage::ALL.len()],
}

impl Columns {
    /// Those of a case.
    pub(crate) fn of(case: &Case) -> Columns {
        let of_connections = |metric: &&Metric| {
            metric.applies_to(&case.stack)
                && metric.scope() == Scope::Connection
                && metric.definition() != Definition::Failed
        };
        Columns {
            metrics: Metric::ALL.iter().filter(of_connections).copied().collect(),
            with_stages: Metric::with_stages(&case.stack),
        }
    }

    /// What is kept of a connection.
    pub(crate) fn trial(
        &self,
        trial: u64,
        connection: u32,
        seed: u64,
        outcome: &ConnectionOutcome,
    ) -> Trial {
        let mut values = [0; Metric::ALL.len()];
        if !outcome.failed {
            for (value, &metric) in values.iter_mut().zip(&self.metrics) {
                *value = outcome.value(metric);
            }
        }
        let (failed, stages) = (outcome.failed, outcome.stages);
        Trial { trial, connection, seed, failed, values, stages }
    }

    /// Every trial with every metric, and the stages that took time.
    pub(crate) fn every_trial<'a>(&self, trials: impl Iterator<Item = &'a Trial>) -> Rows {
        let mut rows = Rows::default();
        for of in trials {
            let row = |metric, stage, value: u64| Row {
                connection: of.connection,
                trial: of.trial,
                metric,
                stage,
                value: value as f64,
                weight: 1.0,
                seed: of.seed,
            };
            if of.failed {
                rows.push(row(Metric::ConnectionFailed, None, 1));
                continue;
            }
            for (&metric, value) in self.metrics.iter().zip(of.values) {
                rows.push(row(metric, None, value));
            }
            let Some(metric) = self.with_stages else { continue };
            for (stage, value) in Stage::ALL.into_iter().zip(of.stages) {
                if value > 0 {
                    rows.push(row(metric, Some(stage), value));
                }
            }
        }
        rows
    }

    /// A weighted distribution of each metric, and the stages by bands of trials.
    pub(crate) fn distributions<'a>(
        &self,
        trials: impl Iterator<Item = &'a Trial> + Clone,
        groups: usize,
        seed: u64,
    ) -> Rows {
        let mut rows = Rows::default();
        let good = trials.clone().filter(|of| !of.failed);
        let failed = trials.filter(|of| of.failed).count();
        let mut totals = Vec::new();
        for (index, &metric) in self.metrics.iter().enumerate() {
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
        if failed > 0 {
            rows.push(Row {
                connection: 0,
                trial: 0,
                metric: Metric::ConnectionFailed,
                stage: None,
                value: 1.0,
                weight: failed as f64,
                seed,
            });
        }
        rows
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trial gives, as the rows of a case.

use warifu_model::{Case, Definition, Metric, Scope, Stage};
use warifu_results::{Row, Rows, Stratum};
use warifu_sim::{ConnectionOutcome, Outcome};

use crate::strata::{Counted, metric_with_strata};
use crate::timelines::{Pick, Picks, QUANTILES};

/// The metrics of a case, but for those that say what failed.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    of_connections: Vec<Metric>,
    /// One that is divided into stages.
    with_stages: Option<Metric>,
    /// One whose connections are told apart by what their clients know of losses.
    with_strata: Option<Metric>,
    /// None where a scenario has one connection alone.
    of_scenarios: Vec<Metric>,
}

/// What is kept of the trials of a case until it is finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    connections: Vec<Kept>,
    /// Of each connection.
    stages: Vec<[u64; Stage::ALL.len()]>,
    /// Empty where the case has no metric of scenarios.
    scenarios: Vec<Kept>,
}

/// What is kept of a connection, or of all connections of a trial together.
#[derive(Clone, Debug)]
struct Kept {
    trial: u64,
    /// 0 for all connections together.
    connection: u32,
    seed: u64,
    failed: bool,
    /// Of each metric of the case with that scope, in their order.
    values: [u64; Metric::ALL.len()],
}

impl Columns {
    /// Those of a case.
    pub(crate) fn of(case: &Case) -> Columns {
        let with_scope = |scope| {
            let wanted = move |metric: &&Metric| {
                metric.applies_to(case)
                    && metric.scope() == scope
                    && !matches!(metric.definition(), Definition::Failed | Definition::Seen)
            };
            Metric::ALL.iter().filter(wanted).copied().collect()
        };
        Columns {
            of_connections: with_scope(Scope::Connection),
            with_stages: Metric::with_stages(&case.stack),
            with_strata: metric_with_strata(case),
            of_scenarios: with_scope(Scope::Scenario),
        }
    }

    /// The metrics of connections.
    pub(crate) fn of_connections(&self) -> &[Metric] {
        &self.of_connections
    }

    /// The metric that is divided into stages.
    pub(crate) fn with_stages(&self) -> Option<Metric> {
        self.with_stages
    }

    /// Adds the probability of coming to nothing, if there is any.
    pub(crate) fn push_failed_weight(&self, rows: &mut Rows, weight: f64, seed: u64) {
        if weight > 0.0 {
            let metric = Metric::ConnectionFailed;
            rows.push(Row {
                connection: 0,
                trial: 0,
                metric,
                stage: None,
                value: 1.0,
                weight,
                seed,
            });
        }
    }

    /// Keeps what a trial gave.
    pub(crate) fn keep(&self, trials: &mut Trials, trial: u64, seed: u64, outcome: &Outcome) {
        for (connection, of) in (0..).zip(&outcome.connections) {
            trials.connections.push(self.connection(trial, connection, seed, of));
            trials.stages.push(of.stages);
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
        Kept { trial, connection, seed, failed: of.failed, values }
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
        Kept { trial, connection: 0, seed, failed, values }
    }

    /// Every trial with every metric, and the stages that took time.
    pub(crate) fn every_trial(&self, chunks: &[&Trials]) -> Rows {
        let mut rows = Rows::default();
        for (of, stages) in chunks.iter().flat_map(|chunk| chunk.with_stages()) {
            if of.failed {
                rows.push(of.row(Metric::ConnectionFailed, None, 1));
                continue;
            }
            of.push(&self.of_connections, &mut rows);
            let Some(metric) = self.with_stages else { continue };
            for (stage, value) in Stage::ALL.into_iter().zip(*stages) {
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
        push_distributions(&mut rows, &self.of_connections, connections.clone(), groups, seed);
        let place = self.of_connections.iter().position(|&of| Some(of) == self.with_stages);
        if let (Some(place), Some(metric)) = (place, self.with_stages) {
            let with_stages = chunks.iter().flat_map(|chunk| chunk.with_stages());
            let good = with_stages.filter(|(of, _)| !of.failed);
            let (totals, stages): (Vec<u64>, Vec<_>) =
                good.map(|(of, stages)| (of.values[place], *stages)).unzip();
            rows.push_stages(metric, &totals, &stages, seed);
        }
        push_failed(&mut rows, Metric::ConnectionFailed, connections, seed);
        let scenarios = chunks.iter().flat_map(|chunk| &chunk.scenarios);
        push_distributions(&mut rows, &self.of_scenarios, scenarios.clone(), groups, seed);
        push_failed(&mut rows, Metric::ScenarioFailed, scenarios, seed);
        rows
    }

    /// The connections by what their clients know of losses, where the case has such.
    pub(crate) fn strata(&self, chunks: &[&Trials]) -> Option<Vec<Stratum>> {
        let place = |wanted| self.of_connections.iter().position(|&of| of == wanted);
        let total = place(self.with_strata?)?;
        let syn_timeouts = place(Metric::TcpSynTimeouts)?;
        let retransmissions = place(Metric::TcpClientRetransmissions)?;
        let mut counted = Counted::default();
        for of in chunks.iter().flat_map(|chunk| &chunk.connections).filter(|of| !of.failed) {
            let values = &of.values;
            counted.add(values[syn_timeouts], values[retransmissions], values[total]);
        }
        Some(counted.strata())
    }

    /// The connections whose whole time is that of each quantile of [`QUANTILES`], failed ones
    /// counted as later than all; the slowest that did not fail where the quantile did.
    pub(crate) fn picks(&self, chunks: &[&Trials]) -> Picks {
        let place = self.of_connections.iter().position(|&of| Some(of) == self.with_stages);
        let Some(place) = place else { return Picks::default() };
        let all = || chunks.iter().flat_map(|chunk| &chunk.connections);
        let mut values: Vec<u64> =
            all().filter(|of| !of.failed).map(|of| of.values[place]).collect();
        let count = all().count() as f64;
        QUANTILES.map(|quantile| {
            // As the stored percentiles: crates/core/results/src/distribution.rs.
            let rank = (quantile * count * (1.0 - 1e-12)).ceil().max(1.0) as usize;
            let last = values.len().checked_sub(1)?;
            let total_ns = *values.select_nth_unstable((rank - 1).min(last)).1;
            let found = all().find(|of| !of.failed && of.values[place] == total_ns)?;
            let Kept { trial, connection, seed, .. } = *found;
            Some(Pick { trial, connection, seed, total_ns })
        })
    }
}

impl Trials {
    fn with_stages(&self) -> impl Iterator<Item = (&Kept, &[u64; Stage::ALL.len()])> {
        self.connections.iter().zip(&self.stages)
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

/// Adds a distribution of each metric.
fn push_distributions<'a>(
    rows: &mut Rows,
    metrics: &[Metric],
    kept: impl Iterator<Item = &'a Kept> + Clone,
    groups: usize,
    seed: u64,
) {
    let failed = kept.clone().filter(|of| of.failed).count();
    for (index, &metric) in metrics.iter().enumerate() {
        let good = kept.clone().filter(|of| !of.failed);
        let mut values: Vec<u64> = good.map(|of| of.values[index]).collect();
        rows.push_distribution(metric, &mut values, failed, groups, seed);
    }
}

/// Adds how many failed, if any.
fn push_failed<'a>(
    rows: &mut Rows,
    metric: Metric,
    kept: impl Iterator<Item = &'a Kept>,
    seed: u64,
) {
    let failed = kept.filter(|of| of.failed).count();
    if failed > 0 {
        let weight = failed as f64;
        rows.push(Row { connection: 0, trial: 0, metric, stage: None, value: 1.0, weight, seed });
    }
}

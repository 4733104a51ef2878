// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case's connections by what the client knows of its losses, and the null models beside it.

use std::collections::BTreeMap;

use warifu_model::{Case, Catalog, Layer, Loss, Metric, Nanos, Stage};
use warifu_results::{MOST_COUNTED, NullModels, StrataOfCase, Stratum};
use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds};

/// Trials without loss that computing is the mean of.
const NULL_TRIALS: u64 = 500;
/// The RTT at which round trips are counted, where a case's own is too short to tell them from
/// computing.
const COUNTING_RTT: Nanos = Nanos(100_000_000);

/// The metric whose strata a case has: its whole time, of a TCP connection that is alone.
pub(crate) fn metric_with_strata(case: &Case) -> Option<Metric> {
    let alone = case.pattern.concurrent == 1 && case.stack.has(Layer::Tcp);
    Metric::with_stages(&case.stack).filter(|_| alone)
}

/// Connections of one stratum: sums, so that chunks of trials can be put together.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    mean: f64,
    /// Sum of squared differences from the mean (Welford, Technometrics 4 (1962)).
    squares: f64,
}

/// The strata of connections that did not fail, by SYN timeouts and retransmissions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(BTreeMap<(u64, u64), Sums>);

impl Counted {
    /// Adds a connection.
    pub(crate) fn add(&mut self, syn_timeouts: u64, retransmissions: u64, total_ns: u64) {
        let stratum = (syn_timeouts.min(MOST_COUNTED), retransmissions.min(MOST_COUNTED));
        let sums = self.0.entry(stratum).or_default();
        sums.count += 1;
        let off = total_ns as f64 - sums.mean;
        sums.mean += off / sums.count as f64;
        sums.squares += off * (total_ns as f64 - sums.mean);
    }

    /// The strata of all connections that were added.
    pub(crate) fn strata(&self) -> Vec<Stratum> {
        let stratum = |(&(syn_timeouts, retransmissions), sums): (&(u64, u64), &Sums)| Stratum {
            syn_timeouts,
            retransmissions,
            count: sums.count as f64,
            mean_ns: sums.mean,
            variance_ns2: sums.squares / sums.count.saturating_sub(1).max(1) as f64,
        };
        self.0.iter().map(stratum).collect()
    }
}

/// What is stored of a case's strata.
///
/// # Errors
/// When the case cannot be compiled without loss.
pub(crate) fn of_case(
    case: &Case,
    catalog: &Catalog,
    study_seed: u64,
    (metric, trials, strata): (Metric, u64, Vec<Stratum>),
) -> Result<StrataOfCase, warifu_model::Error> {
    let null_models = null_models(case, catalog, study_seed)?;
    Ok(StrataOfCase { metric: metric.name().to_owned(), null_models, trials, strata })
}

/// Round trips and computing of a case where nothing is lost, nothing jitters and the link's rate
/// has no end.
fn null_models(
    case: &Case,
    catalog: &Catalog,
    study_seed: u64,
) -> Result<NullModels, warifu_model::Error> {
    let mut clean = case.clone();
    clean.link.loss = Loss::None;
    clean.link.jitter.clear();
    (clean.link.rate_up, clean.link.rate_down) = (None, None);
    let computing_ns = mean_stages(&clean, catalog, study_seed, NULL_TRIALS, is_computing)?;
    clean.link.rtt = clean.link.rtt.max(COUNTING_RTT);
    let way_ns = mean_stages(&clean, catalog, study_seed, 1, |of| of == Stage::Propagation)?;
    // Ways are whole: an odd one is half a round trip.
    let round_trips = (2.0 * way_ns / clean.link.rtt.0 as f64).round() / 2.0;
    Ok(NullModels { round_trips, rtt_ns: case.link.rtt.0, computing_ns })
}

/// The time that trials spend in some stages on the way to the response, mean, ns.
fn mean_stages(
    case: &Case,
    catalog: &Catalog,
    study_seed: u64,
    trials: u64,
    wanted: impl Fn(Stage) -> bool,
) -> Result<f64, warifu_model::Error> {
    let model = CaseModel::compile(case, catalog)?;
    let seeds = TrialSeeds::new(study_seed, &case.seed_id());
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let mut sum = 0.0;
    for trial in 0..trials {
        simulator.run(&model, seeds.of(trial), &mut outcome);
        for of in &outcome.connections {
            let stages = Stage::ALL.into_iter().zip(of.stages);
            sum += stages.filter(|&(of, _)| wanted(of)).map(|(_, ns)| ns as f64).sum::<f64>();
        }
    }
    Ok(sum / trials as f64)
}

fn is_computing(stage: Stage) -> bool {
    match stage {
        Stage::ClientCompute
        | Stage::ClientSystem
        | Stage::ServerCompute
        | Stage::ServerSystem
        | Stage::KeyStore => true,
        Stage::ResourceQueue
        | Stage::Propagation
        | Stage::Serialisation
        | Stage::LinkQueue
        | Stage::LossRecovery
        | Stage::SendWait
        | Stage::Idle => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_of_connections() {
        let mut counted = Counted::default();
        for total in [10, 20, 30] {
            counted.add(0, 0, total);
        }
        counted.add(1, 0, 1000);
        counted.add(0, 5, 200);
        counted.add(0, 2, 300);
        let strata = counted.strata();
        let of = |index: usize| {
            let Stratum { syn_timeouts, retransmissions, count, mean_ns, variance_ns2 } =
                strata[index];
            (syn_timeouts, retransmissions, count, mean_ns, variance_ns2)
        };
        assert_eq!(of(0), (0, 0, 3.0, 20.0, 100.0));
        assert_eq!(of(1), (0, 2, 2.0, 250.0, 5000.0));
        assert_eq!(of(2), (1, 0, 1.0, 1000.0, 0.0));
        assert_eq!(strata.len(), 3);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How slow or quick a role is: one factor for all that it computes in a connection, and one for
//! all that its machine computes in a trial.
//!
//! What a machine takes differs from one minute to the next by more than from one connection to the
//! next. A trial is a connection at some time or other, so that it draws the minute's factor, too.
//! System calls and wake-ups may have one of their own: minutes that are slow for them are not
//! those that are slow for what computes (studies/accuracy/README.md).

use warifu_model::{Costs, Role, Stage};

use crate::random::{Purpose, Stream};

/// The laws of each role's factors, ready to draw from; none where profiles state none, and then
/// nothing is drawn and all costs are what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpeedLaws {
    /// Of one connection, warm and cold.
    connection: [Option<[Box<[f64]>; 2]>; 2],
    /// Of all connections of a trial.
    sitting: [Sitting; 2],
    /// Whether both ends are one machine, which is as slow or quick for both.
    one_machine: bool,
}

/// The laws of a sitting's factors.
#[derive(Clone, Debug, Default)]
struct Sitting {
    /// Of what computes, and of system calls where these have none of their own.
    all: Option<Box<[f64]>>,
    /// Of system calls.
    system: Option<Box<[f64]>>,
}

/// What each role takes in the place of 1: what computes and system calls, each with warm caches
/// and with cold ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speeds([[[f64; 2]; 2]; 2]);

/// Steps between the quantiles of a sitting's factor.
const STEPS: u32 = 64;

impl SpeedLaws {
    /// Those of device and server.
    pub(crate) fn of(ends: [Costs<'_>; 2]) -> SpeedLaws {
        let speeds = ends.map(|end| end.device().speed.as_ref());
        let deviation = |of: f64| (of > 0.0).then(|| log_normal(of));
        SpeedLaws {
            connection: speeds.map(|speed| {
                speed.map(|of| {
                    let waited = of.waited.as_ref().unwrap_or(&of.connection);
                    [of.connection.clone(), waited.clone()]
                })
            }),
            sitting: speeds.map(|speed| Sitting {
                all: speed.and_then(|of| of.sitting).and_then(deviation),
                system: speed.and_then(|of| of.sitting_system).map(log_normal),
            }),
            one_machine: ends[0].device().name == ends[1].device().name,
        }
    }

    /// Whether one role's computing takes more or less than its costs.
    pub(crate) fn vary(&self) -> bool {
        self.connection.iter().any(Option::is_some) || self.have_sittings()
    }

    fn have_sittings(&self) -> bool {
        self.sitting.iter().any(|of| of.all.is_some() || of.system.is_some())
    }

    /// Those of one connection of a trial: of which instance, and which of its episodes.
    #[inline]
    pub(crate) fn draw(&self, seed: u64, instance: u32, episode: u32) -> Speeds {
        if !self.vary() {
            return Speeds::default();
        }
        let connection = u64::from(instance) << 32 | u64::from(episode);
        let mut stream = Stream::numbered(seed, Purpose::Speed, connection);
        // Both are drawn in any case: what one end states changes nothing of the other's luck.
        let mut factors = self.connection.each_ref().map(|law| {
            let place = stream.uniform();
            let of =
                law.as_ref().map_or([1.0; 2], |laws| laws.each_ref().map(|law| at(law, place)));
            [of; 2]
        });
        if self.have_sittings() {
            let places = |purpose| {
                let server = Stream::new(seed, purpose).uniform();
                let device = || Stream::numbered(seed, purpose, instance.into()).uniform();
                [if self.one_machine { server } else { device() }, server]
            };
            let own = |law: &Option<Box<[f64]>>, place| law.as_deref().map(|law| at(law, place));
            let [all, system] = [Purpose::Sitting, Purpose::SittingOfSystem].map(places);
            for (role, of) in self.sitting.iter().enumerate() {
                let computing = own(&of.all, all[role]).unwrap_or(1.0);
                let calls = own(&of.system, system[role]).unwrap_or(computing);
                for (factors, sitting) in factors[role].iter_mut().zip([computing, calls]) {
                    factors.iter_mut().for_each(|factor| *factor *= sitting);
                }
            }
        }
        Speeds(factors)
    }
}

/// Evenly spaced quantiles of a factor whose logarithm is normal with that standard deviation, cut
/// off at three of them. The density is summed, in steps that are fine beside the quantiles'.
fn log_normal(deviation: f64) -> Box<[f64]> {
    const CUT: f64 = 3.0;
    const FINE: u32 = 6_000;
    let z_at = |step: u32| CUT * (2.0 * f64::from(step) / f64::from(FINE) - 1.0);
    let density = |z: f64| (-z * z / 2.0).exp();
    let masses = (0..FINE).map(|step| (density(z_at(step)) + density(z_at(step + 1))) / 2.0);
    let whole: f64 = masses.clone().sum();
    let mut quantiles = vec![(-CUT * deviation).exp()];
    let mut sum = 0.0;
    for (step, mass) in (0..FINE).zip(masses) {
        sum += mass;
        while quantiles.len() < STEPS as usize
            && sum >= whole * quantiles.len() as f64 / f64::from(STEPS)
        {
            quantiles.push((z_at(step + 1) * deviation).exp());
        }
    }
    quantiles.push((CUT * deviation).exp());
    quantiles.into()
}

impl Default for Speeds {
    fn default() -> Self {
        Speeds([[[1.0; 2]; 2]; 2])
    }
}

impl Speeds {
    /// What a role takes for a cost of a stage, ns, with warm caches or with cold ones.
    #[inline]
    pub(crate) fn of(self, role: Role, stage: Stage, cold: bool, ns: u64) -> u64 {
        let system = matches!(stage, Stage::ClientSystem | Stage::ServerSystem);
        let factor = self.0[role as usize][usize::from(system)][usize::from(cold)];
        // Exactly the cost where there is no factor. A signed integer converts in one instruction,
        // and what is not negative rounds without a call.
        if factor == 1.0 { ns } else { (ns as i64 as f64 * factor + 0.5) as i64 as u64 }
    }
}

/// The factor that a fraction `p` of all do not exceed, from 0 to below 1; a law has one at least.
fn at(quantiles: &[f64], p: f64) -> f64 {
    let last = quantiles.len().saturating_sub(1);
    let position = p * last as f64;
    let index = position as usize;
    let low = quantiles.get(index).copied().unwrap_or(1.0);
    let high = quantiles.get(index + 1).copied().unwrap_or(low);
    low + (high - low) * (position - index as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn laws(client: Option<&[f64]>, server: Option<&[f64]>) -> SpeedLaws {
        let both = |law: &[f64]| [law.into(), law.into()];
        let connection = [client.map(both), server.map(both)];
        SpeedLaws { connection, ..SpeedLaws::default() }
    }

    fn sittings(deviations: [f64; 2], one_machine: bool) -> SpeedLaws {
        let sitting =
            deviations.map(|of| Sitting { all: (of > 0.0).then(|| log_normal(of)), system: None });
        SpeedLaws { connection: [None, None], sitting, one_machine }
    }

    #[test]
    fn no_law_changes_nothing() {
        let speeds = laws(None, None).draw(7, 0, 3);
        assert_eq!(speeds, Speeds::default());
        for ns in [0, 1, 123_456_789, u64::MAX] {
            assert_eq!(speeds.of(Role::Client, Stage::ClientCompute, ns % 2 == 0, ns), ns);
        }
    }

    #[test]
    fn factors_follow_their_law_and_roles_are_independent() {
        let laws = laws(Some(&[0.5, 1.0, 3.0]), Some(&[1.0, 2.0]));
        let n = 100_000;
        let warm = |Speeds([[[client, _], _], [[server, _], _]])| [client, server];
        let drawn: Vec<[f64; 2]> = (0..n).map(|trial| warm(laws.draw(trial, 0, 0))).collect();
        let mean = |of: usize| drawn.iter().map(|pair| pair[of]).sum::<f64>() / n as f64;
        // The areas under the quantiles; standard errors are below 0.003.
        assert!((mean(0) - 1.375).abs() < 0.015 && (mean(1) - 1.5).abs() < 0.015);
        let below = drawn.iter().filter(|pair| pair[0] < 1.0).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.01, "{below}");
        let both = drawn.iter().map(|[c, s]| (c - 1.375) * (s - 1.5)).sum::<f64>() / n as f64;
        assert!(both.abs() < 0.01, "{both}");
    }

    #[test]
    fn a_connection_has_the_same_place_warm_and_cold() {
        let law = |quantiles: &[f64]| -> Box<[f64]> { quantiles.into() };
        let connection = [Some([law(&[1.0, 2.0]), law(&[1.0, 5.0])]), None];
        let laws = SpeedLaws { connection, ..SpeedLaws::default() };
        for seed in 0..100 {
            let speeds = laws.draw(seed, 0, 0);
            let Speeds([[[warm, cold], system], server]) = speeds;
            assert!((cold - 1.0 - 4.0 * (warm - 1.0)).abs() < 1e-9);
            assert_eq!((system, server), ([warm, cold], [[1.0; 2]; 2]));
            let of = |cold| speeds.of(Role::Client, Stage::ClientCompute, cold, 1_000_000);
            let took = |cold| of(cold) as f64 / 1e6;
            assert!((took(false) - warm).abs() < 1e-6 && (took(true) - cold).abs() < 1e-6);
        }
    }

    #[test]
    fn a_sittings_factor_has_its_spread_and_median() {
        let laws = sittings([0.12, 0.05], false);
        let n = 50_000;
        let logs = |of: usize| {
            let mut logs: Vec<f64> =
                (0..n).map(|seed| laws.draw(seed, 0, 0).0[of][0][0].ln()).collect();
            logs.sort_by(f64::total_cmp);
            let mean = logs.iter().sum::<f64>() / n as f64;
            let square = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / n as f64;
            (logs[n as usize / 2], square.sqrt(), logs[n as usize * 95 / 100])
        };
        for (of, deviation) in [(0, 0.12), (1, 0.05)] {
            let (median, spread, late) = logs(of);
            // Cut off at three deviations a normal law keeps 0.987 of its own.
            assert!(median.abs() < 0.02 * deviation * 3.0, "{median}");
            assert!((spread / (0.987 * deviation) - 1.0).abs() < 0.02, "{spread}");
            assert!((late / (1.635 * deviation) - 1.0).abs() < 0.03, "{late}");
        }
    }

    #[test]
    fn system_calls_may_have_a_sitting_of_their_own() {
        let law = |of| Some(log_normal(of));
        let own = Sitting { all: law(0.1), system: law(0.3) };
        let system = Sitting { all: None, system: law(0.2) };
        let laws = SpeedLaws { sitting: [own, system], ..SpeedLaws::default() };
        let n = 20_000;
        let trials: Vec<_> = (0..n).map(|seed| laws.draw(seed, 0, 0)).collect();
        let logs = |role, stage| {
            trials
                .iter()
                .map(move |of| (of.of(role, stage, false, 1_000_000_000) as f64 / 1e9).ln())
        };
        let spread =
            |role, stage| (logs(role, stage).map(|log| log * log).sum::<f64>() / n as f64).sqrt();
        let computing = (Role::Client, Stage::ClientCompute);
        let calls = (Role::Client, Stage::ClientSystem);
        for ((role, stage), deviation) in [
            (computing, 0.1),
            ((Role::Client, Stage::KeyStore), 0.1),
            (calls, 0.3),
            ((Role::Server, Stage::ServerSystem), 0.2),
        ] {
            let found = spread(role, stage) / (0.987 * deviation);
            assert!((found - 1.0).abs() < 0.03, "{stage:?} {found}");
        }
        assert_eq!(spread(Role::Server, Stage::ServerCompute), 0.0);
        let [computing, calls] = [computing, calls].map(|(role, stage)| logs(role, stage));
        let common = computing.zip(calls).map(|(a, b)| a * b).sum::<f64>() / n as f64;
        assert!((common / (0.1 * 0.3)).abs() < 0.03, "{common}");
    }

    #[test]
    fn all_connections_of_a_trial_share_the_sitting_and_so_do_ends_of_one_machine() {
        let one = sittings([0.1, 0.1], true);
        let two = sittings([0.1, 0.1], false);
        for seed in 0..100 {
            let Speeds([client, server]) = one.draw(seed, 0, 0);
            assert_eq!(client, server);
            assert_eq!(one.draw(seed, 3, 7), one.draw(seed, 0, 0));
            assert_ne!(one.draw(seed, 0, 0), one.draw(seed + 1, 0, 0));
            let Speeds([client, server]) = two.draw(seed, 0, 0);
            assert_ne!(client, server);
            assert_eq!(two.draw(seed, 0, 5), two.draw(seed, 0, 0));
            let Speeds([other, same]) = two.draw(seed, 1, 0);
            assert!(other != client && same == server);
        }
    }

    proptest! {
        /// What the other end states, and how many connections there are, changes no factor.
        #[test]
        fn each_factor_by_itself(seed: u64, instance in 0_u32..9, episode in 0_u32..1_000) {
            let law = [0.9, 1.0, 1.4];
            let alone = laws(None, Some(&law)).draw(seed, instance, episode);
            let both = laws(Some(&[1.0, 5.0]), Some(&law)).draw(seed, instance, episode);
            prop_assert_eq!(alone.0[1], both.0[1]);
            prop_assert_eq!(alone.0[0], [[1.0; 2]; 2]);
            prop_assert!((0.9..=1.4).contains(&alone.0[1][0][0]));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How slow or quick a role is: one factor for all that it computes in a connection, and one for
//! all that its machine computes in a trial.
//!
//! What a machine takes differs from one minute to the next by more than from one connection to the
//! next. A trial is a connection at some time or other, so that it draws the minute's factor, too.

use warifu_model::{Costs, Role};

use crate::random::{Purpose, Stream};

/// The laws of each role's factors, ready to draw from; none where profiles state none, and then
/// nothing is drawn and all costs are what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpeedLaws {
    /// Of one connection, warm and cold.
    connection: [Option<[Box<[f64]>; 2]>; 2],
    /// Of all connections of a trial.
    sitting: [Option<Box<[f64]>>; 2],
    /// Whether both ends are one machine, which is as slow or quick for both.
    one_machine: bool,
}

/// What the computing of each role takes in the place of 1, with warm caches and with cold ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speeds([[f64; 2]; 2]);

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
            sitting: speeds.map(|speed| speed.and_then(|of| of.sitting).and_then(deviation)),
            one_machine: ends[0].device().name == ends[1].device().name,
        }
    }

    /// Whether one role's computing takes more or less than its costs.
    pub(crate) fn vary(&self) -> bool {
        self.connection.iter().any(Option::is_some) || self.sitting.iter().any(Option::is_some)
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
            law.as_ref().map_or([1.0; 2], |laws| laws.each_ref().map(|law| at(law, place)))
        });
        if self.sitting.iter().any(Option::is_some) {
            let server = Stream::new(seed, Purpose::Sitting).uniform();
            let device = || Stream::numbered(seed, Purpose::Sitting, instance.into()).uniform();
            let places = [if self.one_machine { server } else { device() }, server];
            for ((factors, law), place) in factors.iter_mut().zip(&self.sitting).zip(places) {
                let sitting = law.as_deref().map_or(1.0, |quantiles| at(quantiles, place));
                factors.iter_mut().for_each(|factor| *factor *= sitting);
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
        Speeds([[1.0; 2]; 2])
    }
}

impl Speeds {
    /// What computing takes that costs so much, ns, with warm caches or with cold ones.
    #[inline]
    pub(crate) fn of(self, role: Role, cold: bool, ns: u64) -> u64 {
        let factor = self.0[role as usize][usize::from(cold)];
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
        let sitting = deviations.map(|of| (of > 0.0).then(|| log_normal(of)));
        SpeedLaws { connection: [None, None], sitting, one_machine }
    }

    #[test]
    fn no_law_changes_nothing() {
        let speeds = laws(None, None).draw(7, 0, 3);
        assert_eq!(speeds, Speeds::default());
        for ns in [0, 1, 123_456_789, u64::MAX] {
            assert_eq!(speeds.of(Role::Client, ns % 2 == 0, ns), ns);
        }
    }

    #[test]
    fn factors_follow_their_law_and_roles_are_independent() {
        let laws = laws(Some(&[0.5, 1.0, 3.0]), Some(&[1.0, 2.0]));
        let n = 100_000;
        let warm = |Speeds([[client, _], [server, _]])| [client, server];
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
            let Speeds([[warm, cold], server]) = speeds;
            assert!((cold - 1.0 - 4.0 * (warm - 1.0)).abs() < 1e-9);
            assert_eq!(server, [1.0; 2]);
            let took = |cold| speeds.of(Role::Client, cold, 1_000_000) as f64 / 1e6;
            assert!((took(false) - warm).abs() < 1e-6 && (took(true) - cold).abs() < 1e-6);
        }
    }

    #[test]
    fn a_sittings_factor_has_its_spread_and_median() {
        let laws = sittings([0.12, 0.05], false);
        let n = 50_000;
        let logs = |of: usize| {
            let mut logs: Vec<f64> =
                (0..n).map(|seed| laws.draw(seed, 0, 0).0[of][0].ln()).collect();
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
            prop_assert_eq!(alone.0[0], [1.0; 2]);
            prop_assert!((0.9..=1.4).contains(&alone.0[1][0]));
        }
    }
}

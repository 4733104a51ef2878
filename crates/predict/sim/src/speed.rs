// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How slow or quick a role is in a whole connection: one factor for all that it computes.

use warifu_model::{Costs, Role};

use crate::random::{Purpose, Stream};

/// The law of each role's factor, ready to draw from; nothing where profiles state none, and then
/// nothing is drawn and all costs are what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpeedLaws([Option<Box<[f64]>>; 2]);

/// What the computing of each role takes in the place of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speeds([f64; 2]);

impl SpeedLaws {
    /// Those of device and server.
    pub(crate) fn of(ends: [Costs<'_>; 2]) -> SpeedLaws {
        SpeedLaws(ends.map(|end| end.device().speed.as_ref().map(|speed| speed.connection.clone())))
    }

    /// Whether one role's computing takes more or less than its costs.
    pub(crate) fn vary(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Those of one connection of a trial, by its number.
    #[inline]
    pub(crate) fn draw(&self, seed: u64, connection: u64) -> Speeds {
        if !self.vary() {
            return Speeds::default();
        }
        let mut stream = Stream::numbered(seed, Purpose::Speed, connection);
        // Both are drawn in any case: what one end states changes nothing of the other's luck.
        Speeds(self.0.each_ref().map(|law| {
            let place = stream.uniform();
            law.as_deref().map_or(1.0, |quantiles| at(quantiles, place))
        }))
    }
}

impl Default for Speeds {
    fn default() -> Self {
        Speeds([1.0; 2])
    }
}

impl Speeds {
    /// What computing takes that costs so much, ns.
    #[inline]
    pub(crate) fn of(self, role: Role, ns: u64) -> u64 {
        let factor = self.0[role as usize];
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
        SpeedLaws([client.map(Into::into), server.map(Into::into)])
    }

    #[test]
    fn no_law_changes_nothing() {
        let speeds = laws(None, None).draw(7, 3);
        assert_eq!(speeds, Speeds::default());
        for ns in [0, 1, 123_456_789, u64::MAX] {
            assert_eq!(speeds.of(Role::Client, ns), ns);
        }
    }

    #[test]
    fn factors_follow_their_law_and_roles_are_independent() {
        let laws = laws(Some(&[0.5, 1.0, 3.0]), Some(&[1.0, 2.0]));
        let n = 100_000;
        let drawn: Vec<[f64; 2]> = (0..n).map(|trial| laws.draw(trial, 0).0).collect();
        let mean = |of: usize| drawn.iter().map(|pair| pair[of]).sum::<f64>() / n as f64;
        // The areas under the quantiles; standard errors are below 0.003.
        assert!((mean(0) - 1.375).abs() < 0.015 && (mean(1) - 1.5).abs() < 0.015);
        let below = drawn.iter().filter(|pair| pair[0] < 1.0).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.01, "{below}");
        let both = drawn.iter().map(|[c, s]| (c - 1.375) * (s - 1.5)).sum::<f64>() / n as f64;
        assert!(both.abs() < 0.01, "{both}");
    }

    proptest! {
        /// What the other end states, and how many connections there are, changes no factor.
        #[test]
        fn each_factor_by_itself(seed: u64, connection in 0_u64..1_000) {
            let law = [0.9, 1.0, 1.4];
            let alone = laws(None, Some(&law)).draw(seed, connection);
            let both = laws(Some(&[1.0, 5.0]), Some(&law)).draw(seed, connection);
            prop_assert_eq!(alone.0[1], both.0[1]);
            prop_assert_eq!(alone.0[0], 1.0);
            prop_assert!((0.9..=1.4).contains(&alone.0[1]));
        }
    }
}

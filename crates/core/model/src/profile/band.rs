// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is not known of a figure, as against what varies from call to call.
//!
//! The law of a measured figure is how calls differ, so that each is drawn anew. The law of an
//! assumed one is a band: what a board's one time may be, which holds for all of its calls. Drawn
//! anew for each call, a hundred of them would come to a hundred times the band's mean, which lies
//! far above the estimate in its middle where the band is wide, and would be certain of it.

use std::fmt;

use super::device::Entry;
use super::rate::Rate;
use crate::distribution::Distribution;
use crate::kind::Kind;
use crate::operation::Operation;
use crate::primitive::Primitive;
use crate::units::Nanos;

/// Parts of a band, at most, unless one of its laws has more.
const MOST_PARTS: usize = 1_000;

/// The time that all calls and bytes of one assumed figure take in an operation, over the band of
/// what the figure may be: the same place in the law holds wherever the figure is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Whose figure it is.
    pub of: BandOf,
    /// With warm caches.
    pub warm: Distribution,
    /// After the processor was idle for longer than the profile's threshold.
    pub cold: Distribution,
}

/// The figure of a device that a band is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandOf {
    /// An operation's own.
    Operation(Operation),
    /// A primitive's.
    Primitive(Primitive),
}

impl fmt::Display for BandOf {
    /// The figure's name in a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BandOf::Operation(operation) => operation.fmt(f),
            BandOf::Primitive(primitive) => primitive.fmt(f),
        }
    }
}

impl Band {
    /// With warm caches, or cold ones.
    pub fn law(&self, cold: bool) -> &Distribution {
        if cold { &self.cold } else { &self.warm }
    }
}

impl Entry {
    /// Whether its law is the band of an assumed figure. A law with a tail is of what happens by
    /// chance.
    pub(super) fn is_band(&self) -> bool {
        let mut laws = [Some(&self.warm), self.cold.as_ref()].into_iter().flatten();
        self.provenance.kind == Kind::Assumed
            && laws.clone().all(|law| law.tail().is_none())
            && (laws.any(|law| law.min() != law.max()) || !self.per_byte.is_constant())
    }

    /// What a call is taken to be, ns: the mean of what varies, the middle of a band.
    pub(super) fn call_ns(&self, cold: bool) -> f64 {
        let law = self.law(cold);
        if self.is_band() { law.quantile(0.5).0 as f64 } else { law.mean_ns() }
    }

    /// The same of a byte, or of an instruction.
    pub(super) fn byte_ns(&self) -> f64 {
        if self.is_band() { self.per_byte.median_ns() } else { self.per_byte.mean_ns() }
    }

    /// The law of its calls.
    pub(super) fn law(&self, cold: bool) -> &Distribution {
        match &self.cold {
            Some(law) if cold => law,
            _ => &self.warm,
        }
    }

    /// Its band, for so many calls and bytes.
    pub(super) fn band(&self, of: BandOf, calls: u32, bytes: f64) -> Band {
        let law = |cold| together(self.law(cold), calls, &self.per_byte, bytes);
        Band { of, warm: law(false), cold: law(true) }
    }
}

/// The law of all calls and bytes, each at the same place in its own.
fn together(call: &Distribution, calls: u32, rate: &Rate, bytes: f64) -> Distribution {
    let parts = |quantiles: usize| quantiles.saturating_sub(1).max(1);
    let [of_call, of_rate] = [parts(call.body().len()), parts(rate.len())];
    // Where both are linear.
    let parts = match of_call / gcd(of_call, of_rate) * of_rate {
        common if common <= MOST_PARTS => common,
        _ => of_call.max(of_rate),
    };
    let quantile = |index: usize| {
        let p = index as f64 / parts as f64;
        let ns = call.quantile(p).0 as f64 * f64::from(calls) + rate.quantile_ns(p) * bytes;
        Nanos(ns.round() as u64)
    };
    // In order, as both are, and never empty.
    Distribution::from_quantiles((0..=parts).map(quantile).collect())
        .unwrap_or_else(|_| Distribution::constant(quantile(parts / 2)))
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(quantiles: &[u64]) -> Distribution {
        Distribution::from_quantiles(quantiles.iter().copied().map(Nanos).collect()).unwrap()
    }

    fn rate(text: &str) -> Rate {
        let table: toml::Table = format!("rate = {text}").parse().unwrap();
        Rate::read(&table["rate"]).unwrap()
    }

    #[test]
    fn calls_and_bytes_are_slow_together() {
        let call = law(&[100, 200, 1_000]);
        let both =
            together(&call, 10, &rate("{ quantiles = [1, 2, 3, 40], unit = \"ns\" }"), 100.0);
        // Halves and thirds: sixths.
        assert_eq!(both.body().len(), 7);
        let values = [0.0, 0.5, 1.0].map(|p| both.quantile(p).0);
        assert_eq!(values, [1_100, 2_250, 14_000]);
        assert_eq!(together(&call, 3, &Rate::zero(), 0.0), law(&[300, 600, 3_000]));
        let constant = together(&law(&[7]), 2, &rate("\"0.5 ns\""), 10.0);
        assert_eq!((constant.min(), constant.max()), (Nanos(19), Nanos(19)));
    }

    #[test]
    fn laws_with_many_quantiles_keep_their_ends() {
        let call = law(&(0..=997).collect::<Vec<u64>>());
        let rate = rate("{ quantiles = [0, 1, 2, 3, 4, 5, 6, 8], unit = \"ns\" }");
        let both = together(&call, 1, &rate, 1.0);
        assert_eq!((both.body().len(), both.min(), both.max()), (998, Nanos(0), Nanos(1_005)));
    }
}

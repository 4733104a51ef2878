// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Boards that are the same in all cases of a study.
//!
//! Each trial is of a board of its own, so that two cases' trials are of different ones, and the
//! spread of their difference is not that of any board. Where in its band each assumed figure of a
//! board is depends here on the figure alone, so that one case less another is what the choice
//! between them makes on one board.

use crate::case_model::CaseModel;
use crate::program::BandName;
use crate::random::{Purpose, Stream, mix};

/// Some boards, as a case's devices may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Boards {
    /// Of each band the place of every board in it, from 0 to 1.
    places: Vec<Vec<f64>>,
    count: usize,
}

impl Boards {
    /// So many boards for a case, spread evenly over the band of each figure, one figure
    /// independently of another (Latin hypercube sampling: McKay, Beckman, Conover, Technometrics
    /// 21, 1979). `None` for a case without bands, where every board is the same.
    pub fn of(model: &CaseModel, count: usize) -> Option<Boards> {
        let bands = &model.programs.bands;
        let places = bands.iter().map(|band| spread(band, count)).collect();
        (!bands.is_empty()).then_some(Boards { places, count })
    }

    /// A board's place in each band, in the order of the case's bands; beyond the last board the
    /// middle.
    pub(crate) fn board(&self, number: usize) -> impl Iterator<Item = f64> + '_ {
        self.places.iter().map(move |places| places.get(number).copied().unwrap_or(0.5))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The places of all boards in a band: the middle of each of `count` equal parts, shuffled (Fisher
/// and Yates) by the figure's name.
fn spread((device, figure): &BandName, count: usize) -> Vec<f64> {
    let name = format!("{device} {figure}");
    let seed = name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
    let mut stream = Stream::new(seed, Purpose::Board);
    let mut places: Vec<f64> = (0..count).map(|part| (part as f64 + 0.5) / count as f64).collect();
    for last in (1..count).rev() {
        let other = (stream.uniform() * (last + 1) as f64) as usize;
        places.swap(last, other);
    }
    places
}

#[cfg(test)]
mod tests {
    use warifu_model::{BandOf, HashAlgorithm, Primitive};

    use super::*;

    #[test]
    fn evenly_over_the_band_and_by_the_figure_alone() {
        let band =
            |device: &str, hash| (device.to_owned(), BandOf::Primitive(Primitive::Hash(hash)));
        let (sha256, sha384) = (HashAlgorithm::Sha256, HashAlgorithm::Sha384);
        let one = spread(&band("a", sha256), 200);
        let mut sorted = one.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.iter().enumerate().all(|(at, place)| *place == (at as f64 + 0.5) / 200.0));
        assert_ne!(one, sorted);
        assert_eq!(one, spread(&band("a", sha256), 200));
        for other in [band("b", sha256), band("a", sha384)] {
            let other = spread(&other, 200);
            // Independent ones have a correlation of 0 with a standard error of 1/sqrt(199).
            let centred = |place: &f64| place - 0.5;
            let products = one.iter().zip(&other).map(|(a, b)| centred(a) * centred(b));
            let correlation = products.sum::<f64>() / 200.0 * 12.0;
            assert!(correlation.abs() < 0.25, "{correlation}");
        }
    }
}

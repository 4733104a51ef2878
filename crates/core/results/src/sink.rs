// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a case's observations go.

use crate::{Boards, CaseRows, Noise, ResultsError, Strata, Timelines};

/// Takes finished cases, one at a time, in any order; the simulator's driver calls it from the
/// one thread that gathers the results.
pub trait Sink: Send {
    /// Takes one finished case.
    ///
    /// # Errors
    /// When it cannot be stored; no further case should be offered then.
    fn case(&mut self, case: &CaseRows) -> Result<(), ResultsError>;

    /// Takes what its cases take on each board, once, after the last of them; not where every board
    /// is the same.
    ///
    /// # Errors
    /// As [`Sink::case`].
    fn boards(&mut self, boards: &Boards) -> Result<(), ResultsError>;

    /// Takes its cases' connections by what their clients know of losses, once, after the last of
    /// them; not where there are no such connections.
    ///
    /// # Errors
    /// As [`Sink::case`].
    fn strata(&mut self, strata: &Strata) -> Result<(), ResultsError>;

    /// Takes how sure the probabilities of its cases of the exact tier are, once, after the last of
    /// them; not where there is no such case.
    ///
    /// # Errors
    /// As [`Sink::case`].
    fn noise(&mut self, noise: &Noise) -> Result<(), ResultsError>;

    /// Takes the timelines of some of its cases, once, after the last of them.
    ///
    /// # Errors
    /// As [`Sink::case`].
    fn timelines(&mut self, timelines: &Timelines) -> Result<(), ResultsError>;
}

/// Keeps everything in memory: for tests, and for few cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The cases in the order they came.
    pub cases: Vec<CaseRows>,
    /// What cases take on each board, if that came.
    pub boards: Option<Boards>,
    /// Connections by what their clients know of losses, if those came.
    pub strata: Option<Strata>,
    /// How sure probabilities are, if that came.
    pub noise: Option<Noise>,
    /// The timelines, if any came.
    pub timelines: Option<Timelines>,
}

impl Sink for Memory {
    fn case(&mut self, case: &CaseRows) -> Result<(), ResultsError> {
        self.cases.push(case.clone());
        Ok(())
    }

    fn boards(&mut self, boards: &Boards) -> Result<(), ResultsError> {
        self.boards = Some(boards.clone());
        Ok(())
    }

    fn strata(&mut self, strata: &Strata) -> Result<(), ResultsError> {
        self.strata = Some(strata.clone());
        Ok(())
    }

    fn noise(&mut self, noise: &Noise) -> Result<(), ResultsError> {
        self.noise = Some(noise.clone());
        Ok(())
    }

    fn timelines(&mut self, timelines: &Timelines) -> Result<(), ResultsError> {
        self.timelines = Some(timelines.clone());
        Ok(())
    }
}

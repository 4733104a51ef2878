// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a case's observations go.

use crate::{CaseRows, ResultsError};

/// Takes finished cases, one at a time, in any order; the simulator's driver calls it from the
/// one thread that gathers the results.
pub trait Sink: Send {
    /// Takes one finished case.
    ///
    /// # Errors
    /// When it cannot be stored; no further case should be offered then.
    fn case(&mut self, case: &CaseRows) -> Result<(), ResultsError>;
}

/// Keeps everything in memory: for tests, and for few cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The cases in the order they came.
    pub cases: Vec<CaseRows>,
}

impl Sink for Memory {
    fn case(&mut self, case: &CaseRows) -> Result<(), ResultsError> {
        self.cases.push(case.clone());
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rows of one case, column by column.

use warifu_model::{CaseId, Evidence, Method, Metric, Stage, Value};

/// All observations of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRows {
    /// The case.
    pub case_id: CaseId,
    /// Its settings, as `Case::columns` gives them.
    pub columns: Vec<Option<Value>>,
    /// How its values were obtained.
    pub method: Method,
    /// The weakest evidence among what they rest on.
    pub evidence: Evidence,
    /// What the weights of the observations are.
    pub weights: Weights,
    /// The observations.
    pub rows: Rows,
}

/// What the weights of a case's rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Numbers of trials: a sample, whose statistics have intervals.
    #[default]
    Trials,
    /// Probabilities: an exact distribution, in which losses are as in infinitely many trials. What
    /// those of the case's whole time and of failing lack to one is the probability of all that was
    /// not enumerated, of which nothing is known.
    Probabilities,
}

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which of the pattern's concurrent connections, from 0; not written for a metric of the whole
    /// scenario.
    pub connection: u32,
    /// Which trial, from 0; of a weighted distribution, which atom.
    pub trial: u64,
    /// What was observed.
    pub metric: Metric,
    /// Which part of it; `None` for the whole.
    pub stage: Option<Stage>,
    /// How much, in the metric's unit.
    pub value: f64,
    /// How many trials the row stands for, or its probability ([`Weights`]).
    pub weight: f64,
    /// The seed that repeats it: the trial's, or the study's for a weighted distribution.
    pub seed: u64,
}

/// Where a row lies on the timeline of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The operation or message: `client.sign`, `ClientHello`; `None` where the stage says it all.
    pub step: Option<String>,
    /// When it began, ns since the beginning of the trial.
    pub from_ns: u64,
    /// When it ended, ns since the beginning of the trial.
    pub until_ns: u64,
}

/// Observations, column by column; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub(crate) connection: Vec<u32>,
    pub(crate) trial: Vec<u64>,
    pub(crate) metric: Vec<Metric>,
    pub(crate) stage: Vec<Option<Stage>>,
    pub(crate) value: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) seed: Vec<u64>,
    /// The spans of the few rows that have one, by their index, ascending.
    pub(crate) spans: Vec<(usize, Span)>,
}

impl Rows {
    /// None yet, with room for `capacity`.
    pub fn with_capacity(capacity: usize) -> Rows {
        Rows {
            connection: Vec::with_capacity(capacity),
            trial: Vec::with_capacity(capacity),
            metric: Vec::with_capacity(capacity),
            stage: Vec::with_capacity(capacity),
            value: Vec::with_capacity(capacity),
            weight: Vec::with_capacity(capacity),
            seed: Vec::with_capacity(capacity),
            spans: Vec::new(),
        }
    }

    /// Adds one.
    pub fn push(&mut self, row: Row) {
        self.connection.push(row.connection);
        self.trial.push(row.trial);
        self.metric.push(row.metric);
        self.stage.push(row.stage);
        self.value.push(row.value);
        self.weight.push(row.weight);
        self.seed.push(row.seed);
    }

    /// Adds one that is a span of the timeline of its connection.
    pub fn push_span(&mut self, row: Row, span: Span) {
        self.spans.push((self.len(), span));
        self.push(row);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Forgets them and keeps the memory.
    pub fn clear(&mut self) {
        self.connection.clear();
        self.trial.clear();
        self.metric.clear();
        self.stage.clear();
        self.value.clear();
        self.weight.clear();
        self.seed.clear();
        self.spans.clear();
    }

    /// The one at `index`, or `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<Row> {
        Some(Row {
            connection: *self.connection.get(index)?,
            trial: *self.trial.get(index)?,
            metric: *self.metric.get(index)?,
            stage: *self.stage.get(index)?,
            value: *self.value.get(index)?,
            weight: *self.weight.get(index)?,
            seed: *self.seed.get(index)?,
        })
    }

    /// All of them, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

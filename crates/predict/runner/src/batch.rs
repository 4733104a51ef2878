// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All trials of all cases of a study, on all cores.
//!
//! Work is cut into chunks of trials, handed out in the order of the cases. A finished case goes
//! to the sink at once, and no thread runs far ahead of what is stored, so that memory is bounded;
//! a case of one chunk is put into rows by the thread that ran it. What comes out does not depend
//! on the number of threads: a trial's seed is its own, and the sink gets the cases in their order.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use thiserror::Error;
use warifu_model::{Case, Catalog, Evidence, Method, Metric, Study};
use warifu_results::{
    CaseRows, NOISE_BANDS, NOISE_VERSION, Noise, NoiseOfMetric, ResultsError, Rows, STRATA_VERSION,
    Sink, Strata, Stratum, Weights,
};
use warifu_sim::{CaseModel, Outcome, Simulator, TooManyPatterns, TrialSeeds, lacks};

use crate::boards::boards;
use crate::exact::{Exact, Treatment, exact};
use crate::rows::{Columns, Trials};
use crate::strata::{self, metric_with_strata};
use crate::timelines::{Picks, timelines};

/// Connections that a thread runs before it reports: some milliseconds of work.
const CHUNK_CONNECTIONS: u64 = 4_096;
/// Connections that a thread runs before it looks whether the run has ended.
const LOOK_CONNECTIONS: u64 = 256;
/// Connections that may be finished ahead of the case that is to be stored next, 250 B each.
const CONNECTIONS_AHEAD: u64 = 2_000_000;
/// Threads at most, whatever is asked for: more than any machine has processors.
const MOST_THREADS: usize = 1_024;
/// How long a thread that is so far ahead waits before it looks again.
const WAIT: Duration = Duration::from_millis(2);
/// Reports that may wait for each thread before it waits itself.
const WAITING_REPORTS: usize = 4;
/// Groups of a stored distribution; rows are twice as many at most. The share of trials within a
/// deadline is off by half a group at most, a twelfth of a point at 98 %.
const GROUPS: usize = 512;
/// Beyond so many cases a distribution is stored with fewer groups, so that the results of a
/// sweep of a hundred thousand cases stay below a gigabyte.
pub(crate) const MANY_CASES: usize = 1_000;
const GROUPS_OF_MANY: usize = 16;

/// What is stored of each case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// A weighted distribution of each metric, and the stages by bands of trials.
    #[default]
    Distribution,
    /// Every trial with every metric, and the stages that took time.
    Trials,
}

/// How what depends on chance is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// Trials, each with its own losses, costs and jitter.
    #[default]
    Events,
    /// Patterns of losses with their probabilities ([`Simulator::enumerate`]); trials where nothing
    /// is lost. A case that does not qualify is an error.
    Exact,
    /// Exact where a case qualifies, else by trials. One does not whose packets and losses are so
    /// many that the patterns that are taken at most would leave out more than two thousandths.
    Auto,
}

/// How a study is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads; 0 takes one for each processor.
    pub threads: usize,
    /// What is stored.
    pub keep: Keep,
    /// How chance is treated. Where every trial is stored there is no exact tier.
    pub tier: Tier,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Cases that are finished and stored.
    pub cases: u64,
    /// Trials that are finished.
    pub trials: u64,
    /// Connections that came to nothing.
    pub failed: u64,
    /// Of the cases that are stored, those whose devices' figures have bands.
    pub with_bands: u64,
    /// Of these, those that were run on every board, which is done after all trials.
    pub on_boards: u64,
    /// Of the cases that are stored, those of the exact tier.
    pub exact: u64,
    /// The largest probability that one of these left out.
    pub residual: f64,
    /// Whether every case is stored.
    pub complete: bool,
}

impl Progress {
    /// Cases that are done: one with bands is half done before it was run on every board.
    pub fn done(self) -> u64 {
        self.cases - self.with_bands.saturating_sub(self.on_boards).div_ceil(2)
    }
}

/// Why a study could not be run.
#[derive(Debug, Error)]
pub enum PredictError {
    /// A case asks for something that a profile lacks, or that cannot be.
    #[error(transparent)]
    Case(#[from] warifu_model::Error),
    /// The results cannot be stored.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Whether every case of the study can be compiled, so that a mistake in the last one is found
/// before the first is run. Cases that differ in the link's conditions alone are tried once.
///
/// # Errors
/// Of the first that cannot: all costs that the profiles lack for it, else what
/// [`CaseModel::compile`] says.
pub fn check(study: &Study, catalog: &Catalog, tier: Tier) -> Result<(), warifu_model::Error> {
    let mut tried = HashSet::new();
    let mut simulator = Simulator::new();
    for case in &study.cases {
        // What cases need does not say whether they qualify.
        if tried.insert(case.needs()) || tier == Tier::Exact {
            let model = CaseModel::compile(case, catalog)
                .map_err(|error| lacks(case, catalog).unwrap_or(error).in_file(&study.file))?;
            if tier == Tier::Exact {
                let message = match Treatment::of(&mut simulator, &model) {
                    Treatment::Enumerated | Treatment::ByTrials => continue,
                    Treatment::OtherChance => {
                        "is exact, and more than losses and costs depends on chance here (jitter, \
                         bursts of losses, several connections, bands of assumed figures, or \
                         UDP): use auto or events"
                            .to_owned()
                    }
                    Treatment::TooMany(TooManyPatterns { residual, most }) => format!(
                        "is exact, and the patterns of losses that are taken at most would leave \
                         out some {:.2} % of connections here (at most {:.2} %): less loss, fewer \
                         packets, or auto or events",
                        residual * 100.0,
                        most * 100.0
                    ),
                };
                return Err(warifu_model::Error::in_case("tier", message).in_file(&study.file));
            }
        }
    }
    Ok(())
}

/// Runs `study.predict_trials` trials of every case and gives each case to `sink`.
///
/// `tell` is called now and then from the calling thread. Setting `cancel` ends the run early;
/// cases stored until then are whole.
///
/// # Errors
/// A case that cannot be compiled (see [`check`]), and whatever the sink says.
pub fn predict(
    study: &Study,
    catalog: &Catalog,
    options: Options,
    sink: &mut dyn Sink,
    tell: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<Progress, PredictError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads.min(MOST_THREADS),
    };
    let job = Job::new(study, catalog, options, cancel);
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(threads * WAITING_REPORTS);
        for _ in 0..threads {
            let (sender, job) = (sender.clone(), &job);
            scope.spawn(move || job.work(&sender));
        }
        drop(sender);
        let result = Gathering::new(&job, sink).gather(&receiver, tell);
        let result = result.and_then(|mut gathered| {
            // Of what is stored, also where that is not all.
            if let Some(noise) = gathered.noise() {
                gathered.sink.noise(&noise)?;
            }
            if gathered.progress.complete {
                let mut at = gathered.progress;
                let mut on_boards = |on_boards| {
                    at.on_boards = on_boards;
                    tell(at);
                };
                let with_bands = gathered.banded();
                if !with_bands.is_empty() {
                    let found =
                        boards(study, catalog, &with_bands, threads, &mut on_boards, cancel)?;
                    gathered.progress.on_boards = gathered.progress.with_bands;
                    let Some(boards) = found else {
                        gathered.progress.complete = false;
                        return Ok(gathered.progress);
                    };
                    gathered.sink.boards(&boards)?;
                }
                if let Some(strata) = gathered.strata()? {
                    gathered.sink.strata(&strata)?;
                }
                let picks: Vec<Picks> = gathered.noted.iter().map(|of| of.picks).collect();
                gathered.sink.timelines(&timelines(study, catalog, &picks)?)?;
            }
            Ok(gathered.progress)
        });
        // Threads that still work find nobody to report to, and end.
        job.stop.store(true, Ordering::Relaxed);
        drop(receiver);
        result
    })
}

/// What all threads share.
struct Job<'a> {
    study: &'a Study,
    catalog: &'a Catalog,
    keep: Keep,
    tier: Tier,
    /// Trials that a thread runs before it looks whether the run has ended.
    trials_between_looks: u64,
    /// Trials in a chunk, and chunks in a case.
    chunk_trials: u64,
    chunks: u64,
    /// Cases that may be begun beyond the one that is to be stored next.
    cases_ahead: u64,
    /// The next chunk.
    next: AtomicU64,
    /// Cases that are stored.
    stored: AtomicU64,
    stop: AtomicBool,
    cancel: &'a AtomicBool,
}

/// A case's model, and whether the exact tier has it.
struct Compiled {
    model: CaseModel,
    enumerated: bool,
}

/// One chunk of one case.
struct Report {
    case: u64,
    chunk: u64,
    evidence: Evidence,
    has_bands: bool,
    trials: u64,
    failed: u64,
    content: Content,
}

/// What is noted of a case beside its rows, for what is made when all trials are done.
#[derive(Clone, Debug, Default)]
struct Noted {
    /// The connections that its timelines are made of.
    picks: Picks,
    /// `None` where its connections are not told apart.
    strata: Option<Vec<Stratum>>,
    /// Empty where it is not of the exact tier.
    noise: BTreeMap<String, NoiseOfMetric>,
}

/// What a chunk gave.
enum Content {
    /// A part of a case.
    Trials(Trials),
    /// All of a case.
    Rows(Rows, Noted),
    /// All of a case of the exact tier, the probability that it leaves out, and how sure the rest
    /// is.
    Exact(Rows, f64, BTreeMap<String, NoiseOfMetric>),
    /// Nothing: another chunk has all of the case.
    Nothing,
}

impl<'a> Job<'a> {
    fn new(
        study: &'a Study,
        catalog: &'a Catalog,
        Options { keep, tier, .. }: Options,
        cancel: &'a AtomicBool,
    ) -> Job<'a> {
        let trials = u64::from(study.predict_trials);
        let concurrent = study.cases.iter().map(|case| case.pattern.concurrent).max();
        let concurrent = u64::from(concurrent.unwrap_or(1).max(1));
        let chunk_trials = (CHUNK_CONNECTIONS / concurrent).max(1);
        let (next, stored) = (AtomicU64::new(0), AtomicU64::new(0));
        Job {
            study,
            catalog,
            keep,
            tier: if keep == Keep::Trials { Tier::Events } else { tier },
            trials_between_looks: (LOOK_CONNECTIONS / concurrent).max(1),
            chunk_trials,
            chunks: trials.div_ceil(chunk_trials).max(1),
            cases_ahead: CONNECTIONS_AHEAD / (trials * concurrent).max(1) + 1,
            next,
            stored,
            stop: AtomicBool::new(false),
            cancel,
        }
    }

    fn trials(&self) -> u64 {
        u64::from(self.study.predict_trials)
    }

    fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed)
    }

    fn work(&self, reports: &SyncSender<Result<Report, warifu_model::Error>>) {
        let mut simulator = Simulator::new();
        let mut outcome = Outcome::default();
        let mut compiled: Option<(u64, Compiled)> = None;
        while !self.ends() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let (case, chunk) = (index / self.chunks, index % self.chunks);
            let Some(choices) = self.study.cases.get(case as usize) else {
                return;
            };
            while case > self.stored.load(Ordering::Relaxed) + self.cases_ahead {
                if self.ends() {
                    return;
                }
                std::thread::sleep(WAIT);
            }
            let model = match compiled.take() {
                Some((of, model)) if of == case => Ok(model),
                _ => CaseModel::compile(choices, self.catalog)
                    .map(|model| {
                        let enumerated = self.tier != Tier::Events
                            && Treatment::of(&mut simulator, &model) == Treatment::Enumerated;
                        Compiled { model, enumerated }
                    })
                    .map_err(|error| error.in_file(&self.study.file)),
            };
            let sent = match model {
                Err(error) => reports.send(Err(error)),
                Ok(model) => {
                    let report = self.run(&mut simulator, &mut outcome, &model, (case, chunk));
                    compiled = Some((case, model));
                    match report {
                        Some(report) => reports.send(Ok(report)),
                        None => return,
                    }
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// One chunk; `None` if the run ended meanwhile.
    fn run(
        &self,
        simulator: &mut Simulator,
        outcome: &mut Outcome,
        Compiled { model, enumerated }: &Compiled,
        (case, chunk): (u64, u64),
    ) -> Option<Report> {
        let choices = self.study.cases.get(case as usize)?;
        if *enumerated {
            return self.run_exact(simulator, (choices, model), (case, chunk));
        }
        let seeds = TrialSeeds::new(self.study.seed, &choices.seed_id());
        let columns = Columns::of(choices);
        let range = chunk * self.chunk_trials..((chunk + 1) * self.chunk_trials).min(self.trials());
        let count = range.end.saturating_sub(range.start);
        let mut trials = Trials::default();
        let mut failed = 0;
        for trial in range {
            if trial.is_multiple_of(self.trials_between_looks) && self.ends() {
                return None;
            }
            let seed = seeds.of(trial);
            simulator.run(model, seed, outcome);
            columns.keep(&mut trials, trial, seed, outcome);
            failed += outcome.connections.iter().filter(|of| of.failed).count() as u64;
        }
        let content = match self.chunks {
            1 => Content::Rows(self.rows(choices, &[&trials]), self.note(&columns, &[&trials])),
            _ => Content::Trials(trials),
        };
        let (evidence, has_bands) = (model.evidence(), model.has_bands());
        Some(Report { case, chunk, evidence, has_bands, trials: count, failed, content })
    }

    /// A case of the exact tier, which is all in its first chunk.
    fn run_exact(
        &self,
        simulator: &mut Simulator,
        (choices, model): (&Case, &CaseModel),
        (case, chunk): (u64, u64),
    ) -> Option<Report> {
        let (evidence, has_bands) = (model.evidence(), false);
        if chunk > 0 {
            let (trials, failed, content) = (0, 0, Content::Nothing);
            return Some(Report { case, chunk, evidence, has_bands, trials, failed, content });
        }
        let Exact { rows, enumerated, failed, noise } =
            exact(simulator, (choices, model), self.groups(), self.study.seed, &mut || {
                !self.ends()
            })?;
        let noise = self.kept_noise(choices, noise);
        let content = Content::Exact(rows, enumerated.residual, noise);
        let trials = enumerated.trials;
        Some(Report { case, chunk, evidence, has_bands, trials, failed, content })
    }

    /// What is kept of a case's noise: of very many cases that of whole times and of failing alone.
    fn kept_noise(
        &self,
        case: &Case,
        mut noise: BTreeMap<String, NoiseOfMetric>,
    ) -> BTreeMap<String, NoiseOfMetric> {
        if self.study.cases.len() > MANY_CASES {
            let whole = Metric::with_stages(&case.stack).map_or("", Metric::name);
            noise.retain(|name, _| name == whole || name == Metric::ConnectionFailed.name());
        }
        noise
    }

    /// How many groups a distribution is stored in.
    fn groups(&self) -> usize {
        if self.study.cases.len() > MANY_CASES { GROUPS_OF_MANY } else { GROUPS }
    }

    /// What is noted of a case from its chunks in their order.
    fn note(&self, columns: &Columns, chunks: &[&Trials]) -> Noted {
        // So that the results of a sweep stay small.
        let few = self.study.cases.len() <= MANY_CASES;
        let strata = if few { columns.strata(chunks) } else { None };
        Noted { picks: columns.picks(chunks), strata, noise: BTreeMap::new() }
    }

    /// A case's rows from its chunks in their order.
    fn rows(&self, case: &Case, chunks: &[&Trials]) -> Rows {
        let columns = Columns::of(case);
        match self.keep {
            Keep::Trials => columns.every_trial(chunks),
            Keep::Distribution => columns.distributions(chunks, self.groups(), self.study.seed),
        }
    }
}

/// Puts chunks together to cases, and cases into their order.
struct Gathering<'a> {
    job: &'a Job<'a>,
    sink: &'a mut dyn Sink,
    progress: Progress,
    /// By case: its chunks so far.
    under_way: BTreeMap<u64, Vec<Report>>,
    /// Of the cases that are stored, what was noted.
    noted: Vec<Noted>,
    /// Whether the figures that each of them rests on have bands.
    has_bands: Vec<bool>,
}

impl<'a> Gathering<'a> {
    fn new(job: &'a Job<'a>, sink: &'a mut dyn Sink) -> Gathering<'a> {
        let (progress, under_way) = (Progress::default(), BTreeMap::new());
        let (noted, has_bands) = (Vec::new(), Vec::new());
        Gathering { job, sink, progress, under_way, noted, has_bands }
    }

    fn gather(
        mut self,
        reports: &Receiver<Result<Report, warifu_model::Error>>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Gathering<'a>, PredictError> {
        while let Ok(report) = reports.recv() {
            let report = report?;
            self.progress.trials += report.trials;
            self.progress.failed += report.failed;
            self.under_way.entry(report.case).or_default().push(report);
            self.store_finished()?;
            tell(self.progress);
            if self.job.cancel.load(Ordering::Relaxed) {
                break;
            }
        }
        self.progress.complete = self.progress.cases == self.job.study.cases.len() as u64;
        Ok(self)
    }

    /// The numbers of the cases whose figures have bands.
    fn banded(&self) -> Vec<usize> {
        let cases = self.has_bands.iter().enumerate();
        cases.filter_map(|(case, &has_bands)| has_bands.then_some(case)).collect()
    }

    /// The strata of all cases that have them; `None` where none has.
    fn strata(&self) -> Result<Option<Strata>, warifu_model::Error> {
        let Job { study, catalog, .. } = *self.job;
        let mut cases = BTreeMap::new();
        for (case, noted) in study.cases.iter().zip(&self.noted) {
            if let (Some(metric), Some(strata)) = (metric_with_strata(case), &noted.strata) {
                let of = (metric, self.job.trials(), strata.clone());
                cases.insert(case.id().0, strata::of_case(case, catalog, study.seed, of)?);
            }
        }
        Ok((!cases.is_empty()).then_some(Strata { version: STRATA_VERSION, cases }))
    }

    /// Takes the noise of all cases of the exact tier; `None` where none is.
    fn noise(&mut self) -> Option<Noise> {
        let cases = self.job.study.cases.iter().zip(&mut self.noted);
        let cases: BTreeMap<_, _> = cases
            .filter(|(_, noted)| !noted.noise.is_empty())
            .map(|(case, noted)| (case.id().0, std::mem::take(&mut noted.noise)))
            .collect();
        let (version, band_ends) = (NOISE_VERSION, NOISE_BANDS.to_vec());
        (!cases.is_empty()).then_some(Noise { version, band_ends, cases })
    }

    fn store_finished(&mut self) -> Result<(), PredictError> {
        while let Some(entry) = self.under_way.first_entry() {
            let whole = entry.get().len() as u64 == self.job.chunks;
            if *entry.key() != self.progress.cases || !whole {
                break;
            }
            let mut chunks = entry.remove();
            chunks.sort_unstable_by_key(|report| report.chunk);
            let has_bands = chunks.iter().any(|report| report.has_bands);
            self.has_bands.push(has_bands);
            self.progress.with_bands += u64::from(has_bands);
            let (rows, noted) = self.case_rows(chunks);
            self.sink.case(&rows)?;
            self.noted.push(noted);
            self.progress.cases += 1;
            self.job.stored.store(self.progress.cases, Ordering::Relaxed);
        }
        Ok(())
    }

    fn case_rows(&mut self, chunks: Vec<Report>) -> (CaseRows, Noted) {
        let case = &self.job.study.cases[self.progress.cases as usize];
        let evidence = Evidence::weakest(chunks.iter().map(|report| report.evidence));
        let mut whole = None;
        let mut parts = Vec::with_capacity(chunks.len());
        let mut weights = Weights::Trials;
        for report in chunks {
            match report.content {
                Content::Rows(rows, noted) => whole = Some((rows, noted)),
                Content::Trials(trials) => parts.push(trials),
                Content::Exact(rows, residual, noise) => {
                    whole = Some((rows, Noted { noise, ..Noted::default() }));
                    weights = Weights::Probabilities;
                    self.progress.exact += 1;
                    self.progress.residual = self.progress.residual.max(residual);
                }
                Content::Nothing => {}
            }
        }
        let (rows, noted) = whole.unwrap_or_else(|| {
            let parts: Vec<&Trials> = parts.iter().collect();
            (self.job.rows(case, &parts), self.job.note(&Columns::of(case), &parts))
        });
        let (case_id, columns, method) = (case.id(), case.columns(), Method::Simulated);
        (CaseRows { case_id, columns, method, evidence, weights, rows }, noted)
    }
}

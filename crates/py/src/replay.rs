// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaying what the lab's link did to measured connections.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Case, Layer, Metric, Role};
use warifu_sim::{
    CaseModel, Fate, Heading, KernelTime, LoggedConnection, LoggedPacket, Simulator, TrialSeeds,
};
use warifu_trace::scenario;

use crate::error::warifu_error;
use crate::study::{Study, case};

/// A message whose length depends on chance, as Python sees it: its number in the trace, whether
/// the client sends it, its name, how many of that name this end sent before, its shortest and its
/// longest length, B, whatever numbers are in it.
type VaryingMessage = (u32, bool, String, u32, u32, u32);

const TICKET: &str = "NewSessionTicket";

/// How much shorter or longer than the trace has it a message with random numbers in it may be, B:
/// two blocks of a ticket's cipher. Zeros at the beginning of a number make it shorter.
const NUMBERS: u32 = 32;

/// Connections between two looks at whether Ctrl-C was pressed.
const BETWEEN_SIGNALS: usize = 128;

/// The messages of a case whose lengths depend on chance, in the order of the trace. A ticket is
/// one of them whatever the trace says: numbers in it that begin with zeros are shorter, which
/// takes a block of the cipher from one in some thousands.
#[pyfunction]
pub(crate) fn varying_messages(study: &Study, index: usize) -> PyResult<Vec<VaryingMessage>> {
    let case = replayable(study, index)?;
    let scenario =
        scenario(case).map_err(|error| warifu_error(format!("{}: {error}", study.study.file)))?;
    let mut before: HashMap<(bool, &str), u32> = HashMap::new();
    let mut varying = Vec::new();
    let messages = scenario.episodes.iter().flat_map(|episode| &episode.trace.messages);
    for (number, of) in (0..).zip(messages) {
        let client = of.from.role == Role::Client;
        // Braces are of one that is encrypted.
        let name = of.label.trim_matches(['{', '}']);
        let count = before.entry((client, name)).or_default();
        if of.bytes.most() > of.bytes.fixed || name == TICKET {
            let least = of.bytes.fixed.saturating_sub(NUMBERS);
            let most = of.bytes.most().saturating_add(NUMBERS);
            varying.push((number, client, name.to_owned(), *count, least, most));
        }
        *count += 1;
    }
    Ok(varying)
}

/// Simulates measured connections of a case, each with the fates of its packets.
///
/// `packets` has lists of equal length: `trial` (ascending), `down`, `at_ns`, `seq`, `len`, `ack`,
/// `flags`, and `delay_ns`, which is negative for a packet that was lost. `trials`, `ends_ns`,
/// `sizes` (the number of a message and its length) and `began` (a [`KernelTime`] in the order of
/// its fields) have an entry for each connection, and so have the lists of the answer.
#[pyfunction]
#[pyo3(signature = (study, index, trials, ends_ns, sizes, packets, began))]
#[expect(clippy::too_many_arguments)] // columns of a table
pub(crate) fn replay<'py>(
    py: Python<'py>,
    study: &Study,
    index: usize,
    trials: Vec<u64>,
    ends_ns: Vec<u64>,
    sizes: Vec<Vec<(u32, u32)>>,
    packets: &Bound<'py, PyDict>,
    began: Vec<Option<(u64, u64, u64, u64)>>,
) -> PyResult<Bound<'py, PyDict>> {
    let case = replayable(study, index)?;
    if [ends_ns.len(), sizes.len(), began.len()].iter().any(|&length| length != trials.len()) {
        return Err(PyValueError::new_err("trials, ends_ns, sizes and began differ in length"));
    }
    let (of_trial, packets) = read_packets(packets)?;
    let model = CaseModel::compile(case, &study.catalog)
        .map_err(|error| warifu_error(error.in_file(&study.study.file)))?
        .to_replay();
    let seeds = TrialSeeds::new(study.study.seed, &case.seed_id());
    let mut simulator = Simulator::new();
    let mut found = Vec::with_capacity(trials.len());
    for from in (0..trials.len()).step_by(BETWEEN_SIGNALS) {
        let some = from..trials.len().min(from + BETWEEN_SIGNALS);
        found.extend(py.detach(|| -> Vec<_> {
            some.map(|index| {
                let trial = trials[index];
                let first = of_trial.partition_point(|&of| of < trial);
                let after = of_trial.partition_point(|&of| of <= trial);
                let (sizes, ends_ns) = (&sizes[index][..], ends_ns[index]);
                let began = began[index].map(|(tick_ns, jiffies, since_ns, monotonic_ns)| {
                    KernelTime { tick_ns, jiffies, since_ns, monotonic_ns }
                });
                let packets = &packets[first..after];
                let logged = LoggedConnection { sizes, packets, ends_ns, began };
                simulator.replay(&model, seeds.of(trial), &logged)
            })
            .collect()
        }));
        py.check_signals()?;
    }
    let whole = Metric::with_stages(&case.stack);
    let answer = PyDict::new(py);
    let column = |of: &dyn Fn(&warifu_sim::Replayed) -> u64| -> Vec<Option<u64>> {
        found.iter().map(|replayed| replayed.as_ref().map(of)).collect()
    };
    answer.set_item(
        "replayed_ns",
        column(&|of| whole.map_or(0, |metric| of.outcome.value(metric))),
    )?;
    let bytes = |metric: Metric| column(&|of| of.outcome.value(metric));
    answer.set_item("client_bytes", bytes(Metric::BytesClientSent))?;
    answer.set_item("server_bytes", bytes(Metric::BytesServerSent))?;
    answer.set_item("same_sequence", column(&|of| u64::from(of.same_retransmissions)))?;
    answer.set_item("only_simulated", column(&|of| of.unmatched.only_simulated.into()))?;
    answer.set_item("only_logged", column(&|of| of.unmatched.only_logged.into()))?;
    answer.set_item("acknowledgements", column(&|of| of.unmatched.acknowledgements.into()))?;
    Ok(answer)
}

/// A case whose connections can be replayed.
fn replayable(study: &Study, index: usize) -> PyResult<&Case> {
    let case = case(&study.study, index)?;
    if !case.stack.has(Layer::Tcp) || case.pattern.concurrent != 1 {
        let id = case.id().0;
        let message = format!("case {id} is not one TCP connection: it cannot be replayed");
        return Err(warifu_error(message));
    }
    Ok(case)
}

fn column<'py, T>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>>
where
    Vec<T>: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let list = columns.get_item(name)?;
    list.ok_or_else(|| PyValueError::new_err(format!("packets lack {name}")))?.extract()
}

/// The trial of each packet, and the packets, ordered by trial.
fn read_packets(columns: &Bound<'_, PyDict>) -> PyResult<(Vec<u64>, Vec<LoggedPacket>)> {
    let trial: Vec<u64> = column(columns, "trial")?;
    let down: Vec<bool> = column(columns, "down")?;
    let at_ns: Vec<u64> = column(columns, "at_ns")?;
    let seq: Vec<u32> = column(columns, "seq")?;
    let len: Vec<u32> = column(columns, "len")?;
    let ack: Vec<u32> = column(columns, "ack")?;
    let flags: Vec<u8> = column(columns, "flags")?;
    let delay_ns: Vec<i64> = column(columns, "delay_ns")?;
    let lengths =
        [down.len(), at_ns.len(), seq.len(), len.len(), ack.len(), flags.len(), delay_ns.len()];
    if lengths.iter().any(|&length| length != trial.len()) {
        return Err(PyValueError::new_err("the columns of packets differ in length"));
    }
    if !trial.is_sorted() {
        return Err(PyValueError::new_err("packets are not in the order of their trials"));
    }
    let packet = |index: usize| LoggedPacket {
        heading: if down[index] { Heading::Down } else { Heading::Up },
        at_ns: at_ns[index],
        seq: seq[index],
        len: len[index],
        ack: ack[index],
        flags: flags[index],
        fate: match u64::try_from(delay_ns[index]) {
            Ok(delay_ns) => Fate::Delivered { delay_ns },
            Err(_) => Fate::Lost,
        },
    };
    let packets = (0..trial.len()).map(packet).collect();
    Ok((trial, packets))
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs on the simulated Cortex-M3.

mod debug;
mod profile;
mod size;
mod taint;
mod trace;

pub(crate) use debug::M3Debugger;
pub(crate) use profile::m3_profile;
pub(crate) use size::m3_size;
pub(crate) use taint::m3_taint;
pub(crate) use trace::m3_trace;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine, Observer, Unobserved};
use warifu_m3::memory::Memory;
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;

use crate::error::warifu_error;

/// Instructions between two checks of Python's signals: some tenths of a second.
const SLICE: u64 = 50_000_000;
/// The same with an observer, which is slower.
const WATCHED_SLICE: u64 = 5_000_000;
/// Instructions between two checks of an observer's work.
const STEP: u64 = 1000;
/// Bytes labelled between two checks of Python's signals at most: some tenths of a second.
const MAX_LABELLED: u64 = 1 << 30;
/// Bytes of an unfinished line of output that are held back at most.
const LINE: usize = 4096;

/// The names of the chips that are known.
#[pyfunction]
pub(crate) fn m3_chips() -> Vec<&'static str> {
    warifu_m3::chip::names()
}

/// A chip by its name, or that of its file's text.
pub(crate) fn chip_of(name: &str, file: Option<&str>) -> PyResult<Chip> {
    match file {
        Some(text) => Chip::parse(text).map_err(warifu_error),
        None => name.parse().map_err(warifu_error),
    }
}

/// A chip's description as JSON.
#[pyfunction]
#[pyo3(signature = (name, file))]
pub(crate) fn m3_chip(name: &str, file: Option<&str>) -> PyResult<String> {
    let chip = chip_of(name, file)?;
    let memories = chip.regions.iter().map(|region| {
        serde_json::json!({
            "name": region.name, "address": region.base, "bytes": region.bytes,
            "writable": region.writable, "lines": region.lines.is_some(),
        })
    });
    let answer = serde_json::json!({
        "name": chip.name, "source": chip.source, "vector_table": chip.vector_table,
        "memories": memories.collect::<Vec<_>>(),
    });
    Ok(answer.to_string())
}

/// The options of a run, a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    chip: String,
    chip_file: Option<String>,
    max_instructions: u64,
    wait_states: Vec<(String, u64)>,
    plain_wait_states: bool,
    deliver_faults: bool,
    low_reading: bool,
    input: Vec<u8>,
    arguments: String,
    any_core: bool,
}

impl Request {
    /// Loads a program; returns it with its limit of instructions.
    fn start(self, py: Python<'_>, program: &[u8]) -> PyResult<(Session, u64)> {
        let most = self.max_instructions;
        let setup = Setup {
            chip: self.chip,
            chip_file: self.chip_file,
            wait_states: self.wait_states,
            plain_wait_states: self.plain_wait_states,
            deliver_faults: self.deliver_faults,
            low_reading: self.low_reading,
            input: self.input,
            arguments: self.arguments,
            any_core: self.any_core,
        };
        let session = py.detach(|| Session::new(program, &setup)).map_err(warifu_error)?;
        Ok((session, most))
    }
}

/// Runs a program and returns the result.
#[pyfunction]
#[pyo3(signature = (program, request, output=None))]
pub(crate) fn m3_run<'py>(
    py: Python<'py>,
    program: &[u8],
    request: Request,
    output: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut session, most) = request.start(py, program)?;
    let stop = run(py, &mut session, most, output, &mut Unobserved, |_| 0)?;
    outcome(py, &session, &stop)
}

/// Runs to the end or to the first Python error: Ctrl-C, or one of the callback. `labelled` returns
/// the observer's work so far, of which a single instruction may cause a lot.
fn run<O: Observer + Send>(
    py: Python<'_>,
    session: &mut Session,
    most: u64,
    output: Option<Py<PyAny>>,
    observer: &mut O,
    labelled: impl Fn(&O) -> u64 + Send + Sync,
) -> PyResult<Stop> {
    let console = Console::attach(session, output);
    go_on(py, session, most, console.as_ref(), observer, labelled)
}

/// The same for a program that has its console.
fn go_on<O: Observer + Send>(
    py: Python<'_>,
    session: &mut Session,
    most: u64,
    console: Option<&Arc<Mutex<Console>>>,
    observer: &mut O,
    labelled: impl Fn(&O) -> u64 + Send + Sync,
) -> PyResult<Stop> {
    loop {
        let stop = py.detach(|| slice(&mut session.machine, most, &mut *observer, &labelled));
        Console::finish(console, py)?;
        py.check_signals()?;
        if stop != Stop::Paused {
            return Ok(stop);
        }
    }
}

/// Runs for some tenths of a second.
fn slice<O: Observer>(
    machine: &mut Machine,
    most: u64,
    observer: &mut O,
    labelled: impl Fn(&O) -> u64,
) -> Stop {
    let (length, step) = if O::ENABLED { (WATCHED_SLICE, STEP) } else { (SLICE, SLICE) };
    let end = machine.instructions.saturating_add(length);
    let enough = labelled(observer).saturating_add(MAX_LABELLED);
    loop {
        machine.pause_at = machine.instructions.saturating_add(step).min(end);
        let stop = machine.run_observed(Limits { instructions: most }, observer);
        if stop != Stop::Paused || machine.instructions >= end || labelled(observer) >= enough {
            return stop;
        }
    }
}

/// A program's output, passed to Python line by line.
struct Console {
    callback: Py<PyAny>,
    waiting: Vec<u8>,
    /// The exception of the callback, which is not called again.
    failed: Option<PyErr>,
    broken: bool,
}

impl Console {
    /// Passes a program's output to a callback, if there is one.
    fn attach(session: &mut Session, callback: Option<Py<PyAny>>) -> Option<Arc<Mutex<Console>>> {
        let callback = callback?;
        let console = Console { callback, waiting: Vec::new(), failed: None, broken: false };
        let console = Arc::new(Mutex::new(console));
        let printed = Arc::clone(&console);
        session.machine.semihosting.sink = Some(Box::new(move |bytes| {
            if let Ok(mut console) = printed.lock() {
                console.take(bytes);
            }
        }));
        Some(console)
    }

    /// Passes on what waits; returns the callback's exception, if it raised one.
    fn finish(console: Option<&Arc<Mutex<Console>>>, py: Python<'_>) -> PyResult<()> {
        let Some(Ok(mut console)) = console.map(|console| console.lock()) else { return Ok(()) };
        console.flush(py);
        console.failed.take().map_or(Ok(()), Err)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if bytes.contains(&b'\n') || self.waiting.len() >= LINE {
            Python::attach(|py| self.flush(py));
        }
    }

    fn flush(&mut self, py: Python<'_>) {
        let bytes = std::mem::take(&mut self.waiting);
        if bytes.is_empty() || self.broken {
            return;
        }
        if let Err(error) = self.callback.call1(py, (PyBytes::new(py, &bytes),)) {
            self.failed = Some(error);
            self.broken = true;
        }
    }
}

fn outcome<'py>(py: Python<'py>, session: &Session, stop: &Stop) -> PyResult<Bound<'py, PyDict>> {
    let machine = &session.machine;
    let (low, high) = (machine.core.clock.low, machine.core.clock.high);
    let registers = &machine.core.registers;
    let result = PyDict::new(py);
    result.set_item("stop", stop.name())?;
    result.set_item(
        "code",
        match stop {
            Stop::Exit { code } => Some(*code),
            _ => None,
        },
    )?;
    result.set_item("address", stop.address())?;
    result.set_item("message", session.describe(stop))?;
    result.set_item("other_core", &session.program.other_core)?;
    result.set_item("instructions", machine.instructions)?;
    result.set_item("cycles", (low, high))?;
    result.set_item("registers", registers.r.to_vec())?;
    result.set_item("xpsr", registers.xpsr())?;
    result.set_item("output", PyBytes::new(py, &machine.semihosting.output))?;
    result.set_item("lost_output", machine.semihosting.lost_output)?;
    result.set_item("marks", marks(py, &machine.core.memory)?)?;
    result.set_item("lost_marks", machine.core.memory.ports.lost_marks)?;
    Ok(result)
}

/// Name, cycles and stack pointer of each mark; marks with the same name share one string.
fn marks<'py>(py: Python<'py>, memory: &Memory) -> PyResult<Bound<'py, PyList>> {
    let mut names: HashMap<u32, Bound<'py, PyString>> = HashMap::new();
    let marks = PyList::empty(py);
    for mark in &memory.ports.marks {
        let name =
            names.entry(mark.text).or_insert_with(|| PyString::new(py, &memory.mark_name(mark)));
        marks.append((&*name, (mark.at.low, mark.at.high), mark.stack))?;
    }
    Ok(marks)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution traces of programs.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use warifu_m3::machine::{Limits, Unobserved};
use warifu_m3::program::Program;
use warifu_m3::session::Session;
use warifu_m3::stop::Stop;
use warifu_m3::trace::{Part, Tracer};

use super::{Console, Request, go_on, outcome};
use crate::error::warifu_error;

/// Instructions between two writes of the trace: some megabytes.
const STEP: u64 = 20_000;

/// Which part of a run is traced, a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Traced {
    since: Option<String>,
    until: Option<String>,
    call: Option<String>,
    limit: u64,
}

impl Traced {
    fn part(&self, program: &Program) -> PyResult<Part> {
        let place = |flag: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => program.place(text).map(Some).ok_or_else(|| {
                warifu_error(format!(
                    "the program has no symbol {text}: name with {flag} a function or label of \
                     it, a place such as main+0x1c, or an address such as 0x08000100"
                ))
            }),
        };
        if let Some(function) = place("--trace-call", &self.call)? {
            return Ok(Part::Call(function));
        }
        let since = place("--trace-from", &self.since)?;
        Ok(match (since, place("--trace-to", &self.until)?) {
            (None, None) => Part::All,
            (since, until) => Part::Between(since, until),
        })
    }
}

/// As `m3_run`, with a trace, which `write` receives as text; adds the number of its lines, and
/// whether the limit cut it off.
#[pyfunction]
#[pyo3(signature = (program, request, traced, write, output=None))]
pub(crate) fn m3_trace<'py>(
    py: Python<'py>,
    program: &[u8],
    request: Request,
    traced: Traced,
    write: Py<PyAny>,
    output: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut session, most) = request.start(py, program)?;
    let mut tracer = Tracer::new(&session.program, traced.part(&session.program)?, traced.limit);
    let console = Console::attach(&mut session, output);
    let mut stop = Stop::Paused;
    while stop == Stop::Paused && !tracer.is_done() {
        stop = py.detach(|| steps(&mut session, most, &mut tracer));
        // A signal would end the writing, and this part of the trace be lost.
        let interrupted = py.check_signals();
        write.call1(py, (PyBytes::new(py, tracer.take().as_bytes()),))?;
        Console::finish(console.as_ref(), py)?;
        interrupted?;
    }
    if stop == Stop::Paused {
        stop = go_on(py, &mut session, most, console.as_ref(), &mut Unobserved, |_| 0)?;
    }
    let result = outcome(py, &session, &stop)?;
    result.set_item("lines", tracer.lines())?;
    result.set_item("cut", tracer.is_cut())?;
    Ok(result)
}

/// Runs until there is something to write, or for some tenths of a second.
fn steps(session: &mut Session, most: u64, tracer: &mut Tracer) -> Stop {
    let machine = &mut session.machine;
    let end = machine.instructions.saturating_add(super::WATCHED_SLICE);
    loop {
        machine.pause_at = machine.instructions.saturating_add(STEP).min(end);
        let stop = machine.run_observed(Limits { instructions: most }, tracer);
        let is_due = tracer.waiting() > 0 || tracer.is_done() || machine.instructions >= end;
        if stop != Stop::Paused || is_due {
            return stop;
        }
    }
}

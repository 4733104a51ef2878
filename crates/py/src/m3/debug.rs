// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs under a debugger.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use warifu_m3::debug::{Debugger, State};

use super::{Console, Request, SLICE, outcome};

/// Instructions between two looks at what the debugger sends: some hundredths of a second.
const WATCHED: u64 = 500_000;

/// A program that waits for gdb. Whoever has the connection drives it: see `warifu._core`.
#[pyclass(name = "M3Debugger", unsendable)]
pub(crate) struct M3Debugger {
    debugger: Debugger,
    console: Option<Arc<Mutex<Console>>>,
}

#[pymethods]
impl M3Debugger {
    #[new]
    #[pyo3(signature = (program, request, output=None))]
    fn new(
        py: Python<'_>,
        program: &[u8],
        request: Request,
        output: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (mut session, most) = request.start(py, program)?;
        let console = Console::attach(&mut session, output);
        Ok(M3Debugger { debugger: Debugger::new(session, most), console })
    }

    #[getter]
    fn state(&self) -> &'static str {
        match self.debugger.state() {
            State::Halted => "halted",
            State::Running => "running",
            State::Alone => "alone",
            State::Ended(_) => "ended",
        }
    }

    #[getter]
    fn is_connected(&self) -> bool {
        self.debugger.is_connected()
    }

    fn connected(&mut self) {
        self.debugger.connected();
    }

    fn disconnected(&mut self) {
        self.debugger.disconnected();
    }

    fn receive(&mut self, py: Python<'_>, received: &[u8]) -> PyResult<()> {
        let debugger = &mut self.debugger;
        py.detach(|| debugger.receive(received));
        self.flush(py)
    }

    fn run(&mut self, py: Python<'_>) -> PyResult<()> {
        let debugger = &mut self.debugger;
        let slice = if *debugger.state() == State::Alone { SLICE } else { WATCHED };
        py.detach(|| debugger.run(slice));
        self.flush(py)?;
        py.check_signals()
    }

    fn take_output<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.debugger.take_output())
    }

    fn take_problem(&mut self) -> Option<String> {
        self.debugger.take_problem()
    }

    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.debugger.state() {
            State::Ended(stop) => outcome(py, self.debugger.session(), stop),
            _ => Err(PyRuntimeError::new_err("the run has not ended")),
        }
    }
}

impl M3Debugger {
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        Console::finish(self.console.as_ref(), py)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taint tracking of programs.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_m3::program::Program;
use warifu_m3::source::Source;
use warifu_m3::taint::{PoisonedBy, Report, Secret, Taint};

use super::{Request, outcome, run};
use crate::error::warifu_error;

/// Runs a program with taint tracking; adds the leaks as JSON. `secrets` are names of variables,
/// which are secret from each start of `from_function` on, in addition to what the program poisons.
#[pyfunction]
#[pyo3(signature = (program, request, secrets, from_function, output=None))]
pub(crate) fn m3_taint<'py>(
    py: Python<'py>,
    program: &[u8],
    request: Request,
    secrets: Vec<(String, Option<u32>)>,
    from_function: &str,
    output: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut session, most) = request.start(py, program)?;
    let source = Source::parse(program).map_err(warifu_error)?;
    let mut taint = Taint::new(&session.machine);
    if !secrets.is_empty() {
        let start = session.program.label(from_function).ok_or_else(|| {
            warifu_error(format!(
                "the program has no function {from_function}: name with --from the function at \
                 whose start the secrets become secret"
            ))
        })?;
        for (name, bytes) in secrets {
            taint.poison_when(start, secret(&session.program, name, bytes)?);
        }
    }
    let stop = run(py, &mut session, most, output, &mut taint, Taint::labelled)?;
    let result = outcome(py, &session, &stop)?;
    let report = Report::new(&taint, &session.program, &source);
    result.set_item("poisoned", taint.poisoned())?;
    result.set_item("taint", serde_json::to_string(&report).map_err(warifu_error)?)?;
    Ok(result)
}

fn secret(program: &Program, name: String, bytes: Option<u32>) -> PyResult<Secret> {
    let symbol = program.symbols.iter().find(|symbol| !symbol.is_function && symbol.name == name);
    let symbol = symbol.ok_or_else(|| {
        warifu_error(format!("the program has no variable {name}: name one with --secret"))
    })?;
    let bytes = bytes.unwrap_or(symbol.bytes);
    if bytes == 0 {
        return Err(warifu_error(format!(
            "the program does not give the size of {name}: use --secret {name}:BYTES"
        )));
    }
    if symbol.bytes != 0 && bytes > symbol.bytes {
        return Err(warifu_error(format!(
            "{name}:{bytes} is larger than the variable, which has {} bytes: remove :{bytes} or \
             lower it",
            symbol.bytes
        )));
    }
    Ok(Secret { address: symbol.address, bytes, by: PoisonedBy::Name(name) })
}

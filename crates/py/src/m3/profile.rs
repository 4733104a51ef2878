// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of programs.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use warifu_m3::profile::report::{FunctionRow, LineRow};
use warifu_m3::profile::{Profiler, Report};
use warifu_m3::program::Program;
use warifu_m3::source::{Source, SourceError};
use warifu_m3::timing::Cycles;

use super::{Request, outcome, run};
use crate::error::warifu_error;

/// Runs a program under the profiler; adds the profile as JSON, folded stacks and a flame graph.
#[pyfunction]
#[pyo3(signature = (program, request, output=None))]
pub(crate) fn m3_profile<'py>(
    py: Python<'py>,
    program: &[u8],
    request: Request,
    output: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut session, most) = request.start(py, program)?;
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let stop = run(py, &mut session, most, output, &mut profiler, |_| 0)?;
    let result = outcome(py, &session, &stop)?;
    // The session is not Sync: lend it as a whole.
    let session = &mut session;
    let (profile, folded, picture) = py
        .detach(move || {
            let mut report = profiler.report(&session.machine.core);
            let lines = lines(&mut report, &session.program, program)?;
            // Without executed instructions there is no flame graph.
            let picture = match report.stacks.is_empty() {
                true => String::new(),
                false => report.flame_graph("cycles by function")?,
            };
            Ok((json(&report, &lines).to_string(), report.folded(), picture))
        })
        .map_err(|error: String| warifu_error(error))?;
    result.set_item("profile", profile)?;
    result.set_item("folded", folded)?;
    result.set_item("flame_graph", picture)?;
    Ok(result)
}

/// Source lines; a file whose lines would take too much memory has none, and a note.
fn lines(report: &mut Report, program: &Program, file: &[u8]) -> Result<Vec<LineRow>, String> {
    let source = match Source::parse(file) {
        Ok(source) => Some(source),
        Err(error @ SourceError::TooLarge) => {
            report.notes.push(format!("no source lines: {error}"));
            None
        }
        Err(error) => return Err(error.to_string()),
    };
    let line = |address| {
        let line = source.as_ref()?.line(address)?;
        Some((line.file, line.line))
    };
    let function = |address| match program.symbol_at(address) {
        Some(symbol) => symbol.name.clone(),
        None => program.describe(address),
    };
    Ok(report.lines(line, function))
}

fn json(report: &Report, lines: &[LineRow]) -> Value {
    let heap = report.heap.as_ref().map(|heap| {
        json!({
            "peak": heap.peak, "live": heap.live, "allocations": heap.allocations,
            "failures": heap.failures, "grown": heap.grown,
        })
    });
    let sections = report.sections.iter().map(|section| {
        json!({
            "instructions": section.instructions, "stack": section.stack, "heap": section.heap,
        })
    });
    let stacks = report.deepest.iter().map(|(deepest, frames)| {
        json!({
            "top": deepest.top, "lowest": deepest.lowest, "bytes": deepest.bytes(),
            "frames": frames,
        })
    });
    let edges = report.edges.iter().map(|edge| {
        json!({
            "caller": edge.caller, "callee": edge.callee, "calls": edge.calls,
            "inclusive": band(edge.inclusive),
        })
    });
    json!({
        "functions": report.functions.iter().map(function).collect::<Vec<_>>(),
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "stacks": stacks.collect::<Vec<_>>(),
        "heap": heap,
        "sections": sections.collect::<Vec<_>>(),
        "notes": report.notes,
        "asleep": band(report.asleep),
    })
}

fn function(row: &FunctionRow) -> Value {
    json!({
        "name": row.name, "address": row.address, "calls": row.sum.calls,
        "instructions": row.sum.instructions, "exclusive": band(row.sum.exclusive),
        "inclusive": band(row.sum.inclusive), "stack": row.stack,
    })
}

fn line(row: &LineRow) -> Value {
    json!({
        "file": row.place.0, "line": row.place.1, "function": row.function,
        "address": row.address, "instructions": row.count.instructions,
        "cycles": band(row.count.cycles),
    })
}

fn band(cycles: Cycles) -> [u64; 2] {
    [cycles.low, cycles.high]
}

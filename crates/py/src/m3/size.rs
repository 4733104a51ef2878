// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program's use of flash and RAM.

use pyo3::prelude::*;
use serde_json::json;
use warifu_m3::size::{Kind, Sizes};

use crate::error::warifu_error;

/// The sizes of an ELF file's sections and symbols, and their use of a chip's memories, as JSON.
#[pyfunction]
#[pyo3(signature = (program, chip, chip_file))]
pub(crate) fn m3_size(
    py: Python<'_>,
    program: &[u8],
    chip: &str,
    chip_file: Option<&str>,
) -> PyResult<String> {
    let chip = super::chip_of(chip, chip_file)?;
    let sizes = py.detach(|| Sizes::of(program, &chip)).map_err(warifu_error)?;
    let sections = sizes.sections.iter().map(|section| {
        json!({
            "name": section.name, "kind": section.kind.name(), "address": section.address,
            "bytes": section.bytes,
        })
    });
    let symbols = sizes.symbols.iter().map(|symbol| {
        json!({
            "name": symbol.name, "section": symbol.section, "kind": symbol.kind.name(),
            "address": symbol.address, "bytes": symbol.bytes,
        })
    });
    let regions = sizes
        .regions
        .iter()
        .map(|region| json!({ "name": region.name, "bytes": region.bytes, "used": region.used }));
    let totals =
        Kind::ALL.into_iter().map(|kind| (kind.name().to_owned(), sizes.total(kind).into()));
    let answer = json!({
        "sections": sections.collect::<Vec<_>>(),
        "symbols": symbols.collect::<Vec<_>>(),
        "regions": regions.collect::<Vec<_>>(),
        "totals": totals.collect::<serde_json::Map<_, _>>(),
        "flash": sizes.flash(),
        "memory": sizes.memory(),
    });
    Ok(answer.to_string())
}

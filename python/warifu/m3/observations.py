# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes a run as observations, in a results folder (crates/core/results/src/schema.rs).

The columns are those of every observation. The case does not belong to a study: its choices are
the program, the chip and the options, and its metrics are those in `_UNITS`. `warifu.Results` reads
such a folder; compare and report, which expect connections, do not use it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from warifu import _core
from warifu.files import RESULTS_BYTES, FileRefused, read_text, replacing
from warifu.m3.chips import identity
from warifu.m3.profiling import Profile
from warifu.m3.running import Cycles, Run
from warifu.results import ResultsError

HALF = "emulated"
_UNITS = {
    "m3.instructions": "1",
    "m3.cycles.low": "cycles",
    "m3.cycles.high": "cycles",
    "m3.stack": "B",
    "m3.heap": "B",
    # Of a board (warifu.calibrate.board).
    "board.cycles": "cycles",
    "board.stack": "B",
}

Row = tuple[str, str | None, int, float]
"""Metric, stage (a mark; None for the whole run), trial (counts repetitions of a mark), value."""


def write(folder: Path, run: Run, profile: Profile | None, run_id: str, started: str) -> None:
    """Writes a run, with stack and heap if it was profiled; replaces an older one.

    Raises ResultsError if the folder holds other results; StorageError and OSError where the file
    system refuses.
    """
    what = About(run.program.stem, _choices(run), HALF, "emulated", _evidence(run), run_id, started)
    write_rows(folder, what, _rows(run, profile))


@dataclass(frozen=True)
class About:
    """What all rows of a folder have in common."""

    name: str
    """Takes the place of a study's."""
    choices: dict[str, str]
    """The choices that identify the case."""
    half: str
    method: str
    evidence: str
    run_id: str
    started: str


def write_rows(
    folder: Path, about: About, rows: Iterable[Row], units: Mapping[str, str] = _UNITS
) -> None:
    """Writes rows of one case as a results folder; replaces an older one of the same half. Each
    metric has its unit in `units`. Raises as `write` does."""
    refuse_others(folder, about.half)
    text = json.dumps(about.choices, sort_keys=True, separators=(",", ":"))
    case_id = _sha256(text.encode())[:16]
    frame = _frame(about, case_id, rows, units)
    written = io.BytesIO()
    frame.write_parquet(written)
    content = written.getvalue()
    manifest = {
        "schema_version": _core.SCHEMA_VERSION,
        "half": about.half,
        "run_id": about.run_id,
        "study": {"name": about.name, "sha256": _sha256(text.encode()), "text": text},
        "seed": 0,
        "started": about.started,
        "complete": True,
        "methods": [about.method],
        "evidence": [about.evidence],
        "cases": [{"case_id": case_id, "evidence": about.evidence, "case": about.choices}],
        "files": {
            f"observations/{case_id}.parquet": {"bytes": len(content), "sha256": _sha256(content)}
        },
        "tools": {"warifu": _core.__version__},
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Of a name that nobody has used: what it replaces must be results, and nothing else.
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}.", suffix=".partial"
        ) as partial:
            whole = Path(partial) / folder.name
            part = whole / "observations" / f"{case_id}.parquet"
            part.parent.mkdir(parents=True)
            with replacing(part) as file:
                file.write(content)
            _core.write_manifest(whole, json.dumps(manifest))
            _core.replace_results(whole, folder)
    except _core.StorageError:
        # No mistake of whoever asked: it has an exit code of its own.
        raise
    except _core.WarifuError as error:
        raise ResultsError(str(error)) from None


def refuse_others(folder: Path, own: str) -> None:
    """Raises ResultsError unless the folder is empty or holds an earlier run."""
    file = folder / "manifest.json"
    if not file.exists():
        return
    try:
        half = json.loads(read_text(file, RESULTS_BYTES))["half"]
    except (FileRefused, RecursionError, ValueError, KeyError, TypeError):
        half = "unknown"
    if half != own:
        raise ResultsError(
            f"{folder}: holds results of another kind ({half}): choose another folder with --out"
        )


def _choices(run: Run) -> dict[str, str]:
    """The choices that identify a case."""
    options = run.options
    # Left out for a Cortex-M3's programs, so that the ids of their cases stay.
    other = {} if run.other_core is None else {"built_for": run.other_core}
    return other | {
        "program": run.program.name,
        "program_sha256": _sha256(run.program.read_bytes()),
        "chip": identity(options.chip),
        "wait_states": ",".join(f"{name}={n}" for name, n in sorted(options.wait_states.items())),
        "plain_wait_states": str(options.plain_wait_states).lower(),
        "deliver_faults": str(options.deliver_faults).lower(),
        "arguments": options.arguments,
        "input_sha256": _sha256(options.input),
    }


def _rows(run: Run, profile: Profile | None) -> list[Row]:
    rows = _of(None, 0, run.instructions, run.cycles)
    if profile is None:
        met: dict[str, int] = {}
        for index, mark in enumerate(run.marks):
            end = run.cycles if index + 1 == len(run.marks) else run.marks[index + 1].at
            rows += _of(mark.name, _again(met, mark.name), None, end - mark.at)
        return rows
    rows.append(("m3.stack", None, 0, float(max((s.bytes for s in profile.stacks), default=0))))
    if profile.heap is not None:
        rows.append(("m3.heap", None, 0, float(profile.heap.peak)))
    met = {}
    for section in profile.sections:
        trial = _again(met, section.name)
        rows += _of(section.name, trial, section.instructions, section.cycles)
        rows.append(("m3.stack", section.name, trial, float(section.stack)))
        if profile.heap is not None:
            rows.append(("m3.heap", section.name, trial, float(section.heap)))
    return rows


def _of(stage: str | None, trial: int, instructions: int | None, cycles: Cycles) -> list[Row]:
    rows: list[Row] = [
        ("m3.cycles.low", stage, trial, float(cycles.low)),
        ("m3.cycles.high", stage, trial, float(cycles.high)),
    ]
    if instructions is not None:
        rows.append(("m3.instructions", stage, trial, float(instructions)))
    return rows


def _again(met: dict[str, int], name: str) -> int:
    met[name] = met.get(name, -1) + 1
    return met[name]


def _frame(
    about: About, case_id: str, rows: Iterable[Row], units: Mapping[str, str]
) -> pl.DataFrame:
    def record(row: Row) -> dict[str, Any]:
        metric, stage, trial, value = row
        return {
            "study": about.name, "case_id": case_id, **about.choices, "run_id": about.run_id,
            "connection": 0, "trial": trial, "metric": metric, "stage": stage, "step": None,
            "from_ns": None, "until_ns": None, "value": value, "unit": units[metric],
            "weight": 1.0, "exact": False, "method": about.method, "evidence": about.evidence,
            "seed": 0,
        }  # fmt: skip

    types = {
        "connection": pl.UInt32, "trial": pl.UInt64, "stage": pl.String, "step": pl.String,
        "from_ns": pl.UInt64, "until_ns": pl.UInt64, "seed": pl.UInt64,
    }  # fmt: skip
    return pl.DataFrame(list(map(record, rows)), schema_overrides=types)


def _evidence(run: Run) -> str:
    """Cycles follow the chip's published rules; wait states, which no board confirmed, do not, nor
    does another core."""
    return "assumed" if run.kind == "assumed" else "published"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

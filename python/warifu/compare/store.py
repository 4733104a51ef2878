# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`comparison.json`: a comparison kept beside the halves that it joins."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warifu.compare.exact import Bytes
from warifu.compare.gates import Verdict
from warifu.compare.join import CaseComparison, Comparison, Row
from warifu.compare.stats import Distance, Interval
from warifu.results import MEASURED, PREDICTED, ResultsError, read_manifest

FILE_NAME = "comparison.json"
VERSION = 5


def save(comparison: Comparison, folder: Path) -> Path:
    """Writes `comparison.json` into a study's results, whole or not at all."""
    path = folder / FILE_NAME
    partial = path.with_name(f".{FILE_NAME}.partial")
    text = json.dumps(_plain({"version": VERSION, **asdict(comparison)}), indent=1)
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def load(folder: Path) -> Comparison | None:
    """Reads `comparison.json`; None if there is none, or another version wrote it."""
    try:
        raw = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(raw, dict) or raw.pop("version", None) != VERSION:
        return None
    try:
        raw["cases"] = [_case(case) for case in raw["cases"]]
        raw["verdict"] = _verdict(raw["verdict"])
        return Comparison(**raw)
    except (KeyError, TypeError, ValueError):
        return None


def current(folder: Path) -> Comparison | None:
    """The comparison kept in a study's results, if it is of the very halves that are there now."""
    kept = load(folder)
    if kept is None:
        return None
    try:
        runs = [read_manifest(folder / half) for half in (PREDICTED, MEASURED)]
    except ResultsError:
        return None
    same = [run.get("run_id") for run in runs] == [kept.predicted_run, kept.measured_run]
    finished = max(str(run.get("finished") or "~") for run in runs)
    # A measurement that was taken up again keeps its run, and ends later.
    return kept if same and kept.halves_finished == finished else None


def _case(raw: dict[str, Any]) -> CaseComparison:
    raw["rows"] = [
        Row(
            **{
                **{key: _number(value) for key, value in row.items() if key in _FLOATS},
                **{key: value for key, value in row.items() if key not in _FLOATS},
                "interval": Interval(*map(_number, row["interval"])),
                "verdict": _verdict(row["verdict"]),
            }
        )
        for row in raw["rows"]
    ]
    raw["bytes"] = [Bytes(**{**one, "verdict": Verdict(one["verdict"])}) for one in raw["bytes"]]
    value, interval, chance = raw["wasserstein"]
    raw["wasserstein"] = Distance(
        _number(value), Interval(*map(_number, interval)), _number(chance)
    )
    gap, level = raw["kolmogorov"]
    raw["kolmogorov"] = (_number(gap), _number(level))
    raw["limit"] = _number(raw["limit"])
    raw["verdict"] = _verdict(raw["verdict"])
    return CaseComparison(**raw)


_FLOATS = frozenset({"predicted", "measured", "difference"})


def _verdict(raw: str | None) -> Verdict | None:
    return None if raw is None else Verdict(raw)


def _plain(value: object) -> object:
    """JSON has no infinities: they become text, and `_number` reads them back."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _number(value: float | str) -> float:
    return float(value)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`comparison.json`: a comparison kept beside the halves that it joins."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warifu.compare.comparison import CaseComparison, Comparison
from warifu.compare.conditions import Conditions
from warifu.compare.exact import Bytes
from warifu.compare.gates import Verdict
from warifu.compare.null_models import Beside
from warifu.compare.rows import Row
from warifu.compare.speed import MachineSpeed
from warifu.compare.stats import Distance, Interval
from warifu.files import RESULTS_BYTES, FileRefused, read_text, replace_text
from warifu.printable import lone_surrogate
from warifu.results import MEASURED, PREDICTED, ResultsError, read_manifest

FILE_NAME = "comparison.json"
VERSION = 13
#: No whole number of a comparison is beyond it, and each below it is a float as well.
_MOST = 2**63 - 1


def save(comparison: Comparison, folder: Path) -> Path:
    """Writes `comparison.json` into a study's results, whole or not at all."""
    path = folder / FILE_NAME
    text = json.dumps(_plain({"version": VERSION, **dataclasses.asdict(comparison)}), indent=1)
    replace_text(path, text + "\n")
    return path


def load(folder: Path) -> Comparison | None:
    """Reads `comparison.json`; None for none, a damaged one, and another version's."""
    try:
        text = read_text(folder / FILE_NAME, RESULTS_BYTES)
        raw = json.loads(text)
    except (OSError, FileRefused, ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or raw.pop("version", None) != VERSION:
        return None
    if lone_surrogate(text, raw) is not None:
        return None
    try:
        raw["cases"] = [_case(case) for case in raw["cases"]]
        raw["verdict"] = _verdict(raw["verdict"])
        kept = Comparison(**raw)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None
    # It can be made again at any time, so nothing is said of one that was changed.
    return kept if _fits(kept, Comparison) else None


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
                **row,
                **{key: _number(row[key]) for key in _FLOATS},
                "width": None if row["width"] is None else _number(row["width"]),
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
    raw["conditions"] = Conditions(**raw["conditions"])
    if raw["speed"] is not None:
        raw["speed"] = _speed(raw["speed"])
    raw["null_models"] = [
        Beside(one.pop("model"), one.pop("statistic"), **{key: _number(one[key]) for key in one})
        for one in raw["null_models"]
    ]
    raw["verdict"] = _verdict(raw["verdict"])
    return CaseComparison(**raw)


def _speed(raw: dict[str, Any]) -> MachineSpeed:
    """Raises ValueError for rounds that no interval can be made of, which takes two."""
    by_round, began = (tuple(map(_finite, raw[key])) for key in ("by_round", "began"))
    if len(by_round) != len(began) or len(by_round) < 2:
        raise ValueError(f"{len(by_round)} rounds, of which {len(began)} began")
    return MachineSpeed(**{**raw, "by_round": by_round, "began": began})


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


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value}: expected a finite number")
    return value


def _fits(value: object, kind: object) -> bool:
    """Whether a value is what the annotations of a comparison say."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        values = value if isinstance(value, tuple) else ()
        if arguments[1:] == (...,):
            return isinstance(value, tuple) and all(_fits(one, arguments[0]) for one in values)
        return len(values) == len(arguments) and all(map(_fits, values, arguments))
    if origin in (list, Sequence):
        return isinstance(value, list) and all(_fits(one, arguments[0]) for one in value)
    if kind is None or kind is type(None):
        return value is None
    if type(value) is int and abs(value) > _MOST:
        return False
    if kind is float:
        return type(value) in (int, float)
    if not isinstance(kind, type) or not isinstance(value, kind):
        return False
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        return all(_fits(getattr(value, name), hint) for name, hint in hints.items())
    return type(value) is kind

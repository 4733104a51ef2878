# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading `boards.json`: what a connection or a scenario takes on each board that a device of
assumed figures may be.

The format is that of crates/core/results/src/boards.rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warifu.printable import clipped
from warifu.results.distribution import Floats
from warifu.results.manifest import BOARDS
from warifu.results.sealed_json import MistakeError, not_as_written, read_sealed

VERSION = 2
_MOST_BYTES = 256 << 20
#: `warifu predict` simulates 100 at most, and 40 at least.
_LEAST_BOARDS, _MOST_BOARDS = 40, 10_000
#: Thirty years: no connection takes longer.
_MOST_NS = 10**18
_STATISTICS = ("p50", "p90", "p95", "p99", "mean")


@dataclass(frozen=True)
class Difference:
    """A difference with the ends of what the number of trials leaves open, ns."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class OnBoards:
    """A time of a case on each of the boards that its device's assumed figures allow."""

    #: What each board takes longer than the one in the middle of all bands, ns; infinite where
    #: failures reach that. The n-th of all cases is on one board.
    off_middle: Floats
    #: Statistics of the board in the middle less those of all boards together, ns; none of those
    #: that failures reach, or of which trials are too few.
    middle_less_all: Mapping[str, Difference]


#: By case id, by metric.
Boards = Mapping[str, Mapping[str, OnBoards]]


def read_boards(path: Path, manifest: dict[str, Any]) -> Boards:
    """The times of cases on each board. Empty where every board is the same, or the folder is of a
    version of Warifu that did not write it.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    value = read_sealed(path, manifest, BOARDS, _MOST_BYTES)
    if value is None:
        return {}
    try:
        return _cases(value)
    except MistakeError as mistake:
        raise not_as_written(path / BOARDS, str(mistake)) from None


def _cases(value: object) -> Boards:
    match value:
        case {"version": int(version), "boards": int(boards), "cases": list(cases)}:
            pass
        case _:
            raise MistakeError("has no version, boards or cases")
    if version != VERSION:
        raise MistakeError(f"version is {clipped(str(version))}: expected {VERSION}")
    if not _LEAST_BOARDS <= boards <= _MOST_BOARDS:
        said = f"expected {_LEAST_BOARDS} to {_MOST_BOARDS:,}"
        raise MistakeError(f"boards is {clipped(str(boards))}: {said}")
    found: dict[str, Mapping[str, OnBoards]] = {}
    for place, one in enumerate(cases):
        key = f"cases[{place}]"
        match one:
            case {"case_id": str(case_id), "metrics": list(metrics)} if case_id not in found:
                found[case_id] = _metrics(metrics, boards, key)
            case _:
                raise MistakeError(f"{key} has no case_id of its own, or no metrics")
    return found


def _metrics(metrics: list[object], boards: int, key: str) -> dict[str, OnBoards]:
    found = {}
    for place, one in enumerate(metrics):
        at = f"{key}.metrics[{place}]"
        match one:
            case {
                "metric": str(metric),
                "off_middle_ns": list(times),
                "middle_less_all_ns": dict(less),
            }:
                if len(times) != boards:
                    what = f"has {len(times)} values: expected {boards}"
                    raise MistakeError(f"{at}.off_middle_ns {what}")
                off = [_time(ns, f"{at}.off_middle_ns[{n}]") for n, ns in enumerate(times)]
                if less.keys() != set(_STATISTICS):
                    said = f"expected {', '.join(_STATISTICS)}"
                    raise MistakeError(f"{at}.middle_less_all_ns has other statistics: {said}")
                differences = {
                    name: _difference(one, f"{at}.middle_less_all_ns.{name}")
                    for name, one in less.items()
                    if one is not None
                }
                found[metric] = OnBoards(np.array(off), differences)
            case _:
                raise MistakeError(f"{at} has no metric, off_middle_ns or middle_less_all_ns")
    return found


def _time(value: object, key: str) -> float:
    # A bool is an int to Python, but not to JSON.
    if type(value) is int and abs(value) <= _MOST_NS:
        return float(value)
    if value is None:
        return np.inf
    raise MistakeError(f"{key} is {clipped(str(value))}: expected a time or null")


def _difference(value: object, key: str) -> Difference:
    match value:
        case {"low": low, "value": middle, "high": high, **more} if not more:
            ends = [low, middle, high]
            whole = all(type(one) is int and abs(one) <= _MOST_NS for one in ends)
            if whole and low <= middle <= high:
                return Difference(*map(float, ends))
    raise MistakeError(f"{key} is {clipped(str(value))}: expected low, value and high, or null")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading `boards.json`: what a connection takes on each board that a device of assumed figures
may be.

The format is that of crates/core/results/src/boards.rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from warifu.printable import clipped
from warifu.results.distribution import Floats
from warifu.results.manifest import BOARDS
from warifu.results.sealed_json import not_as_written, read_sealed

VERSION = 1
_MOST_BYTES = 256 << 20
#: `warifu predict` simulates 200 at most.
_MOST_BOARDS = 10_000
#: Thirty years: no connection takes longer.
_MOST_NS = 10**18


def read_boards(path: Path, manifest: dict[str, Any]) -> Mapping[str, Floats]:
    """What a typical connection of a case takes on each board, ns by case id; infinite where it
    fails. The n-th of all cases are of one board. Empty where every board is the same, or the
    folder is of a version of Warifu that did not write it.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    value = read_sealed(path, manifest, BOARDS, _MOST_BYTES)
    if value is None:
        return {}
    try:
        return _cases(value)
    except _MistakeError as mistake:
        raise not_as_written(path / BOARDS, str(mistake)) from None


class _MistakeError(ValueError):
    """What is wrong with the file's content."""


def _cases(value: object) -> dict[str, Floats]:
    match value:
        case {"version": int(version), "boards": int(boards), "cases": list(cases)}:
            pass
        case _:
            raise _MistakeError("has no version, boards or cases")
    if version != VERSION:
        raise _MistakeError(f"version is {clipped(str(version))}: expected {VERSION}")
    if not 0 < boards <= _MOST_BOARDS:
        raise _MistakeError(f"boards is {clipped(str(boards))}: expected 1 to {_MOST_BOARDS:,}")
    found = {}
    for place, one in enumerate(cases):
        match one:
            case {"case_id": str(case_id), "metric": str(), "total_ns": list(times)}:
                found[case_id] = _times(times, boards, f"cases[{place}].total_ns")
            case _:
                raise _MistakeError(f"cases[{place}] has no case_id, metric or total_ns")
    return found


def _times(times: list[object], boards: int, key: str) -> Floats:
    if len(times) != boards:
        raise _MistakeError(f"{key} has {len(times)} values: expected {boards}")
    found = []
    for at, one in enumerate(times):
        # A bool is an int to Python, but not to JSON.
        if type(one) is int and 0 <= one <= _MOST_NS:
            found.append(float(one))
        elif one is None:
            found.append(np.inf)
        else:
            raise _MistakeError(f"{key}[{at}] is {clipped(str(one))}: expected a time or null")
    return np.array(found)

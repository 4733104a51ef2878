# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of pqm4 and pqm3 (benchmarks.md, benchmarks.csv): cycles, none of them of a primitive
that a case uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warifu.devices.figures import NO_CASE, Collected, Output

TOOL = "pqm4 or pqm3 benchmarks"
_HEAD = re.compile(
    r"^\|? *scheme *\| *implementation *\|.*\[cycles\]|^scheme,implementation,",
    re.IGNORECASE,
)
#: Possessive, so that no line takes long to be refused.
_ROW = re.compile(
    r"^\|?+ *+([\w.+-]++) *+(?:\(\d++ executions\) *+)?+[|,] *+([\w.+-]++) *+[|,].*\d"
)


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """Names of schemes, each left out."""
    found = Collected()
    inside = False
    for line in lines:
        if _HEAD.search(line):
            inside = True
            found.lines += 1
        elif inside and (match := _ROW.search(line)):
            found.leave(f"{match[1]} {match[2]}", NO_CASE, understood=True)
        elif not line.strip(" |-:,"):
            continue
        else:
            inside = False
    output = found.output(TOOL)
    return None if output is None else replace(output, clock_hz=clock_hz)

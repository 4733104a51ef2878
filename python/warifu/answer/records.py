# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every case for programs: CSV, JSON, and data frames."""

from __future__ import annotations

from collections.abc import Sequence

from warifu.answer.model import MET, MISSED, UNDECIDED, Answer
from warifu.answer.tables import record
from warifu.compare.require import Judged
from warifu.report.summaries import half_table
from warifu.report.table import Table, Value
from warifu.results import Results

_WORDS = {"pass": MET, "fail": MISSED, "undecided": UNDECIDED}


def cases(found: Answer, halves: Sequence[Results], judged: Sequence[Judged]) -> Table:
    """One row a case: every setting, every figure of the halves, and all verdicts.

    The figures of the first half are named as they are, those of another by its name.
    """
    table = found.table()
    table.name = "cases"
    figures: dict[str, dict[str, Value]] = {}
    for at, half in enumerate(halves):
        settings = {name for case in half.cases.values() for name in case}
        for row in half_table(half).records:
            mine = figures.setdefault(str(row["case_id"]), {})
            for key, value in row.items():
                if at == 0:
                    mine[key] = value
                elif key not in settings and key not in {"case_id", "label", "half"}:
                    mine[f"{half.half}_{key}"] = value
    met = {
        (one.case_id, one.half, one.requirement.text): _WORDS[str(one.verdict)] for one in judged
    }
    table.records = [
        figures.get(row.case_id, {})
        | record(row, found)
        | {text: met.get((row.case_id, found.half, text)) for text in found.requirements}
        for row in found.rows
    ]
    return table

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How many rows and columns a file of observations may have, and how long they may be: known before
any is in memory.

Rows that repeat cost nearly nothing in Parquet: 20 million fit into a megabyte, and take gigabytes
when they are read. Columns that no observation has are settings of a case, and are read as well.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

from warifu.files import opened
from warifu.results.manifest import MEASURED, PREDICTED, ResultsError, damaged
from warifu.results.pages import MOST_BYTES, PagesRefused, refuse_large

#: Rows that are read of one file, for which a gigabyte suffices: more than twice those at which
#: `warifu predict` begins another file (crates/core/results/src/folder.rs, PART_ROWS), since each
#: ends with a whole case.
MOST_ROWS = 5_000_000
#: Four times what an observation has; a run of one program adds some of its own.
MOST_COLUMNS = 256
#: What `MOST_ROWS` of an observation's columns are.
MOST_VALUES = MOST_ROWS * 64
#: Rows of a connection whose trials are all kept: one a metric, one a stage of each, and the steps
#: of a timeline.
_ROWS_OF_A_CONNECTION = 256
#: Rows of a case that do not grow with its trials: distributions in groups, with bands of stages.
_ROWS_OF_A_CASE = 100_000


def refuse_too_many(manifest: dict[str, Any], part: Path) -> None:
    """Raises ResultsDamaged for a file with more rows than its manifest's cases and trials give,
    with pages that are longer than its rows or its footer give, and ResultsError for more rows or
    columns than are read. What its footer and the headers of its pages say is enough."""
    try:
        with opened(part) as file:
            size = refuse_large(file)
    except PagesRefused as refused:
        raise damaged(part, str(refused)) from None
    # From the footer alone: Polars counts without reading.
    content = pl.scan_parquet(part, glob=False)
    columns = len(content.collect_schema())
    if columns > MOST_COLUMNS:
        raise ResultsError(
            f"{part}: has {columns:,} columns, and {MOST_COLUMNS} are the most that is read: run "
            "the study again"
        )
    rows = int(content.select(pl.len()).collect().item())
    expected = _expected(manifest)
    if expected is not None and rows > expected:
        raise damaged(part, f"has {rows:,} rows, and its manifest's trials give {expected:,}")
    if rows > MOST_ROWS:
        raise ResultsError(
            f"{part}: has {rows:,} rows, and {MOST_ROWS:,} are the most that is read: run the "
            "study again with fewer trials, or without --keep-trials"
        )
    if size > MOST_BYTES:
        raise ResultsError(
            f"{part}: takes {size:,} bytes once it is decompressed, and {MOST_BYTES:,} are the "
            "most that is read: run the study again"
        )
    if rows * columns > MOST_VALUES:
        raise ResultsError(
            f"{part}: has {rows:,} rows of {columns} columns, and {MOST_VALUES:,} values are the "
            "most that is read: run the study again"
        )


def _expected(manifest: dict[str, Any]) -> int | None:
    """The most rows that the cases and trials of a manifest give; None where it does not say."""
    trials = _trials(manifest)
    if trials is None:
        return None
    # A study of very many cases lists none; it has what its lists span.
    cases = len(manifest["cases"]) or math.prod(len(values) for _, values in manifest["vary"])
    concurrent = max((_concurrent(one) for one in manifest["cases"]), default=1)
    return cases * (trials * concurrent * _ROWS_OF_A_CONNECTION + _ROWS_OF_A_CASE)


def _trials(manifest: dict[str, Any]) -> int | None:
    if manifest["half"] == PREDICTED:
        asked = manifest["predict_trials"]
        return asked if isinstance(asked, int) else None
    if manifest["half"] != MEASURED:
        return None
    cells = manifest["cells"].values()
    counts = [one["trials"] for one in cells if isinstance(one.get("trials"), int)]
    counts += [manifest["trials"]] if isinstance(manifest["trials"], int) else []
    return max(counts, default=None)


def _concurrent(case: dict[str, Any]) -> int:
    """How many connections a trial of a case opens at once."""
    pattern = case["case"].get("pattern")
    count = pattern.get("concurrent", 1) if isinstance(pattern, dict) else 1
    return max(1, count) if isinstance(count, int) else 1

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A judged study's replay in small: `NAME.replay.parquet` beside its archive (`archive`).

Pairs of times are kept to 1 us, of each part in the order of the measured time, which is stored as
the step from the one before: 160,000 connections have a megabyte. Trials are told by their place.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from warifu.files import FileRefused, read_bytes
from warifu.printable import clipped
from warifu.results.distribution import Floats
from warifu.results.manifest import ResultsDamaged
from warifu.results.pages import PagesRefused, refuse_large
from warifu.results.replay import ReplayOfCase
from warifu.results.trials import Trials

#: The largest file that is worth committing, and that is restored.
MOST_BYTES = 3_000_000
_MOST_ROWS = 2_000_000
_TICK_NS = 1_000
#: Thirty years: no connection takes longer.
_MOST_TICKS = 10**15
#: The key of a file's metadata that names the runs, the predicted one first, as JSON.
_RUNS = "warifu.replay.runs"
#: The predicted run and the measured one.
Runs = tuple[str, str]
_SCHEMA = {
    "case_id": pl.String,
    "part": pl.Int32,
    #: Ticks from the measured time before, in the same part.
    "step": pl.Int64,
    #: Replayed less measured, ticks; null where the replay came to nothing.
    "off": pl.Int64,
    "same_sequence": pl.Boolean,
    "divergent": pl.Boolean,
}
#: Beside them, where a case has it; null in the others. Older archives lack it.
_ACKNOWLEDGEMENTS = "other_acknowledgements"
_WITH_ACKNOWLEDGEMENTS = _SCHEMA | {_ACKNOWLEDGEMENTS: pl.Boolean}
#: What may be null.
_NULLABLE = {"off", _ACKNOWLEDGEMENTS}
_PART = ("case_id", "part")


def name_of(archive: Path) -> Path:
    """Where the replay of an archived study is."""
    return archive.with_suffix(".replay.parquet")


def packed(cases: Mapping[str, ReplayOfCase], runs: Runs) -> bytes:
    """A replay of two runs as the content of a file."""
    tables = [
        pl.DataFrame(
            {
                "case_id": [case_id] * one.trials.size,
                "part": one.part,
                "ticks": _ticks(one.measured_ns),
                "off": pl.Series(
                    _ticks(np.where(np.isfinite(one.replayed_ns), one.replayed_ns, 0.0))
                    - _ticks(one.measured_ns)
                ).set(pl.Series(~np.isfinite(one.replayed_ns)), None),
                "same_sequence": one.same_sequence,
                "divergent": one.divergent,
                _ACKNOWLEDGEMENTS: pl.Series(
                    [None] * one.trials.size
                    if one.other_acknowledgements is None
                    else one.other_acknowledgements,
                    dtype=pl.Boolean,
                ),
            }
        )
        for case_id, one in cases.items()
    ]
    table = pl.concat(tables).sort(
        *_PART, "ticks", "off", "same_sequence", "divergent", _ACKNOWLEDGEMENTS
    )
    known = any(one.other_acknowledgements is not None for one in cases.values())
    schema = _WITH_ACKNOWLEDGEMENTS if known else _SCHEMA
    step = pl.col("ticks") - pl.col("ticks").shift(1, fill_value=0).over(_PART)
    written = io.BytesIO()
    table.with_columns(step.alias("step")).select(*schema).cast(pl.Schema(schema)).write_parquet(
        written, compression="zstd", compression_level=19, statistics=False,
        metadata={_RUNS: json.dumps(runs)},
    )  # fmt: skip
    return written.getvalue()


def is_of(replay: ReplayOfCase, measured: Trials) -> bool:
    """Whether each measured time of a replay is that of a connection of its own, in the same part
    where that is known; both to 1 us."""
    if measured.part is None:
        return _are_among(replay.measured_ns, measured.values)
    parts = np.unique(replay.part)
    return all(
        _are_among(replay.measured_ns[replay.part == one], measured.values[measured.part == one])
        for one in parts
    )


def _are_among(some: Floats, every: Floats) -> bool:
    """Both ascend, so that each of the ones goes to the first of the others that is left."""
    ours, theirs = (np.sort(_ticks(one[np.isfinite(one)])) for one in (some, every))
    if ours.size == theirs.size:
        return bool((np.abs(ours - theirs) <= 1).all())
    left = iter(theirs.tolist())
    return all(any(abs(one - other) <= 1 for other in left) for one in ours.tolist())


def unpacked(source: Path, runs: Runs) -> dict[str, ReplayOfCase]:
    """The replay in a file. Raises ResultsDamaged for what is none, and for one of other runs."""
    try:
        content = read_bytes(source, MOST_BYTES)
        _refuse_other_runs(source, content, runs)
        refuse_large(io.BytesIO(content))
        found = pl.scan_parquet(io.BytesIO(content))
        columns = found.collect_schema()
        if columns not in (pl.Schema(_SCHEMA), pl.Schema(_WITH_ACKNOWLEDGEMENTS)):
            raise _damaged(source, "has other columns")
        if int(found.select(pl.len()).collect().item()) > _MOST_ROWS:
            raise _damaged(source, f"has more than {_MOST_ROWS:,} rows")
        table = found.collect()
    except (FileRefused, PagesRefused) as refused:
        raise _damaged(source, str(refused)) from None
    except OSError as error:
        raise _damaged(source, f"cannot be read: {error.strerror or error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(source, "is no whole Parquet file") from None
    if any(table[name].null_count() for name in table.columns if name not in _NULLABLE):
        raise _damaged(source, "lacks values")
    _refuse_other_times(source, table)
    if _ACKNOWLEDGEMENTS not in table.columns:
        table = table.with_columns(pl.lit(None, pl.Boolean).alias(_ACKNOWLEDGEMENTS))
    table = table.with_columns(pl.col("step").cum_sum().over(_PART).alias("ticks"))
    by_case = table.partition_by("case_id", as_dict=True, maintain_order=True)
    for rows in by_case.values():
        if rows[_ACKNOWLEDGEMENTS].null_count() not in {0, rows.height}:
            raise _damaged(source, "lacks values")
    return {str(key[0]): _case(rows) for key, rows in by_case.items()}


def _refuse_other_runs(source: Path, content: bytes, runs: Runs) -> None:
    """Older archives do not say of which runs they are."""
    said = pl.read_parquet_metadata(io.BytesIO(content)).get(_RUNS)
    if said is not None and said != json.dumps(runs):
        of, of_these = clipped(said), clipped(json.dumps(runs))
        raise _damaged(source, f"is of the runs {of}, but the archive beside it is of {of_these}")


def _refuse_other_times(source: Path, table: pl.DataFrame) -> None:
    """In floating point first, in which no sum begins again from below."""
    step, off = (pl.col(name).cast(pl.Float64) for name in ("step", "off"))
    measured = step.cum_sum().over(_PART)
    replayed = (measured + off).fill_null(0.0)
    possible = (step >= 0) & (pl.col("part") >= 0)
    possible &= measured.is_between(0, _MOST_TICKS) & replayed.is_between(0, _MOST_TICKS)
    if not table.select(possible.all()).item():
        raise _damaged(source, "has times that no connection takes")


def _case(rows: pl.DataFrame) -> ReplayOfCase:
    others = rows[_ACKNOWLEDGEMENTS]
    measured = rows["ticks"].to_numpy().astype(np.float64) * _TICK_NS
    off = rows["off"].cast(pl.Float64).fill_null(np.inf).to_numpy() * _TICK_NS
    return ReplayOfCase(
        np.arange(rows.height, dtype=np.int64),
        rows["part"].to_numpy().astype(np.int64),
        measured + off,
        measured,
        rows["same_sequence"].to_numpy(),
        rows["divergent"].to_numpy(),
        None if others.null_count() else others.to_numpy(),
    )


def _ticks(ns: np.ndarray) -> np.ndarray:
    return np.rint(ns / _TICK_NS).astype(np.int64)


def _damaged(source: Path, what: str) -> ResultsDamaged:
    return ResultsDamaged(f"{source}: {what}: take it from where it was committed")

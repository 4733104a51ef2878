# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What an archive keeps of single trials: to which part and stratum a whole time belongs.

Trials of a part and stratum are alike, so that which of them took which time is of no use to any
gate. They are numbered anew within their part, by stratum and time: then the times ascend, the
counts come in runs, and both take next to nothing in a compressed file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from warifu.results import metrics
from warifu.results.parts import Part, part_of_each
from warifu.results.trials import RETRANSMISSIONS, SYN_TIMEOUTS

_COUNTS = (SYN_TIMEOUTS, RETRANSMISSIONS)


def apart(
    rows: pl.DataFrame, whole: str, parts: Sequence[Part]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of a case without stages: those of which the distribution is kept, and those of
    single trials, numbered anew. Nothing of a case that was not measured in parts."""
    names = (whole, *_COUNTS, metrics.failure_of(whole))
    single = rows.filter(pl.col("metric").is_in(names))
    trials = _renumbered(single, whole, parts)
    if trials is None:
        return rows, rows.clear()
    numbered = single.join(trials, on=["connection", "trial"], how="left")
    numbered = numbered.with_columns(pl.col("renumbered").alias("trial")).drop("renumbered")
    runs = [_in_runs(numbered.filter(pl.col("metric") == name)) for name in names[1:]]
    times = numbered.filter(pl.col("metric") == whole)
    return rows.filter(~pl.col("metric").is_in(names)), pl.concat([times, *runs])


def each(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Rows of an archive, with a row for each trial of a run of counts.

    Raises ValueError where there would be more than ``most`` of those.
    """
    names = [*_COUNTS, *(one for one in _failures())]
    in_runs = (
        pl.col("metric").is_in(names) & (pl.col("weight") > 1) & (pl.col("half") == "measured")
    )
    runs = rows.filter(in_runs & pl.col("stage").is_null())
    if runs.is_empty():
        return rows
    if (trials := float(runs["weight"].sum())) > most:
        raise ValueError(f"it has {trials:,.0f} trials, and {most:,} are the most that is read")
    counts = runs["weight"].to_numpy().astype(np.int64)
    # 0 to the run's length, for each run.
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    index = pl.Series(np.repeat(np.arange(runs.height), counts))
    single = runs[index].with_columns(
        (pl.col("trial") + pl.Series(place)).alias("trial"), pl.lit(1.0).alias("weight")
    )
    return pl.concat([rows.filter(~(in_runs & pl.col("stage").is_null())), single])


def _failures() -> set[str]:
    return {metrics.failure_of(one) for one in metrics.all_wholes()}


def _renumbered(single: pl.DataFrame, whole: str, parts: Sequence[Part]) -> pl.DataFrame | None:
    """The new number of each trial; None where parts are not known, or a trial is several
    connections or a row several trials."""
    times = single.filter(pl.col("metric").is_in([whole, metrics.failure_of(whole)]))
    if not parts or times.is_empty() or (times["weight"] != 1.0).any():
        return None
    if times["trial"].is_duplicated().any():
        return None
    found = times.select(
        "connection",
        "trial",
        pl.when(pl.col("metric") == whole).then("value").otherwise(np.inf).alias("time"),
    )
    for name in _COUNTS:
        one = single.filter(pl.col("metric") == name)
        of = one.select("connection", "trial", pl.col("value").alias(name))
        found = found.join(of, on=["connection", "trial"], how="left")
    part = part_of_each(parts, found["trial"].cast(pl.Int64).to_numpy())
    if part is None:
        return None
    firsts = np.array([one.first_trial for one in parts])[part]
    found = found.with_columns(pl.Series("first", firsts)).sort("first", *_COUNTS, "time")
    place = pl.int_range(pl.len()).over("first")
    return found.select("connection", "trial", (pl.col("first") + place).alias("renumbered"))


def _in_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Consecutive trials with one value as one row, whose weight is their number."""
    rows = rows.sort("trial")
    new = (pl.col("value") != pl.col("value").shift(1)) | (
        pl.col("trial") != pl.col("trial").shift(1) + 1
    )
    run = new.fill_null(value=True).cum_sum().alias("run")
    others = [name for name in rows.columns if name not in {"weight", "trial"}]
    return (
        rows.with_columns(run)
        .group_by("run", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in others),
            pl.col("trial").first(),
            pl.len().cast(pl.Float64).alias("weight"),
        )
        .select(rows.columns)
    )

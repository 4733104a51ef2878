# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The single trials of a measured case: a value, its part, and what the client knew of losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from warifu.results import metrics
from warifu.results.distribution import Floats
from warifu.results.parts import Part, part_of_each
from warifu.results.strata import MOST_COUNTED

SYN_TIMEOUTS, RETRANSMISSIONS = "tcp.syn_timeouts", "tcp.client_retransmissions"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Trials:
    """An entry of each array for a connection that was counted once, in the order of trials."""

    trial: Ints
    #: ns; infinite for a connection that failed.
    values: Floats
    #: The part of each; None where the manifest does not tell.
    part: Ints | None
    #: Its SYN timeouts and retransmissions, each up to MOST_COUNTED, and -1 where it failed; None
    #: where they were not recorded.
    strata: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """How many connections."""
        return int(self.values.size)


def trials_of(frame: pl.DataFrame, metric: str, parts: Sequence[Part]) -> Trials:
    """From the rows of a case without stages. Rows of a weight above 1 are as many connections."""
    failure = metrics.failure_of(metric)
    times = frame.filter(pl.col("metric") == metric).select(
        "connection", "trial", "value", "weight"
    )
    failed = frame.filter((pl.col("metric") == failure) & (pl.col("value") > 0)).select(
        "connection", "trial", pl.lit(np.inf).alias("value"), "weight"
    )
    rows = pl.concat([times, failed]).sort("trial", "connection", "value", maintain_order=True)
    strata = _strata(frame, rows)
    counts = np.maximum(1, np.round(rows["weight"].to_numpy())).astype(np.int64)
    trial = np.repeat(rows["trial"].cast(pl.Int64).to_numpy(), counts)
    values = np.repeat(rows["value"].cast(pl.Float64).to_numpy(), counts)
    of = None if strata is None else np.repeat(strata, counts, axis=0)
    return Trials(trial, values, part_of_each(parts, trial), of)


def _strata(frame: pl.DataFrame, rows: pl.DataFrame) -> NDArray[np.int64] | None:
    """SYN timeouts and retransmissions of each row, (n, 2); None where a time lacks one."""
    found = rows
    for name in (SYN_TIMEOUTS, RETRANSMISSIONS):
        one = frame.filter(pl.col("metric") == name).select(
            "connection", "trial", pl.col("value").alias(name)
        )
        if one.is_empty() or one.select("connection", "trial").is_duplicated().any():
            return None
        found = found.join(one, on=["connection", "trial"], how="left", maintain_order="left")
    counted = found.select(SYN_TIMEOUTS, RETRANSMISSIONS).fill_null(-1.0).to_numpy()
    completed = np.isfinite(rows["value"].to_numpy())
    if (counted[completed] < 0).any():
        return None
    # Polars may lend its own memory, which is read-only: a new array, not an assignment.
    of_completed = np.where(completed[:, None], counted, -1.0)
    whole: Ints = np.minimum(of_completed, MOST_COUNTED).astype(np.int64)
    return whole

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What rows of observations may hold: numbers that a run of their manifest can have come to.

Seals say that a file is the one that its manifest lists, and anybody can make both anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

import warifu._core as _core
from warifu.printable import clipped
from warifu.results.limits import MOST_ROWS
from warifu.results.manifest import MEASURED, PREDICTED, damaged

#: How observations of either half are obtained (warifu_model::Method).
_METHODS = {PREDICTED: ("simulated",), MEASURED: ("emulated", "measured")}
#: Times and counts are integers of 63 bits at most, wherever they are made.
MOST_AMOUNT = 2.0**63
#: Connections of a predicted case whose manifest has no number of trials.
_MOST_PREDICTED = 2.0**32
#: What sums of probabilities may exceed one by rounding alone.
_ROUNDING = 1e-9
#: What tells a row of a case from its others.
_KEY = ("case_id", "connection", "trial", "metric", "stage")
_NEVER_NULL = ("case_id", "trial", "metric", "run_id", "method", "exact")


def check_values(
    rows: pl.DataFrame,
    part: Path,
    manifest: Mapping[str, Any],
    concurrent: Callable[[str], int],
) -> None:
    """Raises ResultsDamaged for rows that no run of the manifest wrote; ``rows`` are those of a
    file's cases without timelines, and ``concurrent`` is how many connections a trial of a case
    opens at once."""
    check_numbers(rows, part)
    half = manifest["half"]
    if half not in _METHODS:
        return
    for name in _NEVER_NULL:
        if rows[name].null_count():
            raise damaged(part, f"has a row without {name}")
    _check_run(rows, part, manifest)
    _check_amounts(rows, part)
    if half == MEASURED:
        _check_measured(rows, part)
    _check_weights(rows, part, manifest, concurrent)


def check_numbers(rows: pl.DataFrame, part: Path) -> None:
    """Raises ResultsDamaged for values that are no numbers, and weights that weigh nothing."""
    weight = pl.col("weight")
    numbers = pl.col("value").is_finite() & weight.is_between(0.0, MOST_AMOUNT)
    if not rows.select(numbers.fill_null(value=False).all()).item():
        raise damaged(part, "holds a value or a weight that is no number")


def _check_run(rows: pl.DataFrame, part: Path, manifest: Mapping[str, Any]) -> None:
    for run_id in rows["run_id"].unique():
        if run_id != manifest["run_id"]:
            said = f"manifest.json is of {clipped(str(manifest['run_id']))}"
            raise damaged(part, f"holds rows of the run {clipped(run_id)}, and {said}")
    for method in rows["method"].unique():
        if method not in _METHODS[manifest["half"]]:
            said = f"holds values that were {clipped(method)}"
            raise damaged(part, f"{said}, which none of the {manifest['half']} half are")


def _check_amounts(rows: pl.DataFrame, part: Path) -> None:
    most = pl.when(pl.col("metric").is_in(_failures())).then(1.0).otherwise(MOST_AMOUNT)
    value = pl.col("value")
    wrong = rows.filter((value < 0.0) | (value > most) | (value >= MOST_AMOUNT)).head(1)
    for row in wrong.iter_rows(named=True):
        what = f"holds {row['value']:g} {clipped(str(row['unit']))} of {clipped(row['metric'])}"
        said = "0 or 1" if row["metric"] in _failures() else "a number from 0 to below 2^63"
        raise damaged(part, f"{what}: expected {said}")
    units = _units()
    for metric, unit in rows.select("metric", "unit").unique().iter_rows():
        if metric in units and unit != units[metric]:
            said = f"holds {metric} in {clipped(str(unit))}"
            raise damaged(part, f"{said}: expected {units[metric]}")


def _check_measured(rows: pl.DataFrame, part: Path) -> None:
    """A row is one observation; of what was restored from an archive, so many equal ones."""
    if rows["exact"].any():
        raise damaged(part, "holds probabilities, and a measurement has none")
    weight = pl.col("weight")
    if not rows.select(((weight >= 1.0) & (weight == weight.floor())).all()).item():
        raise damaged(part, "has a weight that counts no trials")
    if rows.select(_KEY).n_unique() != rows.height:
        twice = rows.filter(rows.select(_KEY).is_duplicated()).row(0, named=True)
        raise damaged(part, f"has {clipped(twice['metric'])} of trial {twice['trial']} twice")


def _check_weights(
    rows: pl.DataFrame,
    part: Path,
    manifest: Mapping[str, Any],
    concurrent: Callable[[str], int],
) -> None:
    """Raises ResultsDamaged for more than a case's trials give, and more than certainty."""
    if rows.height and not rows.select((pl.col("weight") > 0.0).all()).item():
        raise damaged(part, "has a weight of 0, which stands for nothing")
    mixed = rows.group_by("case_id").agg(pl.col("exact").n_unique()).filter(pl.col("exact") > 1)
    for case_id in mixed["case_id"].head(1):
        raise damaged(part, f"mixes counts and probabilities in case {clipped(case_id)}")
    whole = rows.group_by("case_id", "metric", "stage").agg(
        pl.col("weight").sum(), pl.col("trial").max(), pl.col("exact").first()
    )
    groups = whole.join(_most_of_cases(rows, manifest, concurrent), on="case_id")
    if manifest["half"] == MEASURED:
        for row in groups.filter(pl.col("trial") >= pl.col("trials")).head(1).iter_rows(named=True):
            said = f"has trial {row['trial']} of case {clipped(row['case_id'])}"
            raise damaged(part, f"{said}, which was measured in {row['trials']:,.0f} trials")
    most = pl.when("exact").then(1.0).otherwise("most")
    beyond = groups.filter(pl.col("weight") > most * (1.0 + _ROUNDING)).with_columns(most=most)
    for row in beyond.head(1).iter_rows(named=True):
        of = f"{clipped(row['metric'])} of case {clipped(row['case_id'])}"
        said = f"add up to {row['weight']:.10g}, and {row['most']:.10g} are the most"
        raise damaged(part, f"the weights of {of} {said}")


def _most_of_cases(
    rows: pl.DataFrame, manifest: Mapping[str, Any], concurrent: Callable[[str], int]
) -> pl.DataFrame:
    """The number of trials of each case, null where the manifest does not say, and the most that
    weights may add up to."""
    # What is measured is taken apart into single connections.
    bound = float(MOST_ROWS) if manifest["half"] == MEASURED else _MOST_PREDICTED
    case_ids = rows["case_id"].unique().to_list()
    trials = [_trials(manifest, one) for one in case_ids]
    most = [
        bound if count is None else min(bound, float(count) * concurrent(case_id))
        for case_id, count in zip(case_ids, trials, strict=True)
    ]
    table = {"case_id": case_ids, "trials": trials, "most": most}
    schema = {"case_id": pl.String, "trials": pl.Float64, "most": pl.Float64}
    return pl.DataFrame(table, schema=schema, strict=False)


def _trials(manifest: Mapping[str, Any], case_id: str) -> int | None:
    """The trials of a case; None where the manifest does not say."""
    if manifest["half"] == PREDICTED:
        counts = [manifest.get("predict_trials")]
    else:
        # A cell may have more than were asked for, and one that is measured anew is finished before
        # its manifest says so.
        cell = (manifest.get("cells") or {}).get(case_id)
        counts = [manifest.get("trials"), cell.get("trials") if isinstance(cell, dict) else None]
    return max((one for one in counts if type(one) is int), default=None)


def check_settings(rows: pl.DataFrame, part: Path) -> None:
    """Raises ResultsDamaged for settings of cases that no link or protocol can have."""
    for name, unit in _numbers_of_settings().items():
        if name not in rows.columns or rows[name].dtype != pl.Float64:
            continue
        known = rows[name].drop_nulls()
        for value in known.filter(~known.is_between(0.0, _most_of(name, unit))).head(1):
            said = "0 to below 1" if name == "loss_mean" else "0 to 1"
            said = said if name.startswith("loss_") else "a number from 0 on"
            raise damaged(part, f"{name} is {value:g}: expected {said}")


def _most_of(name: str, unit: str) -> float:
    if name == "loss_mean":
        return math.nextafter(1.0, 0.0)
    return 1.0 if name.startswith("loss_") and unit == "1" else MOST_AMOUNT


def _numbers_of_settings() -> dict[str, str]:
    """The unit of each setting that may be a fraction."""
    return {
        name: unit
        for name, kind, unit, _ in _core.columns()
        if kind == "f64" and name not in {"value", "weight"}
    }


def _units() -> dict[str, str]:
    return {str(one["name"]): str(one["unit"]) for one in _core.metrics()}


def _failures() -> list[str]:
    return [str(one["name"]) for one in _core.metrics() if one["is_failure"]]

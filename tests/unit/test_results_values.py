# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Rows that no run wrote are refused, whatever the seals say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support.synthetic import Cell, Half, change_manifest
from warifu.results import Results, ResultsDamaged

CELL = Cell(loss=0.02)
TRIALS: dict[str, dict[str, Any]] = {
    "predicted": {"predict_trials": 50},
    "measured": {"trials": 10, "cells": {CELL.case_id: {"trials": 50, "parts": []}}},
}


def changed(folder: Path, half: str, columns: dict[str, Any], rows: int = 1) -> Path:
    """A half whose last rows, of one metric, say something else in some columns."""
    path = Half(half, [CELL], 50, seed=1, manifest=TRIALS[half]).write(folder)
    part = next(path.glob("observations/*.parquet"))
    table = pl.read_parquet(part).with_columns(exact=pl.lit(value=False))
    head, tail = table.head(table.height - rows), table.tail(rows)
    values = {name: pl.lit(one, table.schema[name]) for name, one in columns.items()}
    pl.concat([head, tail.with_columns(**values)]).write_parquet(part)
    return path


@pytest.mark.parametrize("half", ["predicted", "measured"])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"run_id": "other\x1b[2J"},
            r"rows of the run other\\x1b\[2J, and manifest.json is of run-",
        ),
        ({"run_id": "x" * 1_000_000}, r"rows of the run x{80}\.\.\., and"),
        ({"run_id": None}, "has a row without run_id"),
        ({"trial": None}, "has a row without trial"),
        ({"method": "guessed"}, "holds values that were guessed, which none of the"),
        ({"value": -1.0}, "holds -1 (ns|B) of .*: expected a number from 0 to below 2"),
        ({"value": 2.0**63}, "expected a number from 0 to below 2"),
        ({"metric": "connection.failed", "unit": "1", "value": 2.0}, "failed: expected 0 or 1"),
        ({"metric": "tcp.connect", "unit": "s"}, "holds tcp.connect in s: expected ns"),
        ({"weight": 0.0}, "a weight (of 0, which|that counts no)"),
        ({"weight": 1e12}, r"add up to 1e\+12, and 50 are the most"),
        ({"weight": 1e300}, "a weight that is no number"),
        ({"weight": 2.0}, "add up to 51, and 50 are the most"),
    ],
)
def test_rows_that_no_run_wrote(
    tmp_path: Path, half: str, columns: dict[str, Any], words: str
) -> None:
    results = Results.open(changed(tmp_path, half, columns))
    with pytest.raises(ResultsDamaged, match=words) as refused:
        results.rows(CELL.case_id)
    text = str(refused.value)
    assert "\n" not in text and len(text) < 600 and f"run `warifu {half[:7]}" in text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"method": "simulated"}, "holds values that were simulated, which none of the measured"),
        ({"exact": True}, "holds probabilities, and a measurement has none"),
        ({"weight": 0.5}, "has a weight that counts no trials"),
        ({"trial": 48}, "has bytes.server_sent of trial 48 twice"),
        ({"trial": 50}, "has trial 50 of case .*, which was measured in 50 trials"),
        ({"trial": 2**63}, "has trial 9223372036854775808 of case"),
    ],
)
def test_rows_that_no_measurement_wrote(
    tmp_path: Path, columns: dict[str, Any], words: str
) -> None:
    results = Results.open(changed(tmp_path, "measured", columns))
    with pytest.raises(ResultsDamaged, match=words):
        results.rows(CELL.case_id)


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        ({"exact": True}, 1, "mixes counts and probabilities in case"),
        ({"exact": True, "weight": 1.000001 / 50}, 10_000, "1.000001, and 1 are the most"),
    ],
)
def test_probabilities_that_are_none(
    tmp_path: Path, columns: dict[str, Any], rows: int, words: str
) -> None:
    results = Results.open(changed(tmp_path, "predicted", columns, rows))
    with pytest.raises(ResultsDamaged, match=words):
        results.rows(CELL.case_id)


def test_weights_of_a_run_without_a_number_of_trials(tmp_path: Path) -> None:
    """As many connections as that would be more than memory holds."""
    path = changed(tmp_path, "measured", {"weight": 1e12})
    change_manifest(path, cells={}, trials=None)
    with pytest.raises(ResultsDamaged, match="and 5000000 are the most"):
        Results.open(path).trials(CELL.case_id)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"loss_mean": float("nan")}, "loss_mean is nan: expected 0 to below 1"),
        ({"loss_mean": -1.0}, "loss_mean is -1: expected 0 to below 1"),
        ({"loss_mean": 1.0}, "loss_mean is 1: expected 0 to below 1"),
        ({"loss_bad": 1.5}, "loss_bad is 1.5: expected 0 to 1"),
        ({"jitter_mean_ns": float("inf")}, "jitter_mean_ns is inf: expected a number from 0 on"),
    ],
)
@pytest.mark.parametrize("half", ["predicted", "measured"])
def test_settings_that_no_case_has(
    tmp_path: Path, half: str, columns: dict[str, float], words: str
) -> None:
    path = Half(half, [CELL], 5, seed=1).write(tmp_path)
    part = next(path.glob("observations/*.parquet"))
    pl.read_parquet(part).with_columns(
        pl.lit(value).alias(name) for name, value in columns.items()
    ).write_parquet(part)
    with pytest.raises(ResultsDamaged, match=words):
        Results.open(path)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An archive is restored if all of it can be read and its files are of one run, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from support.synthetic import Cell, Half
from warifu.results import Results, ResultsDamaged, archive
from warifu.results.packets import can_be_replayed
from warifu.results.replay import ReplayOfCase, read_replay, write_replay

CELL = Cell(loss=0.02)
PARTS = [{"first_trial": 10 * at, "trials": 10, "seed": 1} for at in range(5)]
CELLS = {CELL.case_id: {"trials": 50, "parts": PARTS}}


def run(folder: Path, seed: int) -> Path:
    """An archived run with its replay and `run.json`."""
    Half("predicted", [CELL], 50, seed=1).write(folder)
    path = Half("measured", [CELL], 50, seed, manifest={"cells": CELLS}).write(folder)
    trials = Results.open(path).trials(CELL.case_id)
    assert trials.part is not None
    yes = np.ones(trials.size, dtype=np.bool_)
    of = ReplayOfCase(trials.trial, trials.part, trials.values + 7e6, trials.values, yes, ~yes)
    write_replay(folder, "run-predicted-1", f"run-measured-{seed}", {CELL.case_id: of})
    said = archive.archive(folder, folder / "a.parquet")
    (folder / "a.run.json").write_text(json.dumps(said))
    return folder / "a.parquet"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return run(tmp_path / "run", 2)


def refused(path: Path) -> str:
    """What is said of an archive of which nothing is restored."""
    target = path.parent.parent / "again"
    with pytest.raises(ResultsDamaged) as error:
        archive.restore(path, target)
    text = str(error.value)
    assert "\n" not in text and len(text) < 900
    assert not target.exists() and not list(target.parent.glob(".again*"))
    return text


def without_names(replay: Path) -> None:
    """As older versions kept it, without the runs that it is of."""
    pl.read_parquet(replay).write_parquet(replay)


@pytest.mark.parametrize("logged", [True, False])
def test_what_could_have_been_replayed_is_kept(tmp_path: Path, logged: bool) -> None:
    """Nothing was, and packets are not archived: the verdict must not be better for that."""
    packets = {"packets": {"rows": 5, "messages": 2}} if logged else {}
    cells = {CELL.case_id: {"trials": 50, "parts": [PARTS[0] | {"trials": 50} | packets]}}
    folder = tmp_path / "run"
    Half("predicted", [CELL], 50, seed=1).write(folder)
    Half("measured", [CELL], 50, 2, manifest={"cells": cells}).write(folder)
    said = archive.archive(folder, tmp_path / "a.parquet")
    (tmp_path / "a.run.json").write_text(json.dumps(said))
    archive.restore(tmp_path / "a.parquet", tmp_path / "again")
    restored = Results.open(tmp_path / "again" / "measured")
    assert can_be_replayed(restored.manifest, CELL.case_id) == logged


@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("has_run", [True, False])
def test_replay_of_the_run(kept: Path, has_names: bool, has_run: bool) -> None:
    if not has_names:
        without_names(kept.with_suffix(".replay.parquet"))
        said = kept.with_suffix(".run.json")
        run = json.loads(said.read_text())
        replay = kept.with_suffix(".replay.parquet").read_bytes()
        run["replay"]["sha256"] = hashlib.sha256(replay).hexdigest()
        said.write_text(json.dumps(run))
    if not has_run:
        kept.with_suffix(".run.json").unlink()
    target = kept.parent.parent / "again"
    archive.restore(kept, target)
    of = read_replay(target, "run-predicted-1", "run-measured-2")[CELL.case_id]
    assert of.trials.size == 50
    measured = Results.open(target / "measured")
    assert can_be_replayed(measured.manifest, CELL.case_id)
    unchecked = any("no run.json lay beside it" in one for one in measured.manifest["warnings"])
    assert unchecked == (not has_run)


@pytest.mark.parametrize(
    ("has_names", "has_run", "words"),
    [
        (True, True, "a.replay.parquet: is not of the run that a.run.json is of, which has anothe"),
        (False, True, "a.replay.parquet: is not of the run that a.run.json is of, which has anoth"),
        (
            True,
            False,
            '"run-measured-3"], but the archive beside it is of ["run-predicted-1", "run',
        ),
        (False, False, "is of another run: the times of case"),
    ],
)
def test_replay_of_another_run(kept: Path, has_names: bool, has_run: bool, words: str) -> None:
    other = run(kept.parent.parent / "other", 3).with_suffix(".replay.parquet")
    if not has_names:
        without_names(other)
    if not has_run:
        kept.with_suffix(".run.json").unlink()
    other.replace(kept.with_suffix(".replay.parquet"))
    assert words in refused(kept)


def test_replay_of_another_part(kept: Path) -> None:
    kept.with_suffix(".run.json").unlink()
    replay = kept.with_suffix(".replay.parquet")
    rows = pl.read_parquet(replay).with_columns(part=4 - pl.col("part"))
    rows.cast({"part": pl.Int32}).write_parquet(replay)
    assert "is of another run: the times of case" in refused(kept)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_replay_that_is_no_file(kept: Path, listed: bool, put: Callable[[Path], object]) -> None:
    if not listed:
        kept.with_suffix(".run.json").unlink()
    replay = kept.with_suffix(".replay.parquet")
    replay.unlink()
    put(replay)
    assert str(replay) in refused(kept)


def test_replay_and_run_that_are_missing(kept: Path) -> None:
    kept.with_suffix(".replay.parquet").unlink()
    kept.with_suffix(".run.json").unlink()
    target = kept.parent.parent / "again"
    archive.restore(kept, target)
    assert can_be_replayed(Results.open(target / "measured").manifest, CELL.case_id)


def test_run_json_that_does_not_say_whether_there_is_a_replay(kept: Path) -> None:
    said = kept.with_suffix(".run.json")
    run = json.loads(said.read_text())
    del run["replay"]
    said.write_text(json.dumps(run))
    assert "a.run.json: does not say whether a.replay.parquet is of its run" in refused(kept)


def test_replay_that_is_missing(kept: Path) -> None:
    kept.with_suffix(".replay.parquet").unlink()
    assert "a.replay.parquet: is missing, and a.run.json names it: take it from" in refused(kept)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"replay": None},
            "a.replay.parquet: is not of the run that a.run.json is of, which names",
        ),
        (
            {"sha256": "0" * 64},
            "a.parquet: is not of the run that a.run.json is of, which has anoth",
        ),
        ({"replay": 3}, "a.run.json: does not say what archive it is of"),
        (
            {"run_ids": {"predicted": "run-predicted-1", "measured": "run-measured-9"}},
            "a.run.json: names the measured run run-measured-9, and a.parquet is of run-measured-2",
        ),
        ({"run_ids": ["run-predicted-1"]}, "a.run.json: does not say which runs it is of"),
    ],
)
def test_run_json_of_another_run(kept: Path, change: dict[str, Any], words: str) -> None:
    said = kept.with_suffix(".run.json")
    said.write_text(json.dumps(json.loads(said.read_text()) | change))
    assert words in refused(kept)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"step": -1}, "has times that no connection takes"),
        ({"step": 2**62}, "has times that no connection takes"),
        ({"off": -(2**63)}, "has times that no connection takes"),
        ({"part": -1}, "has times that no connection takes"),
        ({"case_id": "another"}, "the times of case another are not those of the archive"),
    ],
)
def test_replay_that_none_wrote(kept: Path, columns: dict[str, Any], words: str) -> None:
    kept.with_suffix(".run.json").unlink()
    replay = kept.with_suffix(".replay.parquet")
    rows = pl.read_parquet(replay)
    values = {name: pl.lit(one, rows.schema[name]) for name, one in columns.items()}
    rows.with_columns(**values).write_parquet(replay)
    assert words in refused(kept)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"weight": 1e9}, "has a weight that counts no trials"),
        ({"weight": 90_000.0}, "trials, and 1,000,000 are the most that is read"),
        ({"weight": -5.0}, "has a weight that counts no trials"),
        ({"weight": None}, "has a weight that counts no trials"),
        ({"weight": float("nan")}, "has a weight that counts no trials"),
        ({"weight": 0.5}, "measured half: observations/part-00000.parquet: has a weight that"),
        ({"ticks": 2**62}, "is not a whole archive"),
        ({"half": "other"}, "has rows of neither half"),
        ({"half": "predicted", "method": "emulated"}, "holds values that were emulated, which"),
    ],
)
def test_rows_that_no_run_wrote(kept: Path, columns: dict[str, Any], words: str) -> None:
    kept.with_suffix(".run.json").unlink()
    rows, said = pl.read_parquet(kept), pl.read_parquet_metadata(kept)
    said.pop("ARROW:schema", None)
    chosen = pl.col("half") == "measured"
    if "weight" in columns and columns["weight"] == 90_000.0:
        rows = pl.concat([rows, rows.filter(pl.col("metric") == "bytes.client_sent")] * 10)
        rows = rows.with_columns(
            metric=pl.when(chosen).then(pl.lit("connection.failed")).otherwise("metric")
        )
    rows.with_columns(
        pl.when(chosen).then(pl.lit(one, rows.schema[name])).otherwise(name).alias(name)
        for name, one in columns.items()
    ).write_parquet(kept, metadata=said)
    assert words in refused(kept)


@pytest.mark.parametrize("text", ["{}", "[]", '{"version": 1, "cases": {"x": 3}}'])
def test_strata_that_are_none(kept: Path, text: str) -> None:
    kept.with_suffix(".run.json").unlink()
    said = pl.read_parquet_metadata(kept) | {"strata.json": text}
    said.pop("ARROW:schema", None)
    pl.read_parquet(kept).write_parquet(kept, metadata=said)
    assert "predicted half: strata.json: " in refused(kept)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is replayed of a measurement, and whether that was done."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from support.synthetic import Cell, Half
from support.synthetic import study as made_up
from warifu import replay
from warifu.results import Results

LOSSY = Cell(loss=0.02)
NOTHING_LOGGED = replay._Logged(pl.DataFrame({"trial": []}, schema={"trial": pl.Int32}), {}, [0])


def with_packets(trials: int, failed: int = 0) -> dict[str, object]:
    """A manifest that says that packets of a cell's only part are kept."""
    part = {"first_trial": 0, "trials": trials + failed, "seed": 1, "packets": {}}
    return {"cells": {LOSSY.case_id: {"trials": trials + failed, "parts": [part]}}}


def test_a_case_without_any_response_has_nothing_to_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Half("predicted", [LOSSY], 200, seed=1).write(tmp_path)
    Half("measured", [LOSSY], 0, 2, failed=50, manifest=with_packets(0, 50)).write(tmp_path)
    cases = [SimpleNamespace(id=LOSSY.case_id)]
    monkeypatch.setattr(replay, "_study", lambda _: SimpleNamespace(cases=cases))
    monkeypatch.setattr(replay, "_logged", lambda *_: NOTHING_LOGGED)
    assert replay.write(tmp_path) is None
    assert not (tmp_path / "replay.json").exists()


def test_connections_of_a_case_are_those_that_did_not_fail(tmp_path: Path) -> None:
    folder = made_up(tmp_path, [LOSSY], n=20, failed=3)
    found = replay._connections(Results.open(folder / "measured"), LOSSY.case_id, [0, 10])
    assert found is not None
    assert found.trials == list(range(20))
    assert found.parts == [0] * 10 + [1] * 10

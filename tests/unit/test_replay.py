# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is replayed of a measurement, and whether that was done."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from support.synthetic import Cell, Half, change_manifest
from support.synthetic import study as made_up
from warifu import _core, replay
from warifu.cli import verdicts
from warifu.results import Results, ResultsError, packets
from warifu.results.parts import Ticks
from warifu.results.replay import ReplayOfCase, write_replay

LOSSY = Cell(loss=0.02)
NOTHING_LOGGED = replay._Logged(
    pl.DataFrame({"trial": []}, schema={"trial": pl.Int32}), {}, [0], {}
)


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


def of_trials(trials: list[int]) -> ReplayOfCase:
    size, yes = len(trials), np.ones(len(trials), dtype=np.bool_)
    ns = np.full(size, 2e8)
    numbers = np.array(trials, dtype=np.int64)
    return ReplayOfCase(numbers, np.zeros(size, np.int64), ns, ns, yes, ~yes)


def replayed_folder(folder: Path, trials: list[int], run: str = "run-measured-2") -> Path:
    """Halves whose packets are kept, and a replay of some of their connections."""
    Half("predicted", [LOSSY], 200, seed=1).write(folder)
    Half("measured", [LOSSY], 50, 2, failed=5, manifest=with_packets(50, 5)).write(folder)
    write_replay(folder, "run-predicted-1", run, {LOSSY.case_id: of_trials(trials)})
    return folder


@pytest.mark.parametrize(
    ("trials", "current"),
    [(list(range(50)), True), (list(range(49)), False), ([], False), (list(range(51)), False)],
    ids=["whole", "one fewer", "none", "one more"],
)
def test_a_replay_is_current_that_has_every_measured_connection(
    tmp_path: Path, trials: list[int], current: bool
) -> None:
    assert replay.is_current(replayed_folder(tmp_path, trials)) is current


def test_a_replay_is_not_current_that_lacks_a_case(tmp_path: Path) -> None:
    folder = replayed_folder(tmp_path, list(range(50)))
    write_replay(folder, "run-predicted-1", "run-measured-2", {"another": of_trials([0])})
    assert not replay.is_current(folder)


def test_a_replay_of_what_has_no_packets_any_more_is_current(tmp_path: Path) -> None:
    folder = made_up(tmp_path, [LOSSY], n=50)
    write_replay(folder, "run-predicted-1", "run-measured-2", {LOSSY.case_id: of_trials([0, 1])})
    assert replay.is_current(folder)


def test_an_older_replay_is_not_used_where_the_predictor_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is of other runs, which the comparison would refuse."""
    folder = replayed_folder(tmp_path, list(range(50)), run="run-measured-1")

    def changed(_: Results) -> None:
        raise replay.PredictorChanged("was predicted by another commit")

    monkeypatch.setattr(replay, "_study", changed)
    monkeypatch.setattr(packets, "refuse_other_packets", lambda *_: None)
    (case,) = verdicts.compare(folder).cases
    assert "nothing was replayed" in case.missing
    assert "until then nothing is replayed" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("length", [39, 73, 2**32 - 1])
def test_a_message_of_a_length_that_the_trace_cannot_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    varying = [(4, True, "CertificateVerify", 0, 40, 72)]
    monkeypatch.setattr(_core, "varying_messages", lambda *_: varying)
    of_trials = {
        (trial, 0): [("Certificate", 9_000), ("CertificateVerify", of)]
        for trial, of in ((0, 70), (7, length))
    }
    logged = replay._Logged(pl.DataFrame(), of_trials, [0], {})
    study: Any = None
    assert replay._sizes(study, 0, logged, [0]) == [[(4, 70)]]
    with pytest.raises(replay.ReplayRefused) as refused:
        replay._sizes(study, 0, logged, [0, 7])
    said = str(refused.value)
    assert f"the CertificateVerify of trial 7 had {length:,} B" in said
    assert "it has 40 to 72 B" in said


def test_a_profile_whose_text_is_not_what_was_predicted_with_is_refused(tmp_path: Path) -> None:
    half = Half("predicted", [LOSSY], 20, seed=1).write(tmp_path)
    changed = {"kind": "device", "name": "d", "text": "name = 1", "sha256": "0" * 64}
    change_manifest(half, profiles=[changed], commit=None)
    with pytest.raises(ResultsError, match="the device profile d is not what was predicted with"):
        replay._study(Results.open(half))


def test_the_kernels_time_at_each_connect(tmp_path: Path) -> None:
    """Nothing of packets that do not say when they came."""
    began_ns = 5_000_000_000
    rows = [(3, began_ns + 7), (3, began_ns + 7), (5, None)]
    schema = {"trial": pl.Int32, "start_ns": pl.Int64}
    ticks = Ticks(length_ns=4_000_000, jiffies=4_296_026_590, began_ns=began_ns)

    def times(rows: list[tuple[int, int | None]], ticks: Ticks | None) -> list[object]:
        table = pl.DataFrame(rows, schema=schema, orient="row")
        part = packets.PartPackets(3, 3, table, pl.DataFrame(), ticks)
        return list(replay._kernel_times(part, tmp_path))

    assert times(rows, ticks) == [(3, (4_000_000, 4_296_026_590, 7, began_ns + 7))]
    assert times(rows, None) == []
    with pytest.raises(ResultsError, match="trial 4 began before the ticks of its part were read"):
        times([(4, began_ns - 1)], ticks)

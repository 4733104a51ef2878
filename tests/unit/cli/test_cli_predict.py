# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu predict`: what it shows, and that nothing finished is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import DEVICE, FakePredict, Run, one_line, run_id
from warifu import _core
from warifu.cli import halves
from warifu.cli.errors import INTERRUPTED, OK, USAGE


def test_predict_shows_a_table_and_says_where_the_results_are(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict())
    code, out, err = warifu("predict", *DEVICE, "--out", "here")
    assert code == OK
    assert out.startswith("question: HTTPS with TLS 1.3; device")
    assert "- A connection takes 18" in out
    assert "rests on published values" in out
    assert "results: here/predicted" in err
    assert "results" not in out


def test_older_results_stay_until_new_ones_are_complete(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict(seed=1))
    warifu("predict", *DEVICE, "--out", "here")
    fake(FakePredict(seed=2, interrupted=True))
    code, _, err = warifu("predict", *DEVICE, "--out", "here")
    assert code == INTERRUPTED
    assert one_line(err) == (
        "warifu: interrupted; the cases that were finished are in here/predicted.partial; "
        "here/predicted is unchanged"
    )
    assert run_id(tmp_path / "here" / "predicted") == "run-predicted-1"
    assert run_id(tmp_path / "here" / "predicted.partial") == "run-predicted-2"
    fake(FakePredict(seed=3))
    assert warifu("predict", *DEVICE, "--out", "here")[0] == OK
    assert run_id(tmp_path / "here" / "predicted") == "run-predicted-3"
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["predicted"]
    fake(FakePredict(seed=4, interrupted=True))
    code, _, err = warifu("predict", *DEVICE, "--out", "first")
    assert code == INTERRUPTED
    words = "warifu: interrupted; the cases that were finished are in first/predicted"
    assert one_line(err) == words


def test_interruption_before_a_case_is_finished(
    warifu: Run,
    fake: Callable[[FakePredict], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "predict", interrupted)
    words = "warifu: interrupted; no case was finished, so nothing of it is kept"
    code, _, err = warifu("predict", *DEVICE, "--out", "here")
    assert (code, one_line(err)) == (INTERRUPTED, words)
    assert list(tmp_path.iterdir()) == []
    fake(FakePredict(seed=1))
    warifu("predict", *DEVICE, "--out", "here")
    monkeypatch.setattr(_core, "predict", interrupted)
    _, _, err = warifu("predict", *DEVICE, "--out", "here")
    assert one_line(err) == f"{words}; here/predicted is unchanged"


@pytest.mark.parametrize("kept", ["", "parts/a/0000000-2.json", "observations/a.parquet"])
def test_interrupted_measurement_says_what_is_kept(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: str
) -> None:
    def interrupted(*_: object) -> None:
        if kept:
            path = Path("here") / "measured" / kept
            path.parent.mkdir(parents=True)
            path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(halves, "_measure", interrupted)
    code, _, err = warifu("measure", *DEVICE, "--out", "here")
    left = "nothing was measured yet, so nothing is kept"
    if kept:
        left = "what was measured is kept in here/measured; the same command takes it up from there"
    assert (code, one_line(err)) == (INTERRUPTED, f"warifu: interrupted; {left}")


@pytest.mark.parametrize("option", ["--connections-per-second", "--others-max"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0x", "-1"])
def test_rate_that_is_no_number(warifu: Run, option: str, value: str) -> None:
    code, _, err = warifu("measure", *DEVICE, option, value)
    assert code == USAGE
    assert option in one_line(err)


def test_a_study_that_cannot_be_run_leaves_nothing_behind(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object, out_dir: str, *__: object, **___: object) -> None:
        Path(out_dir).parent.mkdir(parents=True, exist_ok=True)
        raise _core.WarifuError("gr-peach.toml: server.sign has no cost: add it to the profile")

    monkeypatch.setattr(_core, "predict", refuse)
    code, _, err = warifu("predict", *DEVICE)
    assert code == USAGE
    assert "server.sign has no cost" in one_line(err)
    assert list(tmp_path.iterdir()) == []

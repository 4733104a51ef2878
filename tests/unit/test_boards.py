# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Differences on boards whose figures are assumed: each board is held against itself."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import Run
from support.synthetic import change_manifest
from warifu import ask
from warifu.cli.errors import FAILED, OK
from warifu.compare import boards
from warifu.compare.stats import Interval
from warifu.results import OnBoards, Results, ResultsDamaged

#: A board of which AES-256 and P-256's key exchange are scaled from others, with wide bands.
BOARD = ("--device", "nrf52840", "--server", "xeon-2-5-ghz-vm", "--set", "predict_trials=2000")


def predicted(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Results:
    monkeypatch.chdir(place)
    code, _, error = run("predict", *BOARD, "--link", "lte-m", "--stack", "https/tls1.3", *more)
    assert code == OK, error
    (folder,) = Path("results").glob("*/predicted")
    return Results.open(folder.absolute())


def test_a_round_trip_is_one_on_every_board(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rtts = ("--vary", "link.rtt=100 ms,300 ms", "--set", 'link.jitter=["0 ms", "0 ms"]')
    suite = ("--set", "stack.cipher_suite=TLS_AES_256_GCM_SHA384")
    results = predicted(warifu, tmp_path, monkeypatch, *rtts, *suite)
    near, far = (results.on_boards(one) for one in results.cases)
    assert near is not None and far is not None and near.typical.size == 200
    apart = boards.deviation(near, None)
    assert apart is not None and apart.high - apart.low > 100e6
    off = boards.deviation(far, near)
    assert off is not None
    # The same board both times: what is left is the timers' grain.
    assert off.high - off.low < 10e6
    # And it is spread as the trials are, whose boards are drawn.
    trials = results.distribution(next(iter(results.cases)), "https.establishment")
    for share in (0.1, 0.5, 0.9):
        ratio = float(np.quantile(near.typical, share)) / trials.quantile(share)
        assert 0.85 < ratio < 1.2, (share, ratio)


def test_measured_figures_have_no_boards(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = predicted(warifu, tmp_path, monkeypatch, "--device", "xeon-2-5-ghz-vm")
    assert not (results.path / "boards.json").exists()
    assert results.on_boards(next(iter(results.cases))) is None


def test_what_the_board_decides_is_not_certain(tmp_path: Path) -> None:
    suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]
    asked = {"device": "nrf52840", "server": "xeon-2-5-ghz-vm", "link": "nb-iot"}
    vary = {"stack.cipher_suite": suites}
    answer = ask(**asked, stack="https/tls1.3", vary=vary, out=tmp_path).answer
    base, row = answer.rows
    assert base.boards is not None and row.boards is not None
    change = row.delta
    assert change.boards is not None
    assert base.boards.low <= base.p50 <= base.boards.high
    assert change.boards.low <= change.value <= change.boards.high
    # What the trials leave open comes on top.
    assert change.reach.low < min(change.boards.low, change.interval.low)
    assert change.reach.high > max(change.boards.high, change.interval.high)
    assert row.certain == (change.reach.low > 0.0 or change.reach.high < 0.0)
    assert " by the board" in answer.sentences[0], answer.sentences
    assert any(one.startswith("By the board: ") for one in answer.not_included)


def test_a_deadline_that_some_boards_miss_is_undecided(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = ("--set", "stack.cipher_suite=TLS_AES_256_GCM_SHA384")
    results = predicted(warifu, tmp_path, monkeypatch, *suite)
    on_boards = results.on_boards(next(iter(results.cases)))
    assert on_boards is not None

    def required(
        ms: float, statistic: str = "p50", metric: str = "https.establishment"
    ) -> tuple[int, str]:
        bound = ("--require", f"{metric}.{statistic} < {ms:.0f} ms")
        code, out, _ = warifu("predict", *BOARD, "--link", "lte-m", "--stack", "https/tls1.3",
                              *suite, *bound)  # fmt: skip
        return code, " ".join(out.split())

    order = {"missed": 0, "undecided": 1, "met": 2}
    for statistic in ("p50", "p90", "p99", "mean"):
        low, high = (end / 1e6 for end in boards.statistic_range(on_boards, statistic))
        assert high > low + 300
        verdicts = []
        for share in (-0.6, -0.2, 0.1, 0.5, 0.9, 1.2, 1.8):
            code, out = required(max(50.0, low + share * (high - low)), statistic)
            (said,) = re.findall(r" ms: (\w+)", out)
            verdicts.append(order[said])
            assert code == (OK if said == "met" else FAILED)
            if 0.0 < share < 1.0:
                assert "undecided (it depends on the board, whose assumed figures allow a" in out
                assert "trials would decide" not in out
        # A looser bound is never worse, and beyond the boards the trials decide.
        assert verdicts == sorted(verdicts) and verdicts[0] == 0 and verdicts[-1] == 2
    part = results.on_boards(next(iter(results.cases)), "tls.handshake")
    assert part is not None
    middle = sum(boards.statistic_range(part, "p50")) / 2e6
    out = required(middle, metric="tls.handshake")[1]
    assert "undecided (it depends on the board" in out
    # Retransmissions take longer than the slowest board, on every board.
    loss = ("--set", "link.loss=20 %")
    high = boards.statistic_range(on_boards, "p90").high / 1e6
    bound = ("--require", f"https.establishment.p99 < {high:.0f} ms")
    code, out, _ = warifu("predict", *BOARD, "--link", "lte-m", "--stack", "https/tls1.3",
                          *suite, *bound, *loss)  # fmt: skip
    assert code == FAILED and "missed" in out


def on(*typical: float) -> OnBoards:
    """A time on these boards, of which the median is that of the board in the middle."""
    middle = float(np.median([one for one in typical if np.isfinite(one)] or [np.inf]))
    return OnBoards(np.array(typical), {"typical": middle, "p50": middle + 10.0})


def test_failures_and_other_devices() -> None:
    """Boards that fail are at the open end; one that fails both times says nothing."""
    ours = on(*[1.0, 2.0, 3.0, np.inf] * 50)
    assert boards.deviation(ours, on(*np.zeros(200))) == Interval(-1.0, np.inf)
    assert boards.deviation(ours, ours) == Interval(-np.inf, np.inf)
    assert boards.deviation(None, None) is None
    none = on(*np.full(200, np.inf))
    assert boards.deviation(none, None) == Interval(-np.inf, np.inf)
    assert boards.statistic_range(none, "p50") == Interval(np.inf, np.inf)
    # Only one of the two depends on the board.
    alone = boards.deviation(on(*np.arange(200.0)), None)
    assert alone == boards.deviation(on(*np.arange(200.0) + 9.0), None) == Interval(-94.5, 94.5)
    assert boards.deviation(on(*np.arange(40.0)), None) == Interval(-18.5, 18.5)
    # The case without boards has its own median.
    both = boards.median_difference(None, on(*np.arange(200.0)), (500.0, 0.0))
    assert both == Interval(500.0 - 109.5 - 94.5, 500.0 - 109.5 + 94.5)
    assert boards.median_difference(ours, none, (0.0, 0.0)) == Interval(-np.inf, np.inf)
    assert boards.median_difference(None, None, (1.0, 2.0)) is None


def test_luck_is_added_on_every_board() -> None:
    typical = np.linspace(100.0, 299.0, 200)
    statistics = {"typical": 190.0, "p50": 200.0, "p99": 1_200.0, "p95": np.inf}
    of = OnBoards(typical, statistics)
    # Five boards are left out at each end.
    assert boards.statistic_range(of, "p50") == Interval(115.0, 304.0)
    assert boards.statistic_range(of, "p99") == Interval(1_115.0, 1_304.0)
    assert boards.statistic_range(of, "p95") == Interval(np.inf, np.inf)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda all_: all_.update(version=2), "version is 2: expected 1"),
        (lambda all_: all_.update(boards=0), "boards is 0: expected 40 to 10,000"),
        (lambda all_: all_.update(boards=199), "on_boards_ns has 200 values: expected 199"),
        (lambda all_: all_.update(cases={}), "has no version, boards or cases"),
        (lambda all_: all_["cases"].append(3), "cases[1] has no case_id of its own"),
        (lambda all_: all_["cases"][0].update(case_id=3), "cases[0] has no case_id"),
        (lambda all_: all_.update(cases=all_["cases"] * 2), "cases[1] has no case_id of its own"),
        (lambda all_: first(all_).update(metric=1), "metrics[0] has no metric"),
        (lambda all_: first(all_)["middle_ns"].update(p75=1), "middle_ns has no typical, p50"),
        (lambda all_: first(all_)["middle_ns"].update(p50=0.5), "middle_ns.p50 is 0.5: exp"),
        (lambda all_: first(all_)["on_boards_ns"].__setitem__(1, -1), "on_boards_ns[1] is -1: exp"),
        (lambda all_: first(all_)["on_boards_ns"].__setitem__(1, True), "on_boards_ns[1] is True"),
        (lambda all_: first(all_)["on_boards_ns"].__setitem__(1, 10**4000), "is 1000"),
        (lambda all_: first(all_)["on_boards_ns"].__setitem__(1, "\udc00"), "half a letter"),
    ],
)
def test_boards_of_another_shape(
    warifu: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], None],
    words: str,
) -> None:
    results = predicted(warifu, tmp_path, monkeypatch)
    damage(results.path, change)
    again = Results.open(results.path)
    with pytest.raises(ResultsDamaged) as error:
        again.on_boards(next(iter(again.cases)))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(results.path)) + 300


def first(content: dict[str, Any]) -> dict[str, Any]:
    """The first metric of the first case."""
    metric: dict[str, Any] = content["cases"][0]["metrics"][0]
    return metric


def damage(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a folder says of boards, under a seal that fits."""
    file = folder / "boards.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    files = json.loads((folder / "manifest.json").read_text())["files"]
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    files["boards.json"] = {"bytes": file.stat().st_size, "sha256": sha256}
    change_manifest(folder, files=files)


def test_boards_that_were_changed_or_are_gone(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = predicted(warifu, tmp_path, monkeypatch)
    file = results.path / "boards.json"
    file.write_text(file.read_text().replace('"version":1', '"version": 1'))
    with pytest.raises(ResultsDamaged, match="its SHA-256 differs"):
        results.on_boards(next(iter(results.cases)))
    file.unlink()
    with pytest.raises(ResultsDamaged, match=r"boards\.json: is missing"):
        Results.open(results.path)


def test_a_choice_takes_the_same_of_a_board_over_every_link(tmp_path: Path) -> None:
    """The luck of a link is none of it: AES-256 takes the fastest boards 10 ms, not 200."""
    suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]
    asked: dict[str, Any] = {"device": "nrf52840", "server": "xeon-2-5-ghz-vm", "link": "nb-iot"}
    asked |= {"stack": "https/tls1.3", "vary": {"stack.cipher_suite": suites}, "trials": 20_000}
    quiet: dict[str, Any] = {"link.jitter": '["0 ms", "0 ms"]', "link.loss": 0}
    ranges = []
    for number, settings in enumerate([{}, quiet]):
        row = ask(**asked, **settings, out=tmp_path / str(number)).answer.rows[1]
        assert row.delta.boards is not None
        ranges.append(row.delta.boards)
    for noisy, true in zip(*ranges, strict=True):
        assert abs(noisy - true) < 80e6, ranges


def test_what_trials_leave_open_is_not_said_of_boards(tmp_path: Path) -> None:
    """Where all boards are alike to some milliseconds, and a tail is known less well."""
    asked: dict[str, Any] = {"device": "nrf52840", "server": "xeon-2-5-ghz-vm", "link": "lte-m"}
    asked |= {"stack": "https/tls1.3", "trials": 4_000}
    p99 = ask(**asked, out=tmp_path / "first").answer.rows[0].p99
    again = ask(**asked, require={"https.establishment.p99": f"< {p99 / 1e6:.0f} ms"},
                out=tmp_path / "again")  # fmt: skip
    (said,) = (one for one in again.answer.sentences if "p99 <" in one)
    assert said.endswith("undecided."), said

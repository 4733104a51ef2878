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
from warifu.answer.build import answer
from warifu.cli.errors import FAILED, OK
from warifu.compare import boards, require
from warifu.compare.gates import Verdict
from warifu.compare.stats import Interval
from warifu.report.inputs import assumed_figures
from warifu.results import OnBoards, Results, ResultsDamaged
from warifu.results.boards import Difference

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
    assert near is not None and far is not None and near.off_middle.size == 100
    apart = boards.deviation(near, None)
    assert apart is not None and apart.high - apart.low > 100e6
    off = boards.deviation(far, near)
    assert off is not None
    # The same board both times: what is left is the timers' grain.
    assert off.high - off.low < 10e6
    # And it is spread as the trials are, whose boards are drawn.
    trials = results.distribution(next(iter(results.cases)), "https.establishment")
    for share in (0.1, 0.5, 0.9):
        middle = boards.middle_median(near, trials.quantile(0.5))
        ratio = (middle + float(np.quantile(near.off_middle, share))) / trials.quantile(share)
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
    case_id = next(iter(results.cases))

    def required(
        ms: float, statistic: str = "p50", metric: str = "https.establishment"
    ) -> tuple[int, str]:
        bound = ("--require", f"{metric}.{statistic} < {ms:.0f} ms")
        code, out, _ = warifu("predict", *BOARD, "--link", "lte-m", "--stack", "https/tls1.3",
                              *suite, *bound)  # fmt: skip
        return code, " ".join(out.split())

    order = {"missed": 0, "undecided": 1, "met": 2}

    def on_95_percent(metric: str, statistic: str) -> Interval:
        on_boards = results.on_boards(case_id, metric)
        assert on_boards is not None
        value, _ = require.statistic(results.distribution(case_id, metric), statistic, case_id)
        return boards.statistic_range(on_boards, statistic, value)

    for statistic in ("p50", "p90", "p99", "mean"):
        low, high = (end / 1e6 for end in on_95_percent("https.establishment", statistic))
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
    middle = sum(on_95_percent("tls.handshake", "p50")) / 2e6
    out = required(middle, metric="tls.handshake")[1]
    assert "undecided (it depends on the board" in out
    # Retransmissions take longer than the slowest board, on every board.
    loss = ("--set", "link.loss=20 %")
    high = on_95_percent("https.establishment", "p90").high / 1e6
    bound = ("--require", f"https.establishment.p99 < {high:.0f} ms")
    code, out, _ = warifu("predict", *BOARD, "--link", "lte-m", "--stack", "https/tls1.3",
                          *suite, *bound, *loss)  # fmt: skip
    assert code == FAILED and "missed" in out


def on(*off: float) -> OnBoards:
    """A time that is so much longer on these boards."""
    return OnBoards(np.array(off), {"p50": Difference(8.0, 10.0, 13.0)})


def test_failures_and_other_devices() -> None:
    """Boards that fail are at the open end; one that fails both times says nothing."""
    ours = on(*[1.0, 2.0, 3.0, np.inf] * 50)
    assert boards.deviation(ours, on(*np.zeros(200))) == Interval(1.0, np.inf)
    assert boards.deviation(ours, ours) == Interval(-np.inf, np.inf)
    assert boards.deviation(None, None) is None
    none = on(*np.full(200, np.inf))
    assert boards.deviation(none, None) == Interval(-np.inf, np.inf)
    assert boards.statistic_range(none, "p99", 1.0) == Interval(0.0, np.inf)
    # Only one of the two depends on the board.
    assert boards.deviation(on(*np.arange(200.0)), None) == Interval(5.0, 194.0)
    assert boards.deviation(None, on(*np.arange(100.0))) == Interval(-97.0, -2.0)
    assert boards.deviation(on(*np.arange(40.0)), None) == Interval(1.0, 38.0)
    # The median of the board in the middle is 10 above that of all boards.
    both = boards.median_difference(None, on(*np.arange(200.0)), (500.0, 100.0))
    assert both == Interval(500.0 - 110.0 - 194.0, 500.0 - 110.0 - 5.0)
    assert boards.median_open(ours) == 3.0 and boards.median_open(None) == 0.0
    assert boards.median_difference(ours, none, (0.0, 0.0)) == Interval(-np.inf, np.inf)
    assert boards.median_difference(None, None, (1.0, 2.0)) is None


def test_a_board_differs_from_all_of_them_as_the_one_in_the_middle_does() -> None:
    less = {"p50": Difference(-3.0, 0.0, 2.0), "p99": Difference(-80.0, -60.0, 10.0)}
    of = OnBoards(np.linspace(-90.0, 109.0, 200), less)
    # Five boards are left out at each end.
    assert boards.statistic_range(of, "p50", 200.0) == Interval(115.0, 304.0)
    assert boards.statistic_range(of, "p99", 1_200.0) == Interval(1_055.0, 1_244.0)
    # With what trials leave open of all of them, and of how the middle differs.
    reach = boards.statistic_reach(of, "p99", Interval(1_190.0, 1_220.0))
    assert reach == Interval(1_190.0 - 80.0 - 85.0, 1_220.0 + 10.0 + 104.0)
    # Failures reach it on the board in the middle.
    assert boards.statistic_range(of, "p95", 1_000.0) == Interval(0.0, np.inf)
    assert boards.statistic_range(of, "p99", np.inf) == Interval(0.0, np.inf)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda all_: all_.update(version=1), "version is 1: expected 2"),
        (lambda all_: all_.update(boards=0), "boards is 0: expected 40 to 10,000"),
        (lambda all_: all_.update(boards=99), "off_middle_ns has 100 values: expected 99"),
        (lambda all_: all_.update(cases={}), "has no version, boards or cases"),
        (lambda all_: all_["cases"].append(3), "cases[1] has no case_id of its own"),
        (lambda all_: all_["cases"][0].update(case_id=3), "cases[0] has no case_id"),
        (lambda all_: all_.update(cases=all_["cases"] * 2), "cases[1] has no case_id of its own"),
        (lambda all_: first(all_).update(metric=1), "metrics[0] has no metric"),
        (lambda all_: less(all_).update(p75=None), "middle_less_all_ns has other statistics"),
        (lambda all_: less(all_).update(p50=0), "middle_less_all_ns.p50 is 0: expected low, val"),
        (lambda all_: less(all_)["p50"].update(high=-(10**17)), "expected low, value and high"),
        (lambda all_: less(all_)["p50"].update(more=1), "expected low, value and high, or null"),
        (lambda all_: less(all_)["mean"].update(low=True), "expected low, value and high"),
        (lambda all_: less(all_)["mean"].update(low=-(10**4000)), "expected low, value and high"),
        (
            lambda all_: first(all_)["off_middle_ns"].__setitem__(1, 0.5),
            "off_middle_ns[1] is 0.5: ",
        ),
        (
            lambda all_: first(all_)["off_middle_ns"].__setitem__(1, True),
            "off_middle_ns[1] is True",
        ),
        (lambda all_: first(all_)["off_middle_ns"].__setitem__(1, 10**4000), "is 1000"),
        (lambda all_: first(all_)["off_middle_ns"].__setitem__(1, "\udc00"), "half a letter"),
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


def less(content: dict[str, Any]) -> dict[str, Any]:
    """How the first metric's middle board differs."""
    statistics: dict[str, Any] = first(content)["middle_less_all_ns"]
    return statistics


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
    file.write_text(file.read_text().replace('"version":2', '"version": 2'))
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


def test_a_longer_round_trip_is_never_better(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than 1,000 cases fewer boards are run, and those times that are required."""
    monkeypatch.chdir(tmp_path)
    rtts = range(100, 1_110)
    bounds = {"https.establishment.p99": 4_000, "tls.handshake.p50": 1_200}
    more = [f"--require={key} < {ms} ms" for key, ms in bounds.items()]
    code, _, error = warifu(
        "predict", *BOARD[:-1], "predict_trials=1000", "--link", "lte-m", "--stack", "https/tls1.3",
        *more, "--format", "csv", "--set", "stack.cipher_suite=TLS_AES_256_GCM_SHA384",
        "--vary", "link.rtt=" + ",".join(f"{rtt} ms" for rtt in rtts),
    )  # fmt: skip
    assert code == FAILED, error
    (folder,) = Path("results").glob("*/predicted")
    results = Results.open(folder.absolute())
    wanted = require.requirements(results.manifest["require"])
    order = [Verdict.PASS, Verdict.UNDECIDED, Verdict.FAIL]
    judged = require.judge_all(results, wanted)
    assert len(judged) == 2 * len(rtts)
    assert not any("not compared" in one.remark for one in judged)
    for requirement in wanted:
        verdicts = [order.index(one.verdict) for one in judged if one.requirement == requirement]
        # Neighbours are of different trials, so that some are swapped where a verdict turns: 80 by
        # this seed.
        swapped = [at for at, one in enumerate(verdicts) if one != sorted(verdicts)[at]]
        assert len(swapped) < 100, (requirement.text, swapped)
        assert verdicts[0] < 2 and verdicts[-1] == 2 and verdicts.count(1) > 100
    assert [one.verdict for one in judged[:2]] == [Verdict.PASS, Verdict.UNDECIDED]


def test_times_of_several_connections_have_boards(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = ("--set", "stack.cipher_suite=TLS_AES_256_GCM_SHA384")
    results = predicted(warifu, tmp_path, monkeypatch, "--set", "pattern.concurrent=3", *suite)
    case_id = next(iter(results.cases))
    ends = []
    for metric in ("https.establishment", "scenario.duration"):
        on_boards = results.on_boards(case_id, metric)
        assert on_boards is not None
        median = results.distribution(case_id, metric).quantile(0.5)
        low, high = boards.median_range(on_boards, median)
        assert high - low > 100e6
        ends.append((low, high))
    # Three connections take as long as the longest of them.
    assert all(whole > one for one, whole in zip(*ends, strict=True))
    bound = require.Requirement("scenario.duration", "p50", "<", sum(ends[1]) / 2.0, "")
    (judged,) = require.judge_all(results, [bound])
    assert judged.verdict is Verdict.UNDECIDED
    assert "it depends on the board, whose assumed figures allow a median of" in judged.remark
    # A slow board stretches how they wait for each other, so that of a part nothing is told.
    part = require.Requirement("tls.handshake", "p99", "<", 60e9, "")
    (judged,) = require.judge_all(results, [part])
    assert judged.verdict is Verdict.UNDECIDED and "require a whole one" in judged.remark


@pytest.mark.parametrize(("device", "warned"), [("nrf52840", True), ("xeon-2-5-ghz-vm", False)])
def test_a_prediction_cut_short_says_that_boards_were_not_compared(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, warned: bool
) -> None:
    """Where a device has assumed figures: those of a link, which both have, are in no range."""
    results = predicted(warifu, tmp_path, monkeypatch, "--device", device)
    assert any(one["name"] == "lte-m rtt" for one in assumed_figures(results.manifest))
    change_manifest(results.path, complete=False)
    cut = Results.open(results.path)
    told = answer(cut, None, None, []).warnings
    assert any("before boards were compared" in one for one in told) == warned, told
    bound = require.Requirement("https.establishment", "p50", "<", 60e9, "")
    (judged,) = require.judge_all(cut, [bound])
    assert judged.verdict is (Verdict.UNDECIDED if warned else Verdict.PASS)
    assert judged.remark.endswith("in this time: predict again" if warned else "")


def test_why_the_board_decides() -> None:
    ends, reach = Interval(10.552e9, 10.923e9), Interval(10.4e9, 11.15e9)
    allowed = "it depends on the board, whose assumed figures allow a P99 of 10552 to 10923 ms"

    def why(bound: float, *cases: tuple[Interval, Interval]) -> str:
        required = require.Requirement("https.establishment", "p99", "<", bound, "")
        return require.depends_on_boards(required, cases)

    assert why(10.7e9, (ends, reach)) == allowed
    # Beyond what the boards allow trials have a part in it.
    more = ", and trials leave 10400 to 11150 ms open"
    assert why(11.1e9, (ends, reach)) == allowed + more
    assert why(10.7e9, (ends, reach), (ends, reach)) == f"{allowed} over these cases"
    unknown = Interval(0.0, np.inf)
    failing = "it depends on the board: failures may reach a P99 on some"
    assert why(10.7e9, (unknown, unknown)) == failing


def test_what_is_not_known_of_a_board_meets_no_bound(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = predicted(warifu, tmp_path, monkeypatch)
    damage(results.path, lambda all_: less(all_).update(p99=None))
    again = Results.open(results.path)
    for operator in ("<", ">"):
        bound = require.Requirement("https.establishment", "p99", operator, 0.5e9, "")
        (judged,) = require.judge_all(again, [bound])
        assert judged.verdict is Verdict.UNDECIDED and "failures may reach" in judged.remark


def test_a_case_without_what_is_required_is_named(tmp_path: Path) -> None:
    told = ask(
        device="nrf52840", server="xeon-2-5-ghz-vm", link="lte-m", stack="https/tls1.3",
        vary={"pattern.concurrent": [1, 2]}, require={"scenario.duration.p99": "< 60 s"},
        out=tmp_path,
    ).answer.sentences  # fmt: skip
    said = "met in 1 of 2 cases (concurrent 2), no value of scenario.duration in 1 of 2 cases"
    assert said in told[0], told

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Verdicts on predictions whose error is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.distributions import sizes
from support.synthetic import Cell, Half, study
from warifu.compare.comparison import CompareError
from warifu.compare.exact import compare_bytes
from warifu.compare.gates import (
    LOSS_2,
    LOSS_5,
    LOSS_FREE,
    Gate,
    Verdict,
    gates_for,
    judge,
    worst,
)
from warifu.compare.join import compare, compare_folder
from warifu.compare.require import Judged, judge_all, requirements
from warifu.compare.stats import Interval, share_interval
from warifu.compare.store import load, save
from warifu.report.accuracy import comparison_table, overview_table
from warifu.results import Results, ResultsError
from warifu.results.noise import Noise

FREE, LOSSY = Cell(), Cell(loss=0.02)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (Interval(-1.0, 1.0), Verdict.PASS),
        (Interval(-2.0, 2.0), Verdict.PASS),
        (Interval(-2.1, 1.0), Verdict.UNDECIDED),
        (Interval(2.1, 3.0), Verdict.FAIL),
        (Interval(-9.0, -2.1), Verdict.FAIL),
        (Interval(-math.inf, 0.0), Verdict.UNDECIDED),
        (Interval(-math.inf, -3.0), Verdict.FAIL),
        (Interval(math.nan, math.nan), Verdict.UNDECIDED),
    ],
)
def test_a_gate_is_judged_by_the_interval(interval: Interval, verdict: Verdict) -> None:
    assert judge(interval, 2.0) is verdict


def test_width_of_a_gate() -> None:
    gate = Gate("p50", 0.005, 0.1e6, of_computing=0.05)
    assert gate.width_ns(184e6) == pytest.approx(1.02e6)
    assert gate.text() == "0.5 % + 0.1 ms"
    # Without delay 1.9 ms are computing alone: 0.11 ms would be 5.8 % of it.
    assert gate.width_ns(1.9e6, computing_share=1.0) == pytest.approx(0.095e6)
    assert gate.width_ns(5.4e6, computing_share=1.0) == pytest.approx(0.127e6)
    assert gate.text(computing_share=1.0) == "0.5 % + 0.1 ms, at most 5 % of computing"
    # Of four round trips of 150 ms and 4 ms of computing.
    (p50, mean) = LOSS_FREE
    assert p50.width_ns(604e6, computing_share=4 / 604) == pytest.approx(0.7e6)
    assert mean.width_ns(604e6, computing_share=4 / 604) == pytest.approx(0.7e6)
    assert p50.text(4 / 604) == "0.5 % + 0.1 ms, at most 15 % of computing + 0.1 ms"
    # The gate as it is where it is the narrower one, and where nothing is known of computing.
    assert p50.width_ns(200e6, computing_share=0.4) == pytest.approx(1.1e6)
    assert p50.width_ns(604e6) == pytest.approx(3.12e6)


def test_round_trips_alone_pass_no_gate_without_loss() -> None:
    """The measured times without their computing: 0.3 % below them at 604 ms."""
    for gate in LOSS_FREE:
        for measured, computing in ((244e6, 3.6e6), (604e6, 3.6e6), (451.8e6, 1.8e6)):
            assert gate.width_ns(measured, computing / measured) < 0.5 * computing


def test_a_gate_where_computing_is_all_of_the_time_is_relative_to_it(tmp_path: Path) -> None:
    """A mean that is 14 % low at RTT 0 is 0.3 ms off, which a gate in ms alone would let pass."""
    (case,) = compare_folder(study(tmp_path, [Cell(rtt_ms=0)], n=4_000, scale=1 / 0.86)).cases
    rows = {row.statistic: row for row in case.rows if row.gate}
    assert rows["p50"].verdict is rows["mean"].verdict is Verdict.FAIL
    assert rows["mean"].width is not None
    assert rows["mean"].width <= 0.05 * rows["mean"].measured


def test_table_of_gates_that_too_few_trials_cannot_decide(tmp_path: Path) -> None:
    comparison = compare_folder(study(tmp_path, [LOSSY], n=200))
    (case,) = comparison.cases
    mean = case.row("mean")
    assert mean is not None
    assert mean.verdict is None
    assert mean.no_statement == "too few trials to decide it"
    assert mean.trials_needed is not None
    assert mean.trials_needed > 2_000
    table = comparison_table(comparison, judged_only=True)
    (shown,) = [cells for cells in table.cells if cells[1] == "mean"]
    assert shown[7] == "not judged"
    assert shown[9].startswith("too few trials to decide it: needs about ")
    counts = overview_table(comparison)
    assert sum(case.gates.values()) == case.gates["not judged"] + case.gates["pass"]
    assert f"{case.gates['not judged']} are not judged." in counts.notes[0]


def test_what_few_trials_show_to_be_outside_its_gate_fails(tmp_path: Path) -> None:
    """A tail that is half as long as predicted: 400 trials cannot decide 15 %, and show this."""
    predicted = Half("predicted", [FREE], 20_000, seed=1).write(tmp_path)
    (part,) = (predicted / "observations").iterdir()
    rows = pl.read_parquet(part)
    of_whole = (pl.col("metric") == "https.establishment") & pl.col("stage").is_null()
    middle = float(np.median(rows.filter(of_whole)["value"].to_numpy()))
    longer = middle + 2.0 * (pl.col("value") - middle)
    value = pl.when(of_whole).then(longer).otherwise(pl.col("value"))
    rows.with_columns(value.alias("value")).write_parquet(part)
    parts = [{"first_trial": 40 * at, "trials": 40, "seed": 1} for at in range(10)]
    cells = {FREE.case_id: {"trials": 400, "parts": parts}}
    Half("measured", [FREE], 400, 2, manifest={"cells": cells}).write(tmp_path)
    (case,) = compare_folder(tmp_path).cases
    spread = case.row("p95 - p50")
    assert spread is not None
    assert (spread.verdict, spread.no_statement) == (Verdict.FAIL, "")
    assert case.verdict is Verdict.FAIL
    # Four trials are beyond the P99: too few for its interval to be trusted.
    furthest = case.row("p99 - p50")
    assert furthest is not None
    assert furthest.verdict is None


def test_bytes_that_differ_fail_where_times_cannot_be_judged(tmp_path: Path) -> None:
    folder = study(tmp_path, [Cell(rtt_ms=0)], n=60, client_bytes=(921,))
    assert compare_folder(folder).verdict is Verdict.FAIL


def test_gates_by_loss() -> None:
    assert gates_for(0.0) is LOSS_FREE
    assert gates_for(0.001) is gates_for(0.02) is LOSS_2
    assert gates_for(0.021) is gates_for(0.05) is LOSS_5
    assert gates_for(0.051) == ()


def test_gates_of_bursty_loss(tmp_path: Path) -> None:
    bursty = Cell(loss=0.016, bursts=True)
    Half("predicted", [bursty], 900, seed=1).write(tmp_path)
    Half("measured", [bursty], 90, seed=2).write(tmp_path)
    (case,) = compare_folder(tmp_path).cases
    assert case.loss == 0.016
    # A quantile at a jump is judged by the share of later connections.
    judged = {row.statistic.removesuffix(" share") for row in case.rows if row.gate}
    assert judged == {gate.statistic for gate in LOSS_2}
    assert not case.bytes_gated


def test_case_without_its_loss_is_not_judged(tmp_path: Path) -> None:
    Half("predicted", [FREE], 900, seed=1).write(tmp_path)
    Half("measured", [FREE], 90, seed=2).write(tmp_path)
    (part,) = (tmp_path / "predicted" / "observations").iterdir()
    pl.read_parquet(part).drop("loss_mean").write_parquet(part)
    with pytest.raises(CompareError, match="has no loss_mean: run `warifu predict` again"):
        compare_folder(tmp_path)


def test_a_perfect_prediction_passes_with_enough_trials(tmp_path: Path) -> None:
    comparison = compare_folder(study(tmp_path, [FREE], n=8_000))
    assert comparison.verdict is Verdict.PASS
    (case,) = comparison.cases
    gated = {row.statistic for row in case.rows if row.verdict}
    assert gated == {"p50", "mean", "p95 - p50", "p99 - p50"}
    assert [one.verdict for one in case.bytes] == [Verdict.PASS, Verdict.PASS]
    assert comparison.gates == {"fail": 0, "undecided": 0, "pass": 6, "not judged": 0}


@pytest.mark.parametrize("n", [200, 2_000])
def test_a_bias_of_twice_the_gate_fails(tmp_path: Path, n: int) -> None:
    """The mean's gate is 1 % and 0.1 ms: a measurement 2.2 % slower than predicted is a fail."""
    case = compare_folder(study(tmp_path, [FREE], n=n, scale=1.022)).cases[0]
    mean = case.row("mean")
    assert mean is not None
    assert mean.verdict is Verdict.FAIL
    assert mean.relative == pytest.approx(-0.022 / 1.022, abs=0.002)
    assert case.verdict is Verdict.FAIL


def test_a_median_under_loss_that_is_off_by_twice_its_gate_fails(tmp_path: Path) -> None:
    """The gate is 1 % and 0.1 ms."""
    case = compare_folder(study(tmp_path, [LOSSY], n=5_000, scale=1.022)).cases[0]
    p50 = case.row("p50")
    assert p50 is not None
    assert p50.verdict is Verdict.FAIL


def test_failed_connections_are_shown_and_count_as_late(tmp_path: Path) -> None:
    whole = compare_folder(study(tmp_path / "whole", [FREE], n=200)).cases[0]
    case = compare_folder(study(tmp_path / "some", [FREE], n=200, failed=10)).cases[0]
    assert case.failed_measured == 10
    assert case.n_measured == 210
    p95, whole_p95 = case.row("p95"), whole.row("p95")
    assert p95 is not None
    assert whole_p95 is not None
    assert p95.measured > whole_p95.measured
    p99 = case.row("p99")
    assert p99 is not None
    assert p99.measured == math.inf
    assert p99.difference == p99.interval.low == -math.inf
    assert math.isnan(p99.relative)


def test_failures_that_no_prediction_has_fail(tmp_path: Path) -> None:
    case = compare_folder(study(tmp_path, [LOSSY], n=1_000, failed=100)).cases[0]
    responses = case.row("responses")
    assert responses is not None
    assert responses.measured == pytest.approx(1_000 / 1_100)
    assert responses.verdict is Verdict.FAIL
    assert case.verdict is Verdict.FAIL


@pytest.mark.parametrize("cell", [FREE, LOSSY], ids=["free", "lossy"])
def test_a_case_without_any_response_fails(tmp_path: Path, cell: Cell) -> None:
    comparison = compare_folder(study(tmp_path, [cell], n=0, failed=200))
    (case,) = comparison.cases
    assert [row.statistic for row in case.rows] == ["responses"]
    assert case.rows[0].measured == 0.0
    assert comparison.verdict is case.verdict is Verdict.FAIL


def test_quantile_that_failures_reach_in_both_halves_is_not_judged(tmp_path: Path) -> None:
    Half("predicted", [LOSSY], 20_000, seed=1, failed=600).write(tmp_path)
    Half("measured", [LOSSY], 5_000, seed=2, failed=150).write(tmp_path)
    comparison = compare_folder(tmp_path)
    (case,) = comparison.cases
    p95, p99 = case.row("p95"), case.row("p99")
    assert p95 is not None
    assert p99 is not None
    assert p99.predicted == p99.measured == math.inf
    assert p99.verdict is None
    assert p99.no_statement == "more than 1 % of trials failed in both halves"
    assert case.verdict is worst([row.verdict for row in case.rows if row.verdict is not None])
    table = comparison_table(comparison, judged_only=True)
    (shown,) = [cells for cells in table.cells if cells[1] == "P99"]
    assert shown[2:] == ["∞", "∞", "-", "-", "5 %", "not judged", "5,150", p99.no_statement]
    save(comparison, tmp_path)
    kept = load(tmp_path)
    assert kept is not None
    again = kept.cases[0].row("p99")
    assert again is not None
    assert (again.no_statement, again.verdict) == (p99.no_statement, None)
    assert math.isnan(again.difference)


@pytest.mark.parametrize("failing", ["predicted", "measured"])
def test_failures_of_one_half_alone_fail(tmp_path: Path, failing: str) -> None:
    for seed, (half, n) in enumerate((("predicted", 20_000), ("measured", 5_000))):
        failed = n // 10 if half == failing else 0
        Half(half, [LOSSY], n, seed=seed, failed=failed).write(tmp_path)
    (case,) = compare_folder(tmp_path).cases
    responses = case.row("responses")
    assert responses is not None
    assert responses.verdict is case.verdict is Verdict.FAIL


def test_a_wrong_byte_count_fails(tmp_path: Path) -> None:
    case = compare_folder(study(tmp_path, [FREE], client_bytes=(921, 922, 923))).cases[0]
    client = case.bytes[0]
    assert client.verdict is Verdict.FAIL
    assert "2000 of 2000 measured have a value not predicted (921, 922, 923 B)" in client.reason
    assert case.verdict is Verdict.FAIL


def test_exact_means_the_same_values_as_often() -> None:
    predicted = sizes({70: 5_000, 71: 10_000, 72: 5_000})

    def verdict(counts: dict[int, int]) -> Verdict:
        found = compare_bytes("bytes.client_sent", predicted, sizes(counts))
        assert found is not None
        return found.verdict

    assert verdict({70: 52, 71: 98, 72: 50}) is Verdict.PASS
    assert verdict({70: 200}) is Verdict.FAIL
    assert verdict({70: 48, 71: 98, 72: 50, 69: 4}) is Verdict.FAIL
    # One value in 200 that 20,000 predictions did not meet may be chance (p = 1 %).
    assert verdict({70: 50, 71: 99, 72: 50, 69: 1}) is Verdict.UNDECIDED


def test_a_value_that_may_be_chance_does_not_hide_other_frequencies() -> None:
    predicted = sizes({70: 50_000, 71: 100_000, 72: 50_000})
    found = compare_bytes("bytes.client_sent", predicted, sizes({70: 1_199, 69: 1}))
    assert found is not None
    assert found.verdict is Verdict.FAIL
    assert found.reason.startswith("the values that were predicted, but not as often (p = ")


def test_a_prediction_calibrated_on_the_judging_run_is_refused(tmp_path: Path) -> None:
    Half("measured", [FREE], 50, seed=2).write(tmp_path)
    Half(
        "predicted", [FREE], 50, seed=1, manifest={"calibration_run_ids": ["run-measured-2"]}
    ).write(tmp_path)
    with pytest.raises(CompareError, match="was calibrated on run run-measured-2"):
        compare_folder(tmp_path)


def test_halves_must_be_halves_and_share_a_case(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="no predicted half"):
        compare_folder(tmp_path)
    Half("predicted", [FREE], 50, seed=1).write(tmp_path)
    with pytest.raises(CompareError, match="no measured half"):
        compare_folder(tmp_path)
    Half("measured", [LOSSY], 50, seed=1).write(tmp_path)
    with pytest.raises(CompareError, match="no case in common"):
        compare_folder(tmp_path)
    predicted = Results.open(tmp_path / "predicted")
    with pytest.raises(CompareError, match="half is 'predicted': expected 'measured'"):
        compare(predicted, predicted)


def test_cases_of_one_half_only_are_named(tmp_path: Path) -> None:
    Half("predicted", [FREE, LOSSY], 400, seed=1).write(tmp_path)
    Half("measured", [FREE], 400, seed=2).write(tmp_path)
    comparison = compare_folder(tmp_path)
    assert len(comparison.cases) == 1
    assert comparison.only_predicted == ["loss 2 %"]
    assert comparison.only_measured == []


def test_a_comparison_repeats_and_survives_its_file(tmp_path: Path) -> None:
    folder = study(tmp_path, [FREE, LOSSY], n=100, failed=3)
    first = compare_folder(folder)
    assert compare_folder(folder) == first
    save(first, folder)
    assert load(folder) == first
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.json",
        "measured",
        "predicted",
    ]


def test_another_case_changes_no_interval(tmp_path: Path) -> None:
    Half("predicted", [FREE], 900, seed=1).write(tmp_path / "one")
    Half("measured", [FREE], 90, seed=2).write(tmp_path / "one")
    Half("predicted", [FREE, LOSSY], 900, seed=1).write(tmp_path / "two")
    Half("measured", [FREE, LOSSY], 90, seed=2).write(tmp_path / "two")
    one, two = compare_folder(tmp_path / "one"), compare_folder(tmp_path / "two")
    assert one.cases[0].rows == two.cases[0].rows


def test_a_missing_or_foreign_manifest_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="is not a results folder"):
        Results.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"schema_version": 3}')
    with pytest.raises(ResultsError, match="schema_version is 3: this version of Warifu"):
        Results.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ResultsError, match="manifest is cut off at line 1, column 1: run the"):
        Results.open(tmp_path)


def test_requirements_are_judged_by_their_interval(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [FREE], 2_000, seed=1).write(tmp_path))
    wanted = requirements(
        [
            ("https.establishment", "p99", "<", 5e9, "p99 < 5 s"),
            ("https.establishment", "p50", "<", 100e6, "p50 < 100 ms"),
            ("https.establishment", "mean", ">=", 100e6, "mean >= 100 ms"),
            ("https.establishment", "max", "<=", 1e9, "max <= 1 s"),
        ]
    )
    verdicts = [one.verdict for one in judge_all(half, wanted)]
    assert verdicts == ["pass", "fail", "pass", "undecided"]
    few = Results.open(Half("measured", [FREE], 200, seed=1).write(tmp_path))
    (p99, *_) = judge_all(few, wanted)
    assert p99.verdict is Verdict.UNDECIDED
    assert p99.trials_needed == 368


def judged(half: Results, metric: str, statistic: str, operator: str, bound: float) -> Judged:
    wanted = requirements([(metric, statistic, operator, bound, f"{metric}.{statistic}")])
    (one,) = judge_all(half, wanted)
    return one


def test_requirement_on_a_quantile_that_failures_reach(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [FREE], 2_000, seed=1, failed=100).write(tmp_path))
    one = judged(half, "https.establishment", "p99", "<", 5e9)
    assert (one.value, one.verdict) == (math.inf, Verdict.FAIL)
    assert one.remark == "more than 1 % of trials failed"
    assert judged(half, "https.establishment", "p90", "<", 5e9).remark == ""


def test_a_maximum_is_bounded_by_trials_from_below_alone(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [FREE], 2_000, seed=1).write(tmp_path))
    near = judged(half, "https.establishment", "max", "<", 1e9)
    assert near.verdict is Verdict.UNDECIDED
    assert near.remark == "a maximum cannot be proven by trials: require a quantile"
    assert near.interval == (near.value, math.inf)
    assert judged(half, "https.establishment", "max", "<", 1e6).verdict is Verdict.FAIL
    assert judged(half, "https.establishment", "max", ">", 1e6).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("n", "failed", "verdict"),
    [
        (2_000, 0, Verdict.PASS),
        (200, 0, Verdict.UNDECIDED),
        (1_990, 10, Verdict.PASS),
        (1_975, 25, Verdict.UNDECIDED),
        (1_950, 50, Verdict.FAIL),
    ],
)
def test_a_share_of_failures_is_judged_by_its_interval(
    tmp_path: Path, n: int, failed: int, verdict: Verdict
) -> None:
    half = Results.open(Half("predicted", [FREE], n, seed=1, failed=failed).write(tmp_path))
    one = judged(half, "connection.failed", "mean", "<", 0.012)
    assert one.verdict is verdict
    assert one.value == pytest.approx(failed / (n + failed))
    assert one.interval.low <= one.value <= one.interval.high
    assert one.n == n + failed
    assert (one.trials_needed is not None) == (n == 200)


def exact(folder: Path, residual: float, failed: int = 0, cell: Cell = FREE) -> Results:
    """A prediction whose weights are probabilities, which lack this to one."""
    path = Half("predicted", [cell], 1_000, seed=1, failed=failed).write(folder)
    part = next(path.glob("observations/*.parquet"))
    weight = pl.lit((1.0 - residual) / (1_000 + failed))
    rows = pl.read_parquet(part).with_columns(weight=weight, exact=pl.lit(value=True))
    rows.write_parquet(part)
    return Results.open(path)


@pytest.mark.parametrize("cell", [FREE, LOSSY], ids=["free", "lossy"])
def test_a_prediction_of_probabilities_is_shown_and_not_judged(tmp_path: Path, cell: Cell) -> None:
    """Its weights add up to one: as counts of trials they would decide nothing, or anything."""
    exact(tmp_path, 0.001, cell=cell)
    Half("measured", [cell], 2_000, 2, scale=1.5, client_bytes=(1,)).write(tmp_path)
    comparison = compare_folder(tmp_path)
    (case,) = comparison.cases
    assert case.not_judged == (
        "predicted by the exact tier, whose weights are probabilities: predict with --tier events "
        "to judge it"
    )
    assert comparison.verdict is None
    assert case.bytes == [] and not case.bytes_gated
    assert not any(row.verdict for row in case.rows)
    p50, mean = case.row("p50"), case.row("mean")
    assert p50 is not None and mean is not None
    assert p50.relative == pytest.approx(1 / 1.5 - 1.0, abs=0.05)
    assert mean.no_statement == case.not_judged
    notes = overview_table(comparison).notes
    assert f"Not judged: {case.not_judged} ({case.label})." in notes
    assert any(one.endswith("; n and failed are measured connections.") for one in notes)


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        # 0.3 % of 99.9 % fail, and any part of the other 0.1 %.
        (0.0029, Verdict.FAIL),
        (0.0030, Verdict.UNDECIDED),
        (0.0039, Verdict.UNDECIDED),
        (0.0041, Verdict.PASS),
    ],
)
def test_failures_that_the_exact_tier_left_out_may_decide(
    tmp_path: Path, bound: float, verdict: Verdict
) -> None:
    half = exact(tmp_path, 0.001, failed=3)
    one = judged(half, "connection.failed", "mean", "<", bound)
    assert one.verdict is verdict
    share = 3 / 1_003
    assert one.value == pytest.approx(share)
    assert one.interval == pytest.approx((share * 0.999, share * 0.999 + 0.001))
    # More trials are none of the exact tier's.
    assert one.trials_needed is None
    said = "the exact tier left out 0.1 % of connections, which would decide: predict with --tier"
    assert one.remark.startswith(said) is (verdict is Verdict.UNDECIDED)


def test_none_that_failed_of_an_exact_prediction_is_not_none_that_fails(tmp_path: Path) -> None:
    lacking = exact(tmp_path / "lacking", 0.001)
    assert judged(lacking, "connection.failed", "mean", "<", 0.0005).verdict is Verdict.UNDECIDED
    assert judged(lacking, "connection.failed", "max", "<", 0.5).verdict is Verdict.UNDECIDED
    whole = exact(tmp_path / "whole", 0.0)
    assert whole.distribution(FREE.case_id, "connection.failed").residual == 0.0
    assert judged(whole, "connection.failed", "mean", "<", 0.0005).verdict is Verdict.PASS


def test_times_that_the_exact_tier_left_out_may_decide(tmp_path: Path) -> None:
    half = exact(tmp_path, 0.02)
    times = half.distribution(FREE.case_id, "https.establishment")
    assert times.residual == pytest.approx(0.02)
    # Bytes of failed connections are not counted, and what was left out may have had some.
    assert half.distribution(FREE.case_id, "bytes.client_sent").residual == pytest.approx(0.02)
    assert judged(half, "https.establishment", "p95", "<", 5e9).verdict is Verdict.PASS
    p99 = judged(half, "https.establishment", "p99", "<", 5e9)
    assert (p99.verdict, p99.interval.high) == (Verdict.UNDECIDED, math.inf)
    assert p99.interval.low <= p99.value < 5e9
    mean = judged(half, "https.establishment", "mean", "<", 5e9)
    assert (mean.verdict, mean.interval.high) == (Verdict.UNDECIDED, math.inf)
    assert mean.remark.startswith("the exact tier left out 2 % of connections")
    assert judged(half, "https.establishment", "mean", ">", 5e9).verdict is Verdict.UNDECIDED
    assert judged(half, "https.establishment", "mean", ">", 100e6).verdict is Verdict.PASS


def test_costs_that_the_exact_tier_drew_may_not_decide(tmp_path: Path) -> None:
    half = exact(tmp_path, 0.0)
    half._noise = {FREE.case_id: {"https.establishment": Noise((1.0,), (0.01,), 1e6)}}
    sure = replace(half.distribution(FREE.case_id, "https.establishment"), noise=None)
    bound = sure.quantile(0.51)
    one = judged(half, "https.establishment", "p50", "<", bound)
    assert (one.verdict, one.trials_needed) == (Verdict.UNDECIDED, None)
    assert one.interval == pytest.approx((sure.quantile(0.4804), sure.quantile(0.5196)))
    assert one.remark.startswith("the costs that the exact tier draws are too few to decide")
    assert judged(half, "https.establishment", "p50", "<", sure.quantile(0.53)).verdict is (
        Verdict.PASS
    )
    mean = judged(half, "https.establishment", "mean", "<", sure.mean() + 1e6)
    assert mean.verdict is Verdict.UNDECIDED
    # Others have noise, and a case without would be told as sure.
    half._noise = {"another": half._noise[FREE.case_id]}
    with pytest.raises(ResultsError, match="lacks case"):
        half.distribution(FREE.case_id, "https.establishment")


def test_any_failure_fails_a_maximum_of_none(tmp_path: Path) -> None:
    none = Results.open(Half("predicted", [FREE], 500, seed=1).write(tmp_path / "none"))
    some = Results.open(Half("predicted", [FREE], 500, seed=1, failed=1).write(tmp_path / "some"))
    assert judged(none, "connection.failed", "max", "<", 0.5).interval == (0.0, 1.0)
    assert judged(some, "connection.failed", "max", "<", 0.5).verdict is Verdict.FAIL


def test_failures_are_late_and_neither_large_nor_sent_again(tmp_path: Path) -> None:
    half = Results.open(Half("measured", [FREE], 50, seed=1, failed=5).write(tmp_path))
    assert half.distribution(FREE.case_id, "https.establishment").failed == 5
    for metric in ("bytes.client_sent", "segments.retransmitted", "packets.link"):
        assert half.distribution(FREE.case_id, metric).failed == 0
    failures = half.distribution(FREE.case_id, "connection.failed")
    assert (failures.values.tolist(), failures.weights.tolist()) == ([0.0, 1.0], [50.0, 5.0])


def test_a_prediction_without_the_metric_is_undecided_and_a_measurement_silent(
    tmp_path: Path,
) -> None:
    predicted = Results.open(Half("predicted", [FREE], 50, seed=1).write(tmp_path))
    one = judged(predicted, "packets.link", "p95", "<", 40)
    assert one.verdict is Verdict.UNDECIDED
    assert one.remark == "no connection gave a value of packets.link"
    assert one.margin == -math.inf
    measured = Results.open(Half("measured", [FREE], 50, seed=1).write(tmp_path))
    assert judge_all(measured, [one.requirement]) == []


def test_requirement_on_a_metric_of_another_protocol_is_not_judged(tmp_path: Path) -> None:
    # Failed connections have no time of CoAP either.
    half = Results.open(Half("predicted", [FREE], 50, seed=1, failed=5).write(tmp_path))
    wanted = requirements([("coap.exchange", "p99", "<", 5e9, "coap.exchange.p99 < 5 s")])
    assert judge_all(half, wanted) == []


def test_the_interval_of_a_probability_is_clopper_and_pearson_s() -> None:
    assert share_interval(10, 100) == pytest.approx((0.04900, 0.17622), abs=1e-5)
    assert share_interval(0, 200) == pytest.approx((0.0, 1.0 - 0.025 ** (1 / 200)))
    assert share_interval(200, 200) == pytest.approx((0.025 ** (1 / 200), 1.0))
    assert share_interval(0, 0) == (0.0, 1.0)

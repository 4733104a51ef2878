# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What trials can decide: perfect predictors pass, those that are off by twice a gate fail, and
intervals cover as often as they say, neither more seldom nor more often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pytest

from support.lossy import Law, halves, strata_of
from warifu.compare import jumps, stats, strata
from warifu.compare.blocks import Blocks, quantile
from warifu.compare.gates import SPREADS, STRATUM_SHARE, Verdict, gates_for
from warifu.compare.power import Error, required_ratio, student, together, trials_that_decide
from warifu.compare.rows import Row, mean_row, quantile_rows, spread_row
from warifu.results import Distribution
from warifu.results.strata import StrataOfCase
from warifu.results.trials import Trials

RUNS = 60
#: Of 60 runs of 95 % each, 52 or fewer have a chance below 1 in 100.
LEAST = 53
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@cache
def predicted(law: Law) -> Trials:
    """So many draws that their own noise is small; measured draws are others."""
    return law.draw(400_000, np.random.default_rng(1))


@cache
def distribution(law: Law) -> Distribution:
    return Distribution.of(predicted(law).values)


@cache
def strata_predicted(law: Law) -> StrataOfCase:
    return strata_of(predicted(law))


def gated(
    law: Law, measured: Trials, rng: np.random.Generator, only: str | None = None
) -> list[Row]:
    """Every gate on whole times, as comparing makes them; ``only`` one statistic's."""
    found = halves(distribution(law), measured)
    share = 1.0 if law.rtt_ms == 0.0 else 0.02
    rows: list[Row] = []
    gates = {gate.statistic: gate for gate in gates_for(law.loss)}
    for statistic, gate in gates.items():
        if only not in {None, statistic}:
            continue
        if statistic == "mean":
            rows.append(mean_row("t", found, gate, share, rng))
        else:
            p = QUANTILES[statistic]
            rows += quantile_rows("t", statistic, p, found, gate, share, rng)
    if law.loss and only is None:
        theirs = strata.of_trials(measured)
        assert theirs is not None
        ours = strata_predicted(law)
        rows += strata.strata_rows(ours, theirs, measured.size, gates["mean"])
    elif not law.loss:
        names = [name for name in SPREADS if only in {None, f"{name} - p50"}]
        rows += [spread_row("t", name, QUANTILES[name], found, 0.0, rng) for name in names]
    return [row for row in rows if row.gate]


def verdicts(rows: Iterable[Row]) -> dict[str, Counter[Verdict | None]]:
    found: dict[str, Counter[Verdict | None]] = {}
    for row in rows:
        found.setdefault(row.statistic, Counter())[row.verdict] += 1
    return found


LOSS_FREE, NO_DELAY = Law(), Law(rtt_ms=0.0, connection=0.10)
LOSS_2, LOSS_5 = Law(loss=0.02), Law(loss=0.05)
FAR = Law(loss=0.02, rtt_ms=800.0)
SPREAD = Law(loss=0.02, computing_ms=400.0, connection=0.9)
#: Trials that decide most gates of a law.
ENOUGH = {LOSS_FREE: 6_000, NO_DELAY: 8_000, LOSS_2: 40_000, LOSS_5: 40_000, FAR: 40_000}
#: Of one whose quantiles are at no jump.
MANY = {**ENOUGH, SPREAD: 200_000}


@pytest.mark.parametrize("law", ENOUGH)
def test_a_perfect_predictor_passes_every_gate_that_is_judged(law: Law) -> None:
    rng = np.random.default_rng(2)
    rows = [row for _ in range(RUNS) for row in gated(law, law.draw(ENOUGH[law], rng, 10), rng)]
    often = {name: of for name, of in verdicts(rows).items() if of.total() - of[None] > RUNS // 2}
    assert len(often) >= 4
    for name, of in often.items():
        judged = of.total() - of[None]
        assert of[Verdict.PASS] >= judged - (RUNS - LEAST), (name, of)
        assert of[Verdict.FAIL] <= 1, (name, of)


@pytest.mark.parametrize("rtt_ms", [0.0, 60.0])
def test_a_perfect_predictor_of_a_machine_that_drifts_does_not_fail(rtt_ms: float) -> None:
    """Its parts are 8 % apart: ten of them say that this is not decided, two would not."""
    law = Law(rtt_ms=rtt_ms, connection=0.10, drift=0.08)
    rng = np.random.default_rng(14)
    # What is predicted has a speed for each of very many parts.
    ours = Distribution.of(law.draw(400_000, np.random.default_rng(1), 20_000).values)
    found: Counter[tuple[int, str, Verdict | None]] = Counter()
    for parts in (10, 2):
        for _ in range(RUNS):
            both = halves(ours, law.draw(4_000, rng, parts))
            share = 1.0 if rtt_ms == 0.0 else 0.02
            # Of two parts the median is enough to see: their mean takes a bootstrap.
            for gate in gates_for(0.0)[: 2 if parts == 10 else 1]:
                rows = (
                    [mean_row("t", both, gate, share, rng)]
                    if gate.statistic == "mean"
                    else quantile_rows("t", "p50", 0.5, both, gate, share, rng)
                )
                found.update((parts, row.statistic, row.verdict) for row in rows)
    for name in ("p50", "mean"):
        assert found[10, name, Verdict.FAIL] <= 4, found
    if rtt_ms == 0.0:
        assert found[2, "p50", Verdict.FAIL] > 10, found


def off_by_twice(law: Law, statistic: str, measured: Trials) -> Trials:
    """Measured trials whose statistic is twice its gate away from the prediction's."""
    of_all = predicted(law).values
    if " - " in statistic:
        middle = np.median(of_all)
        apart = 1.0 / (1.0 - 2.0 * SPREADS[statistic[:3]])
        return Trials(measured.trial, middle + (measured.values - middle) * apart, measured.part,
                      measured.strata)  # fmt: skip
    share = 1.0 if law.rtt_ms == 0.0 else 0.02
    gate = {gate.statistic: gate for gate in gates_for(law.loss)}[statistic]
    truth = of_all.mean() if statistic == "mean" else quantile(of_all, QUANTILES[statistic])
    value = truth
    for _ in range(50):
        value = truth + 2.0 * gate.width_ns(value, share)
    return Trials(measured.trial, measured.values * (value / truth), measured.part, measured.strata)


@pytest.mark.parametrize(
    ("law", "statistic"),
    [
        *((law, name) for law in (LOSS_FREE, NO_DELAY) for name in ("p50", "mean")),
        *((law, name) for law in (LOSS_FREE, NO_DELAY) for name in ("p95 - p50", "p99 - p50")),
        *((LOSS_2, name) for name in ("p50", "mean")),
        *((LOSS_5, name) for name in ("p50", "mean")),
        # Where they are at no jump.
        (FAR, "p95"),
        (SPREAD, "p99"),
    ],
)
def test_a_prediction_that_is_off_by_twice_the_gate_fails(law: Law, statistic: str) -> None:
    rng = np.random.default_rng(3)
    found: Counter[Verdict | None] = Counter()
    for _ in range(RUNS):
        measured = off_by_twice(law, statistic, law.draw(MANY[law], rng, 10))
        found += verdicts(gated(law, measured, rng, only=statistic))[statistic]
    judged = found.total() - found[None]
    assert judged > RUNS // 2
    assert found[Verdict.FAIL] >= judged - (RUNS - LEAST), found


def test_shares_at_a_jump_and_of_strata_that_are_off_by_twice_their_gate_fail() -> None:
    """More losses than predicted: the share within the deadline falls by more than 2 points, and
    connections with a retransmission are 40 % more."""
    rng = np.random.default_rng(4)
    other = Law(loss=0.0205 * (1.0 + 2.2 * STRATUM_SHARE))
    found: dict[str, Counter[Verdict | None]] = {}
    for _ in range(RUNS):
        rows = gated(LOSS_2, other.draw(ENOUGH[LOSS_2], rng, 10), rng)
        for name, of in verdicts(rows).items():
            found.setdefault(name, Counter()).update(of)
    judged = {name: of for name, of in found.items() if "share" in name and of[None] < RUNS // 2}
    assert {"p95 share", "share: SYN again 0, sent again 1"} <= judged.keys()
    for name, of in judged.items():
        assert of[Verdict.FAIL] >= of.total() - of[None] - (RUNS - LEAST), (name, of)


def test_means_of_strata_that_are_off_by_twice_their_gate_fail() -> None:
    rng = np.random.default_rng(12)
    gate = {gate.statistic: gate for gate in gates_for(LOSS_2.loss)}["mean"]
    # The gate is a share of what is measured.
    off = LOSS_2.off_by(1.0 / (1.0 - 2.1 * gate.relative))
    found: dict[str, Counter[Verdict | None]] = {}
    for _ in range(RUNS):
        rows = gated(LOSS_2, off.draw(ENOUGH[LOSS_2], rng, 10), rng)
        for name, of in verdicts(rows).items():
            found.setdefault(name, Counter()).update(of)
    judged = {name: of for name, of in found.items() if name.startswith("mean: ")}
    judged = {name: of for name, of in judged.items() if of[None] < RUNS // 2}
    assert len(judged) >= 2
    for name, of in judged.items():
        assert of[Verdict.FAIL] >= of.total() - of[None] - (RUNS - LEAST), (name, of)


def test_a_mean_that_trials_cannot_decide_says_how_many_would() -> None:
    """The first tables: 10,000 connections at 2 % loss leave the mean open by 2 %."""
    rng = np.random.default_rng(5)
    few = gated(LOSS_2, LOSS_2.draw(10_000, rng, 10), rng)
    (mean,) = [row for row in few if row.statistic == "mean"]
    assert mean.verdict is None
    assert mean.trials_needed is not None
    assert 15_000 < mean.trials_needed < 60_000
    runs = [gated(LOSS_2, LOSS_2.draw(2 * mean.trials_needed, rng, 10), rng) for _ in range(10)]
    judged = [row.verdict for rows in runs for row in rows if row.statistic == "mean"]
    assert judged.count(None) <= 3


def coverage(
    interval: Callable[[Trials], tuple[float, float]], truth: float, law: Law, parts: int
) -> float:
    rng = np.random.default_rng(6)
    covered = []
    for _ in range(1_500):
        low, high = interval(law.draw(100 * parts, rng, parts))
        covered.append(low <= truth <= high)
    return float(np.mean(covered))


DRIFTING = Law(drift=0.08, rtt_ms=0.0)
#: 1,500 runs of 95 % each leave a standard error of 0.6 %.
COVERS = pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("parts", [5, 10])
@pytest.mark.parametrize("law", [DRIFTING, LOSS_2])
def test_the_interval_from_parts_covers_as_often_as_it_says(law: Law, parts: int) -> None:
    whole = law.draw(400_000, np.random.default_rng(7), 20_000)

    def of_mean(trials: Trials) -> tuple[float, float]:
        error = Blocks.of_parts(trials.part, trials.size).error_of_mean(trials.values)
        return error.interval(float(trials.values.mean()))

    assert coverage(of_mean, float(whole.values.mean()), law, parts) == COVERS


def test_the_interval_of_a_quantile_from_parts_covers_as_often_as_it_says() -> None:
    whole = DRIFTING.draw(400_000, np.random.default_rng(7), 20_000)
    truth = quantile(whole.values, 0.5)

    def of_median(trials: Trials) -> tuple[float, float]:
        middle = quantile(trials.values, 0.5)
        blocks = Blocks.of_parts(trials.part, trials.size)
        rank = blocks.error_of_mean((trials.values <= middle).astype(np.float64))
        half = student(rank.freedom) * rank.of
        low, high = (quantile(trials.values, float(np.clip(0.5 + one, 0.0, 1.0)))
                     for one in (-half, half))  # fmt: skip
        return low, high

    assert coverage(of_median, truth, DRIFTING, 10) == COVERS


def test_a_bootstrap_of_five_parts_would_cover_too_seldom() -> None:
    """Why errors are taken by Student's t, and trials of a part not as independent."""
    whole = DRIFTING.draw(400_000, np.random.default_rng(7), 20_000)
    truth = float(whole.values.mean())
    rng = np.random.default_rng(8)

    def by_bootstrap(trials: Trials) -> tuple[float, float]:
        assert trials.part is not None
        means = np.bincount(trials.part, weights=trials.values) / np.bincount(trials.part)
        resampled = rng.choice(means, (200, means.size)).mean(axis=1)
        return float(np.quantile(resampled, 0.025)), float(np.quantile(resampled, 0.975))

    def as_independent(trials: Trials) -> tuple[float, float]:
        return (
            Blocks.of_parts(None, trials.size)
            .error_of_mean(trials.values)
            .interval(float(trials.values.mean()))
        )

    assert coverage(by_bootstrap, truth, DRIFTING, 5) < 0.90
    assert coverage(as_independent, truth, DRIFTING, 5) < 0.60


def test_a_gate_must_be_wider_where_few_parts_tell_the_error() -> None:
    assert required_ratio(math.inf) == pytest.approx(3.92, abs=0.001)
    assert required_ratio(4) == pytest.approx(5.38, abs=0.01)
    assert required_ratio(4) > required_ratio(9) > required_ratio(19) > required_ratio(math.inf)


@pytest.mark.parametrize("freedom", [4, 9])
def test_the_required_width_passes_95_percent_and_fails_95_percent(freedom: int) -> None:
    rng = np.random.default_rng(9)
    n, width = 200_000, required_ratio(freedom)
    off = rng.standard_normal(n)
    half = student(freedom) * np.sqrt(rng.chisquare(freedom, n) / freedom)
    assert (np.abs(off) + half <= width).mean() == pytest.approx(0.95, abs=0.002)
    assert (2.0 * width + off - half > width).mean() >= 0.95


def test_errors_of_a_difference_are_added_as_squares() -> None:
    assert together(Error(3.0), Error(4.0)) == Error(5.0)
    # Most of the error is known with nine degrees of freedom.
    assert together(Error(0.1), Error(4.0, 9.0)).freedom == pytest.approx(9.0, rel=0.01)
    assert together(Error(4.0, 9.0), Error(4.0, 9.0)).freedom == pytest.approx(18.0)


def test_trials_that_decide_grow_with_the_square() -> None:
    assert trials_that_decide(4.0, 2.0, 100) == 400
    # Half of the square is the prediction's own noise, which measuring does not make less.
    assert trials_that_decide(4.0, 2.0, 100, predicted_share=0.2) == pytest.approx(1_600, abs=1)
    assert trials_that_decide(4.0, 2.0, 100, predicted_share=0.5) is None
    assert trials_that_decide(math.inf, 2.0, 100) is None


def test_a_quantile_at_a_gap_is_at_a_jump_and_one_beside_it_is_not() -> None:
    rng = np.random.default_rng(10)
    near = rng.normal(240e6, 2e6, 95_000)
    late = rng.normal(1_240e6, 2e6, 5_000)
    ours, theirs = (Distribution.of(np.concatenate([near, late]) + off) for off in (0.0, 1e5))
    found = jumps.jump(ours, theirs, 0.95, 0.01, 7e6)
    assert found is not None
    assert 300e6 < found < 1_200e6
    assert jumps.jump(ours, theirs, 0.90, 0.01, 7e6) is None
    assert jumps.reach(ours, 0.90, 0.01) < 1e6
    assert jumps.reach(ours, 0.95, 0.01) > 900e6


def test_the_last_connections_of_a_tail_are_at_no_jump() -> None:
    rng = np.random.default_rng(12)
    for n, p, rank_error in ((2_000, 0.95, 0.02), (2_000, 0.99, 0.009), (10_000, 0.99, 0.004)):
        for _ in range(50):
            ours, theirs = (Distribution.of(3e6 + rng.gamma(2.0, 0.4e6, n)) for _ in range(2))
            assert jumps.jump(ours, theirs, p, rank_error, 0.02e6) is None


def test_a_jump_of_microseconds_is_asked_for_inside_of_it() -> None:
    """A deadline rounded to 1 ms would be 0, which nothing meets in either half."""
    rng = np.random.default_rng(13)
    near, late = rng.normal(80e3, 2e3, 9_500), rng.normal(240e3, 2e3, 500)
    ours, theirs = (Distribution.of(np.concatenate([near, late]) + off) for off in (0.0, 1e3))
    found = jumps.jump(ours, theirs, 0.95, 0.01, 4e3)
    assert found is not None
    assert 100e3 < found < 220e3
    assert found == 160e3, "the middle"


def test_parts_of_a_measurement_are_its_blocks_from_five_on() -> None:
    four, five = np.arange(400) // 100, np.arange(500) // 100
    assert not Blocks.of_parts(four, 400).are_parts
    assert Blocks.of_parts(five, 500).are_parts
    assert Blocks.of_parts(five, 500).count == 5
    assert not Blocks.of_parts(None, 500).are_parts


def test_rank_of_a_quantile_by_parts_widens_its_interval() -> None:
    rng = np.random.default_rng(11)
    law = Law(drift=0.1, rtt_ms=0.0)
    ours = Distribution.of(law.draw(50_000, rng).values)
    found = halves(distribution(NO_DELAY), law.draw(5_000, rng, 10))
    share = (found.values <= quantile(found.values, 0.5)).astype(np.float64)
    by_parts = found.blocks.error_of_mean(share)
    narrow = stats.quantile_difference(ours, found.theirs, 0.5, np.random.default_rng(1))
    wide = stats.quantile_difference(ours, found.theirs, 0.5, np.random.default_rng(1), by_parts)
    assert wide.half_width > 2.0 * narrow.half_width

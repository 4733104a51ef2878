# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Intervals and tests of frequencies hold what they promise, over hundreds of samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.distributions import sizes, skewed
from warifu.compare import stats
from warifu.compare.exact import compare_bytes
from warifu.compare.gates import Verdict
from warifu.results import Distribution


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_the_interval_of_a_quantile_covers(p: float) -> None:
    rng = np.random.default_rng(11)
    truth = float(np.quantile(skewed(2_000_000, rng), p))
    covered = [
        low <= truth <= high
        for low, high in (
            stats.quantile_interval(Distribution.of(skewed(400, rng)), p) for _ in range(400)
        )
    ]
    # 400 tries of 95 % leave four standard errors of 1.1 % on the low side.
    assert np.mean(covered) > 0.95 - 4 * 0.011


@pytest.mark.parametrize("statistic", ["p50", "p95", "mean"])
def test_the_interval_of_a_difference_covers(statistic: str) -> None:
    """Two samples of one distribution differ by nothing: the interval must hold zero."""
    rng = np.random.default_rng(12)
    tries, covered = 150, 0
    for _ in range(tries):
        ours = Distribution.of(skewed(1_000, rng))
        theirs = Distribution.of(skewed(500, rng))
        if statistic == "mean":
            low, high = stats.mean_difference(ours, theirs, rng)
        else:
            p = int(statistic[1:]) / 100
            low, high = stats.quantile_difference(ours, theirs, p, rng)
        covered += low <= 0.0 <= high
    assert covered / tries > 0.95 - 4 * math.sqrt(0.95 * 0.05 / tries)


def test_the_test_of_frequencies_seldom_cries_wolf() -> None:
    rng = np.random.default_rng(21)
    predicted = sizes({70: 5_000, 71: 9_990, 72: 5_000, 69: 10})
    share = predicted.weights / predicted.n
    verdicts = []
    for _ in range(1_000):
        drawn = rng.multinomial(200, share)
        found = compare_bytes("b", predicted, Distribution.of(predicted.values, drawn))
        assert found is not None
        verdicts.append(found.verdict)
    assert verdicts.count(Verdict.FAIL) <= 6


def test_a_study_of_many_cases_seldom_fails_by_the_frequencies_of_bytes() -> None:
    """Every case asks twice: 48 tests of a perfect prediction fail together as seldom as said."""
    rng = np.random.default_rng(22)
    predicted = sizes({70: 5_000, 71: 9_990, 72: 5_000, 69: 10})
    share = predicted.weights / predicted.n
    failed = 0
    for _ in range(200):
        verdicts = []
        for _ in range(48):
            drawn = Distribution.of(predicted.values, rng.multinomial(200, share))
            found = compare_bytes("b", predicted, drawn, among=48)
            assert found is not None
            verdicts.append(found.verdict)
        failed += Verdict.FAIL in verdicts
    # 1 of 200 is expected; more than 6 has a chance below 1 in 10,000.
    assert failed <= 6

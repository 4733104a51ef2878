# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The intervals hold what they promise, on distributions whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.distributions import skewed
from warifu.compare import stats
from warifu.compare.stats import Interval
from warifu.results import Distribution


def test_quantiles_are_those_of_the_definition() -> None:
    distribution = Distribution.of([40.0, 10.0, 20.0, 30.0])
    assert [distribution.quantile(p) for p in (0.25, 0.26, 0.5, 0.95, 1.0)] == [10, 20, 20, 40, 40]


def test_weights_stand_for_trials() -> None:
    weighted = Distribution.of([1.0, 2.0, 9.0], [5.0, 3.0, 2.0])
    single = Distribution.of([1.0] * 5 + [2.0] * 3 + [9.0] * 2)
    assert weighted.n == single.n == 10
    for p in (0.1, 0.5, 0.51, 0.8, 0.81, 1.0):
        assert weighted.quantile(p) == single.quantile(p)
    assert weighted.mean() == single.mean() == 2.9


def test_exact_distribution() -> None:
    exact = Distribution.of([1.0, 2.0, 9.0], [0.5, 0.25, 0.2], failed=0.05, exact=True)
    assert [exact.quantile(p) for p in (0.0, 0.5, 0.51, 0.75, 0.95, 0.96)] == [
        1,
        1,
        2,
        2,
        9,
        math.inf,
    ]
    assert exact.n == pytest.approx(1.0)
    assert stats.quantile_interval(exact, 0.95) == Interval(9.0, 9.0)
    rng = np.random.default_rng(1)
    whole = Distribution.of([1.0, 2.0, 9.0], [0.5, 0.25, 0.25], exact=True)
    assert stats.mean_interval(whole, rng) == Interval(3.25, 3.25)


def test_difference_of_an_exact_distribution_has_the_noise_of_the_other_half() -> None:
    rng = np.random.default_rng(1)
    measured = Distribution.of(rng.choice([10.0, 20.0, 40.0], 900, p=[0.6, 0.3, 0.1]))
    exact = Distribution.of([10.0, 20.0, 40.0], [0.6, 0.3, 0.1], exact=True)
    sampled = Distribution.of([10.0, 20.0, 40.0], [540.0, 270.0, 90.0])
    apart = stats.mean_difference(exact, measured, rng)
    assert apart.low < exact.mean() - measured.mean() < apart.high
    assert apart.half_width < 0.9 * stats.mean_difference(sampled, measured, rng).half_width
    alone = stats.mean_interval(measured, rng).half_width
    assert apart.half_width == pytest.approx(alone, rel=0.15)
    assert stats.quantile_difference(exact, measured, 0.5, rng) == Interval(0.0, 0.0)
    gap, chance = stats.kolmogorov(exact, measured)
    assert gap < chance == pytest.approx(1.358 / 30)
    assert stats.wasserstein(exact, exact, rng).interval == Interval(0.0, 0.0)


@given(
    values=st.lists(st.integers(0, 1_000), min_size=1, max_size=8),
    hidden=st.lists(st.integers(0, 5_000), min_size=1, max_size=8),
    failed=st.booleans(),
    hidden_fail=st.booleans(),
    residual=st.floats(0.001, 0.4),
    p=st.floats(0.01, 0.999),
)
def test_what_is_left_out_lies_within_the_ends(
    values: list[int],
    hidden: list[int],
    failed: bool,
    hidden_fail: bool,
    residual: float,
    p: float,
) -> None:
    """Whatever the residual turns out to be, if it is not quicker than all of the rest."""
    hidden = [max(one, min(values)) for one in hidden]
    known = [(1.0 - residual) / (len(values) + failed)] * len(values)
    rest = [residual / (len(hidden) + hidden_fail)] * len(hidden)
    failing = known[0] if failed else 0.0
    exact = Distribution.of(values, known, failing, exact=True, residual=residual)
    failing += rest[0] if hidden_fail else 0.0
    whole = Distribution.of([*values, *hidden], [*known, *rest], failing, exact=True)
    low, high = stats.quantile_interval(exact, p)
    near = [whole.quantile(p + off) for off in (-1e-9, 1e-9)]
    assert low <= near[1]
    assert high >= near[0]
    share = exact.failed / exact.n
    low, high = exact.share_ends(share)
    assert low - 1e-12 <= whole.failed / whole.n <= high + 1e-12
    rng = np.random.default_rng(1)
    low, high = stats.mean_interval(exact, rng, limit=5_000.0)
    assert low - 1e-6 <= whole.mean(5_000.0) <= high + 1e-6
    low, high = stats.mean_interval(exact, rng)
    assert low - 1e-6 <= whole.mean()
    assert high == math.inf


def test_intervals_of_an_exact_distribution_that_lacks_a_thousandth() -> None:
    rng = np.random.default_rng(1)
    values, weights = [10.0, 20.0, 40.0], [0.9, 0.0892, 0.0098]
    lacking = Distribution.of(values, weights, exact=True, residual=0.001)
    assert stats.quantile_interval(lacking, 0.5) == Interval(10.0, 10.0)
    # From 0.9 of all on the residual may push it either way.
    assert stats.quantile_interval(lacking, 0.9005) == Interval(10.0, 20.0)
    assert stats.quantile_interval(lacking, 0.9995) == Interval(40.0, math.inf)
    # Weights may be of the rest alone.
    scaled = [one / 0.999 for one in weights]
    rest = Distribution.of(values, scaled, exact=True, residual=0.001)
    for p in (0.1, 0.9005, 0.95, 0.9995):
        assert stats.quantile_interval(rest, p) == stats.quantile_interval(lacking, p)
    low, high = stats.mean_interval(lacking, rng)
    assert (low, high) == (pytest.approx(9.0 + 1.784 + 0.392), math.inf)
    assert stats.mean_interval(lacking, rng, 100.0).high == pytest.approx(low + 0.1)
    # What has no part in the mean, the failed, may be replaced by what is left out.
    half = Distribution.of([10.0], [0.45], failed=0.45, exact=True, residual=0.1)
    assert stats.mean_interval(half, rng).low == pytest.approx(10.0 * 0.45 / 0.55)
    assert lacking.coarse(2).residual == 0.001
    for wrong in (1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="residual is"):
            Distribution.of([1.0], exact=True, residual=wrong)
    with pytest.raises(ValueError, match="0 of a sample"):
        Distribution.of([1.0], residual=0.1)


def test_a_difference_is_wider_by_what_the_prediction_leaves_out() -> None:
    values, weights = [10.0, 20.0, 40.0], [0.6, 0.3, 0.1]
    measured = Distribution.of(np.repeat(values, [540, 270, 90]))
    part = [one * 0.99 for one in weights]
    exact = Distribution.of(values, weights, exact=True)
    lacking = Distribution.of(values, part, exact=True, residual=0.01)

    def differences(ours: Distribution, limit: float) -> Interval:
        return stats.mean_difference(ours, measured, np.random.default_rng(1), limit)

    all_of_it, some = differences(exact, 1e3), differences(lacking, 1e3)
    mean = exact.mean()
    # The draws are the same but for rounding.
    assert some.low == pytest.approx(all_of_it.low - 0.01 * mean, abs=0.05)
    assert some.high == pytest.approx(all_of_it.high + 0.01 * (1e3 - mean), abs=0.05)
    assert differences(lacking, math.inf).high == math.inf
    rng = np.random.default_rng(1)
    apart = stats.quantile_difference(lacking, measured, 0.895, rng)
    assert apart.low <= 0.0
    assert apart.high >= 20.0
    gap, chance = stats.kolmogorov(lacking, measured)
    assert gap < chance == pytest.approx(1.358 / 30 + 0.01)


def test_failed_connections_are_later_than_all_others() -> None:
    distribution = Distribution.of(np.arange(1.0, 100.0), failed=1.0)
    assert distribution.n == 100
    assert distribution.quantile(0.99) == 99.0
    assert distribution.quantile(0.995) == math.inf
    assert distribution.mean(limit=99.0) == pytest.approx((np.arange(1, 100).sum() + 99) / 100)


def test_values_and_weights_must_match() -> None:
    with pytest.raises(ValueError, match="3 values but 2 weights"):
        Distribution.of([1, 2, 3], [1, 2])


def test_the_interval_of_a_difference_is_not_needlessly_wide() -> None:
    """Against the known standard error of a mean of normal values."""
    rng = np.random.default_rng(13)
    ours = Distribution.of(rng.normal(100.0, 10.0, 40_000))
    theirs = Distribution.of(rng.normal(100.0, 10.0, 10_000))
    expected = 1.96 * 10.0 * math.sqrt(1 / 40_000 + 1 / 10_000)
    assert stats.mean_difference(ours, theirs, rng).half_width == pytest.approx(expected, rel=0.1)


def test_stalls_that_are_missing_by_chance_are_no_difference() -> None:
    rng = np.random.default_rng(5)
    stalls = np.where(rng.random(20_000) < 0.04, 1e9, 0.0)
    predicted = Distribution.of(rng.normal(650e6, 5e6, 20_000) + stalls)
    # One sample of 40 in five has none of them.
    measured = Distribution.of(rng.normal(650e6, 5e6, 40))
    low, high = stats.mean_difference(predicted, measured, rng)
    assert low < 0 < high
    # Four hundred without any are no accident.
    low, _ = stats.mean_difference(predicted, Distribution.of(rng.normal(650e6, 5e6, 400)), rng)
    assert low > 0


def test_too_few_trials_leave_a_tail_open() -> None:
    rng = np.random.default_rng(14)
    assert stats.least_trials(0.99) == 368
    few = stats.quantile_interval(Distribution.of(skewed(300, rng)), 0.99)
    assert math.isfinite(few.low)
    assert few.high == math.inf
    enough = stats.quantile_interval(Distribution.of(skewed(400, rng)), 0.99)
    assert math.isfinite(enough.high)
    ours = Distribution.of(skewed(20_000, rng))
    low, high = stats.quantile_difference(ours, Distribution.of(skewed(300, rng)), 0.99, rng)
    assert low == -math.inf
    assert math.isfinite(high)


def test_concurrent_connections_are_not_independent_trials() -> None:
    values = np.repeat(np.arange(100.0), 10)
    apart = stats.quantile_interval(Distribution.of(values), 0.5)
    together = stats.quantile_interval(Distribution.of(values, concurrent=10), 0.5)
    assert together.half_width > 2.5 * apart.half_width


def test_wasserstein_of_a_shift_is_the_shift() -> None:
    rng = np.random.default_rng(15)
    values = rng.normal(100.0, 1.0, 5_000)
    distance = stats.wasserstein(Distribution.of(values + 3.0), Distribution.of(values), rng)
    assert distance.value == pytest.approx(3.0)
    assert distance.interval.low <= 3.0 <= distance.interval.high
    assert distance.chance < 0.2


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_interval_of_a_distance_holds_its_estimate(apart: float) -> None:
    """Nearly the same trials twice: all resamples are farther apart than the trials themselves."""
    rng = np.random.default_rng(18)
    values = rng.gamma(2.0, 1e6, 40)
    distance = stats.wasserstein(Distribution.of(values + apart), Distribution.of(values), rng)
    assert distance.interval.low == distance.value == pytest.approx(apart)
    assert distance.interval.high > 1e5


def test_a_perfect_prediction_is_as_near_as_chance() -> None:
    rng = np.random.default_rng(16)
    distance = stats.wasserstein(
        Distribution.of(skewed(20_000, rng)), Distribution.of(skewed(1_000, rng)), rng
    )
    assert 0 < distance.value < 1.5 * distance.chance


def test_wasserstein_agrees_with_scipy() -> None:
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(17)
    u, v, weights = rng.gamma(2, 3, 200), rng.gamma(3, 2, 150), rng.integers(1, 9, 150)
    distance = stats.wasserstein(Distribution.of(u), Distribution.of(v, weights), rng)
    assert distance.value == pytest.approx(wasserstein_distance(u, v, v_weights=weights))


def test_kolmogorov_is_the_largest_gap() -> None:
    gap, level = stats.kolmogorov(Distribution.of([1, 2, 3, 4.0]), Distribution.of([3, 4, 5, 6.0]))
    assert gap == 0.5
    assert level == pytest.approx(1.358 * math.sqrt(0.5))


def test_a_constant_has_no_spread() -> None:
    rng = np.random.default_rng(18)
    same = Distribution.of(np.full(50, 60e6))
    assert stats.mean_difference(same, same, rng) == Interval(0.0, 0.0)
    assert stats.quantile_difference(same, same, 0.5, rng) == Interval(0.0, 0.0)


positive = st.floats(min_value=1.0, max_value=1e10)


@settings(deadline=None)
@given(st.lists(st.tuples(positive, st.integers(1, 9)), min_size=1, max_size=60))
def test_laws_of_a_distribution(atoms: list[tuple[float, int]]) -> None:
    values, weights = zip(*atoms, strict=True)
    weighted = Distribution.of(values, weights)
    single = Distribution.of(np.repeat(values, weights))
    assert weighted.n == single.n
    assert np.array_equal(weighted.values, single.values)
    quantiles = [weighted.quantile(p) for p in np.linspace(0, 1, 21)]
    assert quantiles == sorted(quantiles)
    assert quantiles == [single.quantile(p) for p in np.linspace(0, 1, 21)]
    slack = 1e-9 * max(values)
    assert min(values) - slack <= weighted.mean() <= max(values) + slack
    shares = weighted.cdf(weighted.values)
    assert shares[-1] == pytest.approx(1.0)
    assert np.all(np.diff(shares) > 0)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Intervals of statistics and of their differences, and distances between distributions.

Everything here is a function of arrays and a seed. Times are in nanoseconds, but nothing
depends on the unit.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from warifu.results.distribution import Distribution, Floats

#: Share of the intervals that are to cover the truth.
CONFIDENCE = 0.95
#: Replicates of a bootstrap: its own noise is then about 0.3 % of coverage at 95 %
#: (binomial standard error of a tail of 2.5 %).
REPLICATES = 2_000
#: Replicates for distances between whole distributions, which cost more and judge nothing.
DISTANCE_REPLICATES = 400
#: Elements of one block of resampled values: small enough for a processor's cache, which is
#: three times as fast as blocks of a few million.
_BLOCK = 100_000
#: With this many trials to an atom a resample is drawn as counts of atoms, below as indices:
#: a binomial draw costs about four times as much as an index.
_COUNTED_TRIALS = 4

#: Atoms to which a distribution is coarsened before it is resampled: their spread within is then
#: below a thousandth of the whole.
_RESAMPLED_ATOMS = 1_000

_TAIL = (1.0 - CONFIDENCE) / 2.0


class Interval(NamedTuple):
    """A closed interval; an end that the data cannot bound is infinite."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the length."""
        return (self.high - self.low) / 2.0


def quantile_interval(distribution: Distribution, p: float) -> Interval:
    """The distribution-free interval of a quantile, from order statistics.

    How many of n independent draws lie below the true quantile is binomial, whatever the
    distribution is; where even the largest value may lie below, the interval is open. That of an
    exact distribution is where its residual and its noise leave the quantile.
    """
    if distribution.exact:
        return Interval(*distribution.quantile_ends(p))
    low, high = _quantile_draws(distribution, p, _binomial_grid(distribution.independent, p))
    return Interval(float(low[0]), float(high[-1]))


def share_interval(count: float, n: float) -> Interval:
    """The interval of a probability from ``count`` of ``n`` draws (Clopper and Pearson 1934).

    Not the mean's bootstrap: where none of the draws fails, its resamples do not either.
    """
    from scipy.special import betaincinv

    if n <= 0:
        return Interval(0.0, 1.0)
    low = float(betaincinv(count, n - count + 1.0, _TAIL)) if count > 0 else 0.0
    high = float(betaincinv(count + 1.0, n - count, 1.0 - _TAIL)) if count < n else 1.0
    return Interval(low, high)


class RankError(Protocol):
    """The standard error of a quantile's rank as a share, and the freedom with which it is known
    (`warifu.compare.power.Error`)."""

    @property
    def of(self) -> float:
        """The error, 0 to 1."""

    @property
    def freedom(self) -> float:
        """Infinite where the error is known."""


def quantile_difference(
    predicted: Distribution,
    measured: Distribution,
    p: float,
    rng: np.random.Generator,
    rank: RankError | None = None,
) -> Interval:
    """The interval of predicted minus measured ``p`` quantile.

    Each half's rank is drawn from its binomial law, the measured one's from Student's where its
    error comes from the parts of a measurement; the ends take the neighbouring order statistic
    outwards, so ties and gaps make the interval wider, never narrower.
    """
    below_p = rng.binomial(predicted.independent, p, REPLICATES).astype(np.float64)
    n = measured.independent
    if rank is None or not np.isfinite(rank.freedom):
        below_m = rng.binomial(n, p, REPLICATES).astype(np.float64)
    else:
        off = rank.of * rng.standard_t(rank.freedom, REPLICATES)
        below_m = np.clip(np.round((p + off) * n), 0.0, n)
    p_low, p_high = _quantile_draws(predicted, p, below_p)
    m_low, m_high = _quantile_draws(measured, p, below_m)
    with np.errstate(invalid="ignore"):
        low = np.nan_to_num(p_low - m_high, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        high = np.nan_to_num(p_high - m_low, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return Interval(_lower_tail(low), _upper_tail(high))


def mean_interval(
    distribution: Distribution, rng: np.random.Generator, limit: float = np.inf
) -> Interval:
    """The studentised bootstrap interval of the mean of min(value, limit); of an exact distribution
    where its residual and its noise leave the mean, open above without a limit."""
    if distribution.exact:
        return Interval(*distribution.mean_ends(limit))
    centre, error = _moments(distribution, limit)
    means, errors = _moment_draws(distribution, limit, rng)
    return _studentised(centre, error, means - centre, errors)


def mean_difference(
    predicted: Distribution,
    measured: Distribution,
    rng: np.random.Generator,
    limit: float = np.inf,
) -> Interval:
    """The interval of predicted minus measured mean of min(value, limit).

    Studentised (Efron and Tibshirani 1993, chapter 12): latencies under loss are skewed, and
    there the plain percentile bootstrap covers too little. A resample holds no rare stall that the
    measured trials lack by chance; so the interval is also as wide as means of as many trials of
    the prediction scatter, and a perfect prediction fails no more often than it should. What an
    exact prediction leaves out makes it wider.
    """
    p_mean, p_error = _moments(predicted, limit)
    m_mean, m_error = _moments(measured, limit)
    p_means, p_errors = _moment_draws(predicted, limit, rng)
    m_means, m_errors = _moment_draws(measured, limit, rng)
    difference = p_mean - m_mean
    deviations = (p_means - m_means) - difference
    resampled = _studentised(
        difference, np.hypot(p_error, m_error), deviations, np.hypot(p_errors, m_errors)
    )
    perfect, _ = _moment_draws(predicted, limit, rng, measured.independent)
    if np.isfinite(difference) and np.isfinite(perfect).all():
        scatter = perfect - p_mean
        resampled = Interval(
            min(resampled.low, difference + _lower_tail(scatter)),
            max(resampled.high, difference + _upper_tail(scatter)),
        )
    return with_left_out(resampled, p_mean, predicted.mean_ends(limit))


def with_left_out(difference: Interval, figure: float, ends: tuple[float, float]) -> Interval:
    """The interval of a difference from a predicted ``figure``, wider by what an exact prediction
    leaves out: by that the figure may be anything between its ``ends``."""
    low, high = ends
    if not low < high:
        return difference
    return Interval(difference.low - (figure - low), difference.high + (high - figure))


class Distance(NamedTuple):
    """A distance between two distributions.

    ``interval`` is the percentile bootstrap's. A distance is never negative, so noise alone makes
    it positive, and a resample adds noise to that of the trials: the bootstrap is biased upwards,
    and where its whole interval is above the estimate the low end is the estimate itself (so is
    the high end in the opposite case). ``chance`` is what a perfect prediction stays below in 95 %
    of runs.
    """

    value: float
    interval: Interval
    chance: float


def wasserstein(
    predicted: Distribution,
    measured: Distribution,
    rng: np.random.Generator,
    limit: float = np.inf,
) -> Distance:
    """Wasserstein-1: the area between the two distribution functions, in the values' unit."""
    p_values, p_weights = predicted.limited(limit)
    m_values, m_weights = measured.limited(limit)
    if not p_values.size or not m_values.size:
        nan = float("nan")
        return Distance(nan, Interval(nan, nan), nan)
    whole = _Steps(p_values, m_values)
    value = whole.area(p_weights, m_weights)
    # The rest is about noise, for which coarser halves do.
    ours, theirs = _for_resampling(predicted), _for_resampling(measured)
    (p_values, p_weights), (m_values, m_weights) = ours.limited(limit), theirs.limited(limit)
    p_share, m_share = p_weights / p_weights.sum(), m_weights / m_weights.sum()
    between, within = _Steps(p_values, m_values), _Steps(p_values, p_values)
    resampled, by_chance = np.empty(DISTANCE_REPLICATES), np.empty(DISTANCE_REPLICATES)
    for replicate in range(DISTANCE_REPLICATES):
        drawn_p = _drawn(predicted, p_share, rng)
        drawn_m = _drawn(measured, m_share, rng)
        perfect = _drawn(measured, p_share, rng)
        resampled[replicate] = between.area(drawn_p, drawn_m)
        by_chance[replicate] = within.area(drawn_p, perfect)
    interval = Interval(min(value, _lower_tail(resampled)), max(value, _upper_tail(resampled)))
    return Distance(value, interval, float(np.quantile(by_chance, CONFIDENCE)))


def _drawn(distribution: Distribution, share: Floats, rng: np.random.Generator) -> Floats:
    """As many trials as a distribution has, drawn by ``share``; of an exact one, just these
    shares."""
    if distribution.exact:
        return share
    return rng.multinomial(distribution.independent, share).astype(np.float64)


class _Steps:
    """Two sets of atoms on one grid, for the area between their distribution functions."""

    def __init__(self, first: Floats, second: Floats) -> None:
        grid = np.union1d(first, second)
        self._widths = np.diff(grid)
        self._at = np.searchsorted(grid, first), np.searchsorted(grid, second)

    def area(self, first: Floats, second: Floats) -> float:
        """The area for these weights of the atoms."""
        one, other = (
            np.cumsum(np.bincount(at, weights=weights, minlength=self._widths.size + 1))[:-1]
            / weights.sum()
            for at, weights in zip(self._at, (first, second), strict=True)
        )
        return float(np.abs(one - other) @ self._widths)


def kolmogorov(predicted: Distribution, measured: Distribution) -> tuple[float, float]:
    """The largest gap between the two distribution functions, and its 95 % level by chance.

    The level is the asymptotic one, 1.358 sqrt(1/n + 1/m) (Smirnov 1948), and beside it what
    exact distributions leave out, and may be off by.
    """
    grid = np.union1d(predicted.values, measured.values)
    if not grid.size or not predicted.n or not measured.n:
        return float("nan"), float("nan")
    gap = float(np.abs(predicted.cdf(grid) - measured.cdf(grid)).max())
    noise = sum(0.0 if half.exact else 1 / half.independent for half in (predicted, measured))
    left_out = sum(half.residual + half.widest_reach for half in (predicted, measured))
    return gap, 1.358 * float(np.sqrt(noise)) + left_out


def least_trials(p: float) -> int:
    """The trials from which the ``p`` quantile has an interval with two ends."""
    p = max(p, 1.0 - p)
    return int(np.ceil(np.log(_TAIL) / np.log(p)))


def failures_reach(p: float) -> str:
    """Why the ``p`` quantile is infinite."""
    return f"more than {100.0 * (1.0 - p):g} % of trials failed"


def _binomial_grid(n: int, p: float) -> Floats:
    """The binomial law's tails at n, p as two counts, by exact sums (no scipy.stats: slow)."""
    from scipy.special import bdtr

    # The tails lie within nine standard deviations.
    reach = 9.0 * np.sqrt(n * p * (1.0 - p)) + 9.0
    counts = np.arange(max(0, int(n * p - reach)), min(n, int(n * p + reach)) + 1.0)
    law = bdtr(counts, n, p)
    ends = np.searchsorted(law, [_TAIL, 1.0 - _TAIL])
    return counts[np.minimum(ends, counts.size - 1)]


def _quantile_draws(distribution: Distribution, p: float, below: Floats) -> tuple[Floats, Floats]:
    """Order statistics around each count of draws ``below`` the true quantile, (n,) each."""
    if distribution.exact:
        low, high = (np.full(below.shape, end) for end in distribution.quantile_ends(p))
        return low, high
    scale = distribution.n / distribution.independent if distribution.independent else 1.0
    low = distribution.at_rank(below * scale)
    beyond = below >= distribution.independent
    high = distribution.at_rank(np.minimum(below + 1.0, distribution.independent) * scale)
    return low, np.where(beyond, np.inf, high)


def _moments(distribution: Distribution, limit: float) -> tuple[float, float]:
    """Mean of min(value, limit) and its standard error."""
    values, weights = distribution.limited(limit)
    if not values.size:
        return float("nan"), float("nan")
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights))
    trials = np.inf if distribution.exact else max(1, distribution.independent)
    return mean, float(np.sqrt(variance / trials))


def _moment_draws(
    distribution: Distribution, limit: float, rng: np.random.Generator, n: int | None = None
) -> tuple[Floats, Floats]:
    """Means and standard errors of resamples, (REPLICATES,) each; of ``n`` draws, or of as many as
    there are."""
    values, weights = _for_resampling(distribution).limited(limit)
    if n is None and distribution.exact:
        always = _moments(distribution, limit)
        return np.full(REPLICATES, always[0]), np.full(REPLICATES, always[1])
    n = distribution.independent if n is None else n
    means, errors = np.empty(REPLICATES), np.empty(REPLICATES)
    if not values.size or not n:
        return np.full(REPLICATES, np.nan), np.full(REPLICATES, np.nan)
    # Centred, so that the variance by squares keeps its digits.
    centre = float(np.average(values, weights=weights))
    values = values - centre
    counted = values.size * _COUNTED_TRIALS <= n
    share = weights / weights.sum()
    each = np.cumsum(weights / weights.sum())
    step = max(1, _BLOCK // (values.size if counted else n))
    for start in range(0, REPLICATES, step):
        stop = min(REPLICATES, start + step)
        if counted:
            counts = rng.multinomial(n, share, size=stop - start)
            mean = counts @ values / n
            square = counts @ values**2 / n
        else:
            drawn = values[_indices(each, weights, n, stop - start, rng)]
            mean = drawn.mean(axis=1)
            square = np.einsum("ij,ij->i", drawn, drawn) / n
        means[start:stop] = mean
        errors[start:stop] = np.sqrt(np.maximum(square - mean**2, 0.0) / n)
    return means + centre, errors


def _indices(
    each: Floats, weights: Floats, n: int, replicates: int, rng: np.random.Generator
) -> NDArray[np.integer]:
    """Indices of resampled atoms, (replicates, n)."""
    if np.all(weights == weights[0]):
        return rng.integers(0, weights.size, size=(replicates, n), dtype=np.int32)
    drawn = np.searchsorted(each, rng.random((replicates, n)), side="right")
    return np.minimum(drawn, weights.size - 1)


def _for_resampling(distribution: Distribution) -> Distribution:
    """The same with fewer atoms where there are very many."""
    if distribution.values.size <= _COUNTED_TRIALS * _RESAMPLED_ATOMS:
        return distribution
    return distribution.coarse(_RESAMPLED_ATOMS)


def _studentised(centre: float, error: float, deviations: Floats, errors: Floats) -> Interval:
    """centre - t error for the tails of t = deviation / error over the resamples."""
    if not np.isfinite(centre):
        return Interval(float("nan"), float("nan"))
    if error == 0.0:
        return Interval(centre, centre)
    if np.any(errors == 0.0):
        # A resample without spread has no t; the plain bootstrap has no such gap.
        return Interval(centre + _lower_tail(deviations), centre + _upper_tail(deviations))
    t = deviations / errors
    return Interval(centre - _upper_tail(t) * error, centre - _lower_tail(t) * error)


def _lower_tail(draws: Floats) -> float:
    return float(np.quantile(draws, _TAIL, method="lower"))


def _upper_tail(draws: Floats) -> float:
    return float(np.quantile(draws, 1.0 - _TAIL, method="higher"))

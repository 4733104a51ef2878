# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The statistics of papers/1's Table 3, each with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
REPLICATES = 2_000
SECOND_NS = 1e9

CORRECTED_TRIALS = 1_000
"""Up to so many trials the bootstrap is corrected for skew."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A statistic and its 95 % interval, in the unit of the samples."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Statistics:
    """Of one mode; times in ns, `over_1_s` a count of `n` with the interval of that count."""

    n: int
    mean: Estimate
    sd: Estimate
    p50: Estimate
    p90: Estimate
    p99: Estimate
    over_1_s: Estimate


def of(samples_ns: Floats, seed: int = 1) -> Statistics:
    """The statistics. A quantile's interval is made of order statistics, and open where the
    trials are too few to bound it (P99: fewer than 369 above); mean and standard deviation have
    the bootstrap's, corrected for skew (Efron and Tibshirani 1993, chapter 14); the count the exact
    one."""
    from scipy import stats

    values = np.asarray(samples_ns, dtype=np.float64)
    rng = np.random.default_rng(seed)
    # The correction's jackknife costs n squared, and many trials need none; of few it is noise.
    method = "BCa" if 5 <= values.size <= CORRECTED_TRIALS else "percentile"

    def estimate(statistic: Callable[..., Any]) -> Estimate:
        value = float(statistic(values, axis=-1))
        if values.size < 2:
            return Estimate(value, float("-inf"), float("inf"))
        if np.ptp(values) == 0.0:
            return Estimate(value, value, value)
        interval = stats.bootstrap(
            (values,), statistic, n_resamples=REPLICATES, batch=100, vectorized=True, axis=-1,
            confidence_level=CONFIDENCE, method=method, rng=rng,
        ).confidence_interval  # fmt: skip
        return Estimate(value, float(interval.low), float(interval.high))

    def quantile(p: float) -> Estimate:
        value = float(np.quantile(values, p))
        if values.size < 2:
            return Estimate(value, float("-inf"), float("inf"))
        ends = stats.quantile_test(values, q=value, p=p).confidence_interval(CONFIDENCE)
        return Estimate(
            value,
            float(np.nan_to_num(ends.low, nan=-np.inf)),
            float(np.nan_to_num(ends.high, nan=np.inf)),
        )

    slow = int((values > SECOND_NS).sum())
    share = stats.binomtest(slow, values.size).proportion_ci(CONFIDENCE, method="exact")
    return Statistics(
        n=values.size,
        mean=estimate(np.mean),
        sd=estimate(lambda x, axis: np.std(x, axis=axis, ddof=min(1, values.size - 1))),
        p50=quantile(0.5),
        p90=quantile(0.9),
        p99=quantile(0.99),
        over_1_s=Estimate(slow, share.low * values.size, share.high * values.size),
    )

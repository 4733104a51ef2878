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
    """The statistics; intervals by the percentile bootstrap, of the count exactly."""
    from scipy import stats

    values = np.asarray(samples_ns, dtype=np.float64)
    rng = np.random.default_rng(seed)

    def estimate(statistic: Callable[..., Any]) -> Estimate:
        value = float(statistic(values, axis=-1))
        if values.size < 2:
            return Estimate(value, float("-inf"), float("inf"))
        interval = stats.bootstrap(
            (values,), statistic, n_resamples=REPLICATES, batch=100, vectorized=True, axis=-1,
            confidence_level=CONFIDENCE, method="percentile", rng=rng,
        ).confidence_interval  # fmt: skip
        return Estimate(value, float(interval.low), float(interval.high))

    def quantile(p: float) -> Callable[..., Any]:
        return lambda x, axis: np.quantile(x, p, axis=axis)

    slow = int((values > SECOND_NS).sum())
    share = stats.binomtest(slow, values.size).proportion_ci(CONFIDENCE, method="exact")
    return Statistics(
        n=values.size,
        mean=estimate(np.mean),
        sd=estimate(lambda x, axis: np.std(x, axis=axis, ddof=min(1, values.size - 1))),
        p50=estimate(quantile(0.5)),
        p90=estimate(quantile(0.9)),
        p99=estimate(quantile(0.99)),
        over_1_s=Estimate(slow, share.low * values.size, share.high * values.size),
    )

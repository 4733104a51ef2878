# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Samples whose truth is known."""

from __future__ import annotations

import numpy as np

from warifu.results import Distribution


def skewed(n: int, rng: np.random.Generator) -> np.ndarray:
    """Latencies under loss: most near 184 ms, some repaired later, few after a second."""
    late = rng.random(n)
    values = rng.normal(184e6, 1e6, n) + np.where(late < 0.12, rng.uniform(80e6, 350e6, n), 0.0)
    return values + np.where(late < 0.02, 1e9, 0.0)


def sizes(counts: dict[int, int]) -> Distribution:
    """So often each of these values."""
    return Distribution.of(list(counts), list(counts.values()))

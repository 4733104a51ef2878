# SPDX-License-Identifier: Apache-2.0 OR MIT
"""From what an estimator counts to bits of min-entropy a sample (NIST SP 800-90B section 6.3)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: Of a two-sided 99 % confidence interval; the standard rounds it to 2.576.
Z = 2.5758293035489008
_STEPS = 80


def upper(share: float, trials: int) -> float:
    """The upper end of the interval of a share, at most 1."""
    return min(1.0, share + Z * math.sqrt(share * (1.0 - share) / (trials - 1)))


def bits(probability: float) -> float:
    """Min-entropy of the most probable outcome."""
    return max(0.0, -math.log2(probability))


def lower(mean: float, deviation: float, count: int) -> float:
    """The lower end of the interval of a mean."""
    return mean - Z * deviation / math.sqrt(count)


def collision(mean: float) -> float:
    """Section 6.3.2: two of the same bits come after 2 + 2 p (1 - p) bits on the average."""
    if mean >= 2.5:
        return 1.0
    return bits(0.5 + math.sqrt(max(0.0, 1.25 - 0.5 * mean)) if mean > 2.0 else 1.0)


def markov(first: tuple[float, float], after: tuple[tuple[float, float], ...]) -> float:
    """Section 6.3.3: of the most probable sequence of 128 bits."""
    (p0, p1), ((p00, p01), (p10, p11)) = first, after
    steps = [
        [(p0, 1), (p00, 127)],
        [(p0, 1), (p01, 64), (p10, 63)],
        [(p0, 1), (p01, 1), (p11, 126)],
        [(p1, 1), (p10, 1), (p00, 126)],
        [(p1, 1), (p10, 64), (p01, 63)],
        [(p1, 1), (p11, 127)],
    ]
    least = min(
        sum(-math.log2(p) * times if p > 0 else math.inf for p, times in path) for path in steps
    )
    return min(1.0, max(0.0, least) / 128)


def compression(mean: float, blocks: int, learned: int, block_bits: int = 6) -> float:
    """Section 6.3.4: the distances between equal blocks; `blocks` of them in all."""
    others = (1 << block_bits) - 1
    at = np.arange(1, blocks + 1, dtype=np.float64)
    logs = np.log2(at)
    # How many of the distances that count may be longer than this one.
    longer = np.where(at <= learned, blocks - learned, blocks - at)

    def expected(z: float) -> float:
        if z >= 1.0:
            # Only blocks that are one apart.
            z = 1.0 - 2.0**-53
        # Of (1 - z) ** (at - 1), which takes ten times as long.
        decay = np.exp((at - 1.0) * math.log1p(-z))
        whole = z * z * float(np.sum(logs * decay * longer))
        return (whole + z * float(np.sum((logs * decay)[learned:]))) / (blocks - learned)

    def of(p: float) -> float:
        return expected(p) + others * expected((1.0 - p) / others)

    least = math.ldexp(1.0, -block_bits)
    if mean >= of(least):
        return 1.0
    # Its expectation falls as p grows.
    return bits(_solve(lambda p: mean - of(p), least, 1.0)) / block_bits


def prediction(correct: int, longest: int, trials: int, symbols: int) -> float:
    """Section 6.3.7: by the share of correct predictions, and by their longest run less 1."""
    share = correct / trials
    everywhere = 1.0 - 0.01 ** (1.0 / trials) if correct == 0 else upper(share, trials)
    run = longest + 1

    def log_of_no_run(p: float) -> float:
        """The logarithm of the probability that no such run occurs."""
        q = 1.0 - p
        x = 1.0
        for _ in range(65):
            x = 1.0 + q * math.exp(run * math.log(p) + (run + 1) * math.log(x))
            if not math.isfinite(x) or x > 1.0 + 1.0 / run:
                return -math.inf
        below = (run + 1 - run * x) * q
        if below <= 0 or p * x >= 1:
            return -math.inf
        return math.log((1 - p * x) / below) - (trials + 1) * math.log(x)

    if run >= trials:
        here = 0.0 if correct == 0 else 1.0
    else:
        here = _solve(lambda p: math.log(0.99) - log_of_no_run(p), 1e-12, 1.0 - 1e-12)
    return bits(max(everywhere, here, 1.0 / symbols))


def _solve(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function is 0, by bisection."""
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether trials can decide a gate, known before the difference is looked at.

A gate of width w is judged by the 95 % interval of predicted minus measured. It can be decided if a
perfect predictor passes in 95 % of runs, and one that is off by 2 w fails in 95 %. For an estimator
with standard error s, both hold from w = 3.92 s on: 1.96 s for where the difference falls, and
1.96 s more for its interval. Where s itself is estimated, from a few parts of a measurement, the
interval varies as well and the gate must be wider.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from warifu.compare.stats import CONFIDENCE, Interval

_TAIL = (1.0 - CONFIDENCE) / 2.0
#: Freedom above which a standard error counts as known.
_KNOWN = 1e6


def student(freedom: float) -> float:
    """The upper end of the central 95 % of Student's t."""
    from scipy.special import ndtri, stdtrit

    known = freedom > _KNOWN
    return float(ndtri(1.0 - _TAIL) if known else stdtrit(freedom, 1.0 - _TAIL))


def required_ratio(freedom: float) -> float:
    """How many standard errors wide a gate must be to be decided, where the error has so many
    degrees of freedom: 3.92 where it is known, 5.4 from five parts."""
    # Few are ever computed: whole numbers, and beyond a hundred two digits.
    digits = 0 if freedom < 100 else 1 - math.floor(math.log10(min(freedom, _KNOWN)))
    return _ratio(max(1.0, round(min(freedom, _KNOWN), digits)))


@functools.cache
def _ratio(freedom: float) -> float:
    """The least r with P(|Z| + t S <= r) >= 95 %: Z is normal, S^2 a chi-squared over its freedom,
    t Student's end. The other demand, P(Z + r > t S) >= 95 %, is then met too."""
    from scipy.special import gammaincinv, ndtr

    quantiles = (np.arange(2_000) + 0.5) / 2_000
    reach = student(freedom) * np.sqrt(gammaincinv(freedom / 2.0, quantiles) * 2.0 / freedom)
    low, high = 0.0, 100.0
    while high - low > 1e-4:
        middle = (low + high) / 2.0
        passing = np.maximum(0.0, 2.0 * ndtr(middle - reach) - 1.0).mean()
        low, high = (low, middle) if passing >= CONFIDENCE else (middle, high)
    return high


class Error(NamedTuple):
    """The standard error of an estimate, and the degrees of freedom with which it is known."""

    of: float
    freedom: float = math.inf

    def interval(self, centre: float) -> Interval:
        """The 95 % interval around an estimate."""
        half = student(self.freedom) * self.of
        if not (math.isfinite(half) and math.isfinite(centre)):
            return Interval(-math.inf, math.inf)
        return Interval(centre - half, centre + half)

    @property
    def needs(self) -> float:
        """The least width of a gate that this error can decide."""
        return required_ratio(self.freedom) * self.of


def together(*errors: Error) -> Error:
    """That of a sum or difference of independent estimates (Welch 1947, Satterthwaite 1946)."""
    squares = [error.of**2 for error in errors]
    whole = sum(squares)
    if whole <= 0.0:
        return Error(0.0)
    shares = sum(
        square**2 / error.freedom
        for square, error in zip(squares, errors, strict=True)
        if math.isfinite(error.freedom)
    )
    return Error(math.sqrt(whole), whole**2 / shares if shares > 0.0 else math.inf)


def trials_that_decide(
    needs: float, width: float, trials: float, predicted_share: float = 0.0
) -> int | None:
    """About how many measured trials would decide a gate, at zero difference; where parts give the
    error, in parts of as many trials as those measured, since more trials in as many parts would
    leave what parts differ by.

    ``needs`` is what ``trials`` need the width to be; ``predicted_share`` how much of the error's
    square is the prediction's own noise, which more measured trials do not make smaller. None where
    no number would, or none that anybody measures.
    """
    if not (math.isfinite(needs) and width > 0.0):
        return None
    left = (width / needs) ** 2 - predicted_share if needs > 0.0 else 1.0
    if left <= 0.0:
        return None
    needed = trials * (1.0 - predicted_share) / left
    return math.ceil(needed) if needed < 1e8 else None

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether measured byte counts are those that were predicted.

A handshake's size is not one number: an ECDSA signature has 70 to 72 bytes in most cases, fewer
in some. *Exact* therefore means that the measured counts look like draws from the predicted
ones: no value that the prediction does not know, and the same frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warifu.compare.gates import Verdict
from warifu.results import Distribution

#: Below this probability chance is not believed in a single test.
ALPHA = 0.001
#: Nor below this in any of the tests of a comparison together: every case asks twice, and a study
#: of dozens of cases would fail by chance once in some dozens of runs.
ALPHA_OF_ALL = 0.005
#: A category with less expected in either half is pooled (Cochran 1954's usual rule).
_LEAST_EXPECTED = 5.0


@dataclass(frozen=True)
class Bytes:
    """The verdict on one direction's byte counts."""

    metric: str
    verdict: Verdict
    predicted: str
    measured: str
    reason: str


def compare_bytes(
    metric: str, predicted: Distribution, measured: Distribution, among: int = 1
) -> Bytes | None:
    """Judges one direction, of ``among`` that are judged together (Bonferroni); None where a half
    has no counts."""
    if not predicted.values.size or not measured.values.size:
        return None
    verdict, reason = _judge(predicted, measured, min(ALPHA, ALPHA_OF_ALL / max(1, among)))
    return Bytes(metric, verdict, _range(predicted), _range(measured), reason)


def _judge(predicted: Distribution, measured: Distribution, alpha: float) -> tuple[Verdict, str]:
    """The frequencies of the predicted values are asked for first: a value beside them that may be
    chance says nothing for them."""
    known = np.isin(measured.values, predicted.values)
    same = "the same values" if known.all() else "the values that were predicted"
    seen = Distribution.of(measured.values[known], measured.weights[known])
    chance = _same_frequencies(predicted, seen)
    if chance < alpha:
        return Verdict.FAIL, f"{same}, but not as often (p = {chance:.1g})"
    if known.all():
        return Verdict.PASS, "the same values, as often"
    count = float(measured.weights[~known].sum())
    shown = ", ".join(f"{value:g}" for value in measured.values[~known][:3])
    what = f"{count:g} of {measured.n:g} measured have a value not predicted ({shown} B)"
    if _unseen(count, predicted.n, measured.n) < alpha:
        return Verdict.FAIL, what
    return Verdict.UNDECIDED, f"{what}, which {predicted.n:g} predictions may have missed"


def _unseen(count: float, predicted: float, measured: float) -> float:
    """The chance that all ``count`` draws of a value fall on the measured half (Fisher)."""
    ratio = 1.0
    for taken in range(round(count)):
        ratio *= max(0.0, measured - taken) / max(1.0, measured + predicted - taken)
    return ratio


def _same_frequencies(predicted: Distribution, measured: Distribution) -> float:
    """The p-value of Pearson's chi-squared test that both halves have the same frequencies; 1 where
    one of them has no counts."""
    from scipy.special import gammaincc

    values = np.union1d(predicted.values, measured.values)
    table = np.zeros((2, values.size))
    table[0, np.searchsorted(values, predicted.values)] = predicted.weights
    table[1, np.searchsorted(values, measured.values)] = measured.weights
    totals = table.sum(axis=1, keepdims=True)
    expected = totals * table.sum(axis=0) / table.sum()
    rare = expected.min(axis=0) < _LEAST_EXPECTED
    if rare.any():
        # Rare values together are one category; if still rare, they join the commonest.
        pooled = table[:, rare].sum(axis=1, keepdims=True)
        kept = table[:, ~rare]
        if kept.shape[1] and (totals * pooled.sum() / table.sum()).min() < _LEAST_EXPECTED:
            kept[:, [int(kept.sum(axis=0).argmax())]] += pooled
            table = kept
        else:
            table = np.concatenate([kept, pooled], axis=1)
    freedom = table.shape[1] - 1
    if freedom < 1:
        return 1.0
    expected = totals * table.sum(axis=0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(gammaincc(freedom / 2.0, statistic / 2.0))


def _range(counts: Distribution) -> str:
    low, high = counts.values[0], counts.values[-1]
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"

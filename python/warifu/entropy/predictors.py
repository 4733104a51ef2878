# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The predictors of NIST SP 800-90B sections 6.3.7 to 6.3.10.

Each predicts every sample from those before; how often it is right, and how long in a row, bounds
the entropy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warifu.entropy import bounds

Samples = NDArray[np.int64]


class _Score:
    """Right predictions, and the longest run of them."""

    def __init__(self) -> None:
        self.right = self.longest = self._run = 0

    def add(self, is_right: bool) -> None:
        """One prediction."""
        if is_right:
            self.right += 1
            self._run += 1
            self.longest = max(self.longest, self._run)
        else:
            self._run = 0

    def bits(self, trials: int, symbols: int) -> float:
        """Min-entropy a sample."""
        return bounds.prediction(self.right, self.longest, trials, symbols)


def multi_mcw(samples: Samples, windows: Sequence[int] = (63, 255, 1023, 4095)) -> float:
    """Section 6.3.7: the most common value in windows of the past; of equally common ones the last
    one seen."""
    values = samples.tolist()
    symbols = max(values) + 1
    counts = [[0] * symbols for _ in windows]
    seen = [-1] * symbols
    scores, winner, score = [0] * len(windows), 0, _Score()
    for at, value in enumerate(values):
        if at >= windows[0]:
            guesses = []
            for window, count in zip(windows, counts, strict=True):
                if at < window:
                    guesses.append(-1)
                    continue
                most = max(count)
                equal = [one for one in range(symbols) if count[one] == most]
                guesses.append(max(equal, key=seen.__getitem__))
            score.add(guesses[winner] == value)
            for which, guess in enumerate(guesses):
                if guess == value:
                    scores[which] += 1
                    if scores[which] >= scores[winner]:
                        winner = which
        for window, count in zip(windows, counts, strict=True):
            count[value] += 1
            if at >= window:
                count[values[at - window]] -= 1
        seen[value] = at
    return score.bits(len(values) - windows[0], len(set(values)))


def lag(samples: Samples, lags: int = 128) -> float:
    """Section 6.3.8: what was a constant number of samples before."""
    backwards = samples[::-1].copy()
    n = len(samples)
    scores = np.zeros(lags, dtype=np.int64)
    winner, score = 0, _Score()
    for at in range(1, n):
        known = min(lags, at)
        # The samples before, the last one first.
        equal = backwards[n - at : n - at + known] == samples[at]
        score.add(winner < known and bool(equal[winner]))
        best = int(scores[winner])
        scores[:known] += equal
        for which in np.nonzero(equal & (scores[:known] >= best))[0].tolist():
            # Those before the winner in turn meet its score of before.
            against = best if which < winner else int(scores[winner])
            if int(scores[which]) >= against:
                best, winner = int(scores[which]), which
    return score.bits(n - 1, len(np.unique(samples)))


def multi_mmc(samples: Samples, depth: int = 16, most: int = 100_000) -> float:
    """Section 6.3.9: Markov models of the last 1 to 16 samples."""
    values = samples.tolist()
    models: list[dict[tuple[int, ...], dict[int, int]]] = [{} for _ in range(depth)]
    scores, winner, score = [0] * depth, 0, _Score()
    for at in range(2, len(values)):
        before, value = values[at - 1], values[at]
        guesses = []
        for of, model in enumerate(models, start=1):
            if of < at:
                past = tuple(values[at - 1 - of : at - 1])
                counts = model.get(past)
                if counts is not None:
                    counts[before] = counts.get(before, 0) + 1
                elif len(model) < most:
                    model[past] = {before: 1}
            known = model.get(tuple(values[at - of : at])) if of <= at else None
            guesses.append(_likeliest(known)[0] if known else -1)
        score.add(guesses[winner] == value)
        for which, guess in enumerate(guesses):
            if guess == value:
                scores[which] += 1
                if scores[which] >= scores[winner]:
                    winner = which
    return score.bits(len(values) - 2, len(set(values)))


def lz78y(samples: Samples, longest: int = 16, most: int = 65_536) -> float:
    """Section 6.3.10: a dictionary of what followed strings of the past."""
    values = samples.tolist()
    model: dict[tuple[int, ...], dict[int, int]] = {}
    score = _Score()
    for at in range(longest + 1, len(values)):
        before = values[at - 1]
        for of in range(longest, 0, -1):
            past = tuple(values[at - 1 - of : at - 1])
            counts = model.get(past)
            if counts is not None:
                counts[before] = counts.get(before, 0) + 1
            elif len(model) < most:
                model[past] = {before: 1}
        guess, most_seen = -1, 0
        for of in range(longest, 0, -1):
            known = model.get(tuple(values[at - of : at]))
            if known:
                value, count = _likeliest(known)
                if count > most_seen:
                    guess, most_seen = value, count
        score.add(guess == values[at])
    return score.bits(len(values) - longest - 1, len(set(values)))


def _likeliest(counts: dict[int, int]) -> tuple[int, int]:
    """The most frequent value, of equal ones the greatest, with its count."""
    return max(counts.items(), key=lambda item: (item[1], item[0]))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The predictors of NIST SP 800-90B sections 6.3.7 to 6.3.10.

Each predicts every sample from those before; how often it is right, and how long in a row, bounds
the entropy. What each would have said at every place is computed at once, for whole arrays: sample
by sample, two million of them take minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from warifu.entropy import bounds

Samples = NDArray[np.int64]
#: Samples as numbers from 0 on, in the order of their values.
_Codes = NDArray[np.int32]
_Flags = NDArray[np.bool_]

#: Places that are looked at together, so that the scores of 128 predictors fit into a cache.
_BLOCK = 8192
#: Contexts that fit into 16 bits, which numpy sorts in linear time.
_SHORT = 1 << 16


class _Contest:
    """The predictor with the most right predictions so far is the one that predicts."""

    def __init__(self, predictors: int) -> None:
        self._scores = np.zeros(predictors, dtype=np.int32)
        self._winner = 0
        self._hits: list[_Flags] = []

    def add(self, right: _Flags) -> None:
        """Which predictors (rows) are right at the next places (columns)."""
        for at in range(0, right.shape[1], _BLOCK):
            self._add(right[:, at : at + _BLOCK])

    def _add(self, right: _Flags) -> None:
        predictors, places = right.shape
        scores = np.cumsum(right, axis=1, dtype=np.int32)
        scores += self._scores[:, np.newaxis]
        # One that is right takes over if it then has as many as the winner, in turn. So it is the
        # last of those that are right and have the most; if none of these has, the winner stays.
        leads = right & (scores == scores.max(axis=0))
        last = predictors - 1 - leads[::-1].argmax(axis=0)
        changed = np.where(leads.any(axis=0), np.arange(places), -1)
        np.maximum.accumulate(changed, out=changed)
        after = np.where(changed < 0, self._winner, last[changed])
        before = np.concatenate(([self._winner], after[:-1]))
        self._hits.append(right[before, np.arange(places)])
        self._scores, self._winner = scores[:, -1].copy(), int(after[-1])

    def bits(self, symbols: int) -> float:
        """Min-entropy a sample."""
        return _bits(np.concatenate(self._hits), symbols)


def _bits(hits: _Flags, symbols: int) -> float:
    """Min-entropy a sample from which predictions were right, and the longest run of them."""
    misses = np.flatnonzero(np.concatenate(([True], ~hits, [True])))
    longest = int(np.diff(misses).max()) - 1
    return bounds.prediction(int(hits.sum()), longest, len(hits), symbols)


def _coded(samples: Samples) -> tuple[_Codes, int]:
    """Samples as codes, and how many different ones there are."""
    values, codes = np.unique(samples, return_inverse=True)
    return codes.astype(np.int32), len(values)


def multi_mcw(samples: Samples, windows: Sequence[int] = (63, 255, 1023, 4095)) -> float:
    """Section 6.3.7: the most common value in windows of the past; of equally common ones the last
    one seen."""
    codes, symbols = _coded(samples)
    places = np.arange(len(codes))
    guesses = np.full((len(windows), len(codes)), -1, dtype=np.int32)
    most = np.zeros_like(guesses)
    newest = np.full_like(guesses, -1)
    for symbol in range(symbols):
        is_it = codes == symbol
        before = np.concatenate(([0], np.cumsum(is_it, dtype=np.int32)[:-1]))
        seen = np.maximum.accumulate(np.where(is_it, places, -1))
        seen = np.concatenate(([-1], seen[:-1]))
        for which, window in enumerate(windows):
            # At its first place a window is all that was before.
            count = before[window:] - before[: max(0, len(before) - window)]
            best, last = most[which, window:], newest[which, window:]
            better = (count > best) | ((count == best) & (seen[window:] > last))
            guesses[which, window:][better] = symbol
            best[better], last[better] = count[better], seen[window:][better]
    contest = _Contest(len(windows))
    contest.add((guesses == codes)[:, windows[0] :])
    return contest.bits(symbols)


def lag(samples: Samples, lags: int = 128) -> float:
    """Section 6.3.8: what was a constant number of samples before."""
    codes, symbols = _coded(samples)
    padded = np.concatenate((np.full(lags, -1, dtype=np.int32), codes))
    contest = _Contest(lags)
    for at in range(1, len(codes), _BLOCK):
        block = codes[at : at + _BLOCK]
        # Row 0 is one sample before.
        first = at + lags - 1
        contest.add(
            np.stack([padded[first - row : first - row + len(block)] for row in range(lags)])
            == block
        )
    return contest.bits(symbols)


def multi_mmc(samples: Samples, depth: int = 16, most: int = 100_000) -> float:
    """Section 6.3.9: Markov models of the last 1 to 16 samples."""
    codes, symbols = _coded(samples)
    right = np.zeros((depth, len(codes) - 2), dtype=np.bool_)
    for of, contexts in enumerate(_contexts(codes, symbols, depth), start=1):
        groups = _Groups(contexts)
        known = groups.firsts <= _least(groups.firsts, most)
        guesses, _ = groups.likeliest(codes[of:], symbols, known)
        # Predictions begin at the third sample.
        first = max(of, 2)
        right[of - 1, first - 2 :] = guesses[first - of :] == codes[first:]
    contest = _Contest(depth)
    contest.add(right)
    return contest.bits(symbols)


def lz78y(samples: Samples, longest: int = 16, most: int = 65_536) -> float:
    """Section 6.3.10: a dictionary of what followed strings of the past."""
    codes, symbols = _coded(samples)
    nexts = codes[longest:]
    # Of each length; what ends before the place `longest` is in no dictionary.
    strings = [
        contexts[longest - of :]
        for of, contexts in enumerate(_contexts(codes, symbols, longest), start=1)
    ]
    # The dictionary takes strings by place, the longest one first, until it is full.
    turns = [
        _Groups(contexts).firsts * (longest + 1) + longest - of
        for of, contexts in enumerate(strings, start=1)
    ]
    end = _least(np.concatenate(turns), most)
    guess = np.full(len(nexts), -1, dtype=np.int32)
    seen = np.zeros(len(nexts), dtype=np.int32)
    for contexts, turn in zip(reversed(strings), reversed(turns), strict=True):
        guesses, counts = _Groups(contexts).likeliest(nexts, symbols, turn <= end)
        better = counts > seen
        guess[better], seen[better] = guesses[better], counts[better]
    return _bits((guess == nexts)[1:], symbols)


def _contexts(codes: _Codes, symbols: int, longest: int) -> Iterator[NDArray[np.int64]]:
    """For the lengths 1, 2, ... a number for the samples before each place that has so many."""
    contexts = np.zeros(len(codes), dtype=np.int64)
    below = 1
    for of in range(1, longest + 1):
        contexts = contexts[1:] * symbols + codes[: len(codes) - of]
        below *= symbols
        if below > _SHORT:
            values, inverse = np.unique(contexts, return_inverse=True)
            contexts, below = inverse.astype(np.int64), len(values)
        yield contexts


class _Groups:
    """Places with the same context."""

    def __init__(self, contexts: NDArray[np.int64]) -> None:
        short = len(contexts) == 0 or int(contexts.max()) < _SHORT
        keys = contexts.astype(np.uint16) if short else contexts
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]
        self._starts = np.flatnonzero(begins)
        #: The first place of each.
        self.firsts = self._order[self._starts]

    def likeliest(
        self, nexts: _Codes, symbols: int, known: _Flags
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For each place what came most often after its context at the places before, of equally
        frequent ones the greatest, and how often; -1 and 0 for none, and for contexts that are not
        `known`."""
        sizes = np.diff(self._starts, append=len(self._order))
        nexts = nexts[self._order]
        counts = np.zeros(len(nexts), dtype=np.int32)
        guesses = np.full(len(nexts), -1, dtype=np.int32)
        for symbol in range(symbols):
            is_it = nexts == symbol
            before = np.cumsum(is_it, dtype=np.int32) - is_it
            before -= np.repeat(before[self._starts], sizes)
            better = (before >= counts) & (before > 0)
            guesses[better], counts[better] = symbol, before[better]
        dropped = np.repeat(~known, sizes)
        guesses[dropped], counts[dropped] = -1, 0
        found = np.empty_like(guesses), np.empty_like(counts)
        found[0][self._order], found[1][self._order] = guesses, counts
        return found


def _least(values: NDArray[np.int64], count: int) -> int:
    """The greatest of the `count` least values."""
    if len(values) <= count:
        return int(values.max(initial=0))
    return int(np.partition(values, count - 1)[count - 1])

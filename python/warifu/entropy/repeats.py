# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How often the tuples of a sequence repeat, for all lengths at once, by its suffix array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Repeats:
    """Of the lengths 1, 2, ... up to the longest tuple that occurs twice."""

    samples: int
    most: NDArray[np.int64]
    """The occurrences of the most frequent tuple of a length."""
    pairs: NDArray[np.float64]
    """Pairs of places with equal tuples of a length."""

    @staticmethod
    def of(samples: NDArray[np.int64]) -> Repeats:
        """Of a sequence of two samples or more."""
        common = _common(*_sorted(samples))
        longest = int(common.max(initial=0))
        most = np.ones(max(longest, 1), dtype=np.int64)
        pairs = np.zeros(max(longest, 1), dtype=np.float64)
        # Neighbours with a common prefix of a length or more are one group; groups only grow as the
        # length falls.
        size: dict[int, tuple[int, int]] = {}
        largest, all_pairs = 1, 0
        order = np.argsort(-common, kind="stable")
        lengths = common[order]
        at = 0
        for length in range(longest, 0, -1):
            while at < len(order) and lengths[at] >= length:
                left = right = int(order[at])
                before = after = 1
                if left - 1 in size:
                    left, before = size[left - 1]
                if right + 1 in size:
                    right, after = size[right + 1]
                whole = before + after
                # Only the ends of a group are ever looked at.
                size[left] = (right, whole)
                size[right] = (left, whole)
                all_pairs += before * after
                largest = max(largest, whole)
                at += 1
            most[length - 1], pairs[length - 1] = largest, all_pairs
        if longest == 0:
            most[0] = 1
        return Repeats(len(samples), most, pairs)


def _sorted(samples: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """The suffix array, by doubling, and the ranks of suffixes by their first 1, 2, 4, ... samples;
    equal ranks are equal samples."""
    n = len(samples)
    rank = np.unique(samples, return_inverse=True)[1].astype(np.int64)
    ranks = [rank.astype(np.int32)]
    width = 1
    while True:
        second = np.full(n, -1, dtype=np.int64)
        if width < n:
            second[: n - width] = rank[width:]
        keys = rank * (n + 1) + second + 1
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.concatenate(([0], np.cumsum(ordered[1:] != ordered[:-1])))
        width *= 2
        if int(rank[order[-1]]) == n - 1 or width >= n:
            return order, ranks
        ranks.append(rank.astype(np.int32))


def _common(suffixes: NDArray[np.int64], ranks: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """The common prefixes of neighbours in the suffix array: the longest powers of two first."""
    n = len(suffixes)
    left, right = suffixes[:-1].copy(), suffixes[1:].copy()
    for level, rank in reversed(list(enumerate(ranks))):
        # What ends before has other ranks than what goes on, but no place beyond the end has any.
        last = np.maximum(left, right)
        equal = (last < n) & (rank[np.minimum(left, n - 1)] == rank[np.minimum(right, n - 1)])
        step = equal.astype(np.int64) << level
        left += step
        right += step
    return left - suffixes[:-1]

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
        common = _common(samples, _suffixes(samples))
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


def _suffixes(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """The suffix array, by doubling."""
    n = len(samples)
    rank = np.unique(samples, return_inverse=True)[1].astype(np.int64)
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
            return order


def _common(samples: NDArray[np.int64], suffixes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The common prefixes of neighbours in the suffix array (T. Kasai et al., "Linear-time
    longest-common-prefix computation in suffix arrays and its applications")."""
    n = len(samples)
    values, order = samples.tolist(), suffixes.tolist()
    place = np.empty(n, dtype=np.int64)
    place[suffixes] = np.arange(n)
    where = place.tolist()
    common = [0] * (n - 1)
    same = 0
    for at in range(n):
        here = where[at]
        if here == 0:
            same = 0
            continue
        other = order[here - 1]
        limit = n - max(at, other)
        while same < limit and values[at + same] == values[other + same]:
            same += 1
        common[here - 1] = same
        if same:
            same -= 1
    return np.array(common, dtype=np.int64)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Laws with a rare tail, fitted to samples: a card's call is steady, and now and then it stalls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warifu.calibrate.profile import Law

BODY_QUANTILES = 21
TAIL_QUANTILES = 11
LARGEST_TAIL = 0.1
"""Share of the samples that may be a tail; what is more frequent belongs to the body."""
_CUTS = 40
"""Places at which a cut is tried: the widest gaps, and even steps through the tail's range."""


@dataclass(frozen=True)
class TailedLaw:
    """A body, and with a probability a tail instead (crates/core/model, `Distribution`)."""

    body: Law
    probability: float = 0.0
    tail: Law | None = None

    @property
    def mean_ns(self) -> float:
        """The exact mean."""
        if self.tail is None:
            return self.body.mean_ns
        return self.body.mean_ns + self.probability * (self.tail.mean_ns - self.body.mean_ns)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent values."""
        values = _at(self.body, rng.random(count))
        if self.tail is not None:
            rare = rng.random(count) < self.probability
            values[rare] = _at(self.tail, rng.random(int(rare.sum())))
        return values

    def shifted(self, by_ns: float) -> TailedLaw:
        """Every value later by this much."""
        tail = None if self.tail is None else _shifted(self.tail, by_ns)
        return TailedLaw(_shifted(self.body, by_ns), self.probability, tail)

    def toml(self) -> str:
        """As profiles write it."""
        if self.tail is None:
            return self.body.toml()
        body, tail = (", ".join(str(max(0, round(one))) for one in law.quantiles_ns)
                      for law in (self.body, self.tail))  # fmt: skip
        probability = f"{self.probability * 100:.6g} %"
        return (
            f'{{ quantiles = [{body}], unit = "ns", '
            f'tail = {{ probability = "{probability}", quantiles = [{tail}] }} }}'
        )


def fit(samples_ns: NDArray[np.float64]) -> TailedLaw:
    """The law of samples, cut into body and tail where the fewest nanoseconds are lost.

    Every cut in the upper tenth gives a law with the samples' own mean; what differs is how well
    straight lines between quantiles follow them. Chosen is the cut with the least mean squared
    distance between the quantile functions (Wasserstein-2), which a misplaced stall dominates.
    """
    values = np.sort(np.asarray(samples_ns, dtype=np.float64))
    if values.size == 0:
        raise ValueError("no samples: a law needs one at least")
    laws = [TailedLaw(_law(values, BODY_QUANTILES))]
    for cut in _cuts(values):
        tail = values[cut:]
        share = tail.size / values.size
        laws.append(
            TailedLaw(_law(values[:cut], BODY_QUANTILES), share, _law(tail, TAIL_QUANTILES))
        )
    return min(laws, key=lambda law: _lost(law, values))


def _cuts(values: NDArray[np.float64]) -> list[int]:
    """Sizes of the body that are tried."""
    first = values.size - int(values.size * LARGEST_TAIL)
    places = np.arange(max(1, first), values.size)
    if places.size == 0:
        return []
    gaps = values[places] - values[places - 1]
    widest = places[np.argsort(gaps)[-_CUTS // 2 :]]
    even = places[np.linspace(0, places.size - 1, _CUTS // 2).astype(int)]
    return sorted({int(one) for one in (*widest, *even)})


def _law(values: NDArray[np.float64], most: int) -> Law:
    """By at most `most` quantiles and never more than there are samples."""
    return Law.of_samples(values.tolist(), min(most, values.size))


def _lost(law: TailedLaw, values: NDArray[np.float64]) -> float:
    """The mean squared distance between the sorted samples and the law at their ranks."""
    ranks = (np.arange(values.size) + 0.5) / values.size
    body_share = 1.0 - law.probability
    expected = _at(law.body, np.minimum(ranks / body_share, 1.0))
    if law.tail is not None:
        rare = ranks > body_share
        expected[rare] = _at(law.tail, (ranks[rare] - body_share) / law.probability)
    return float(np.mean((expected - values) ** 2))


def _at(law: Law, p: NDArray[np.float64]) -> NDArray[np.float64]:
    grid = np.linspace(0.0, 1.0, len(law.quantiles_ns))
    if grid.size == 1:
        return np.full(p.shape, law.quantiles_ns[0])
    return np.interp(p, grid, law.quantiles_ns)


def _shifted(law: Law, by_ns: float) -> Law:
    return Law(tuple(max(0.0, value + by_ns) for value in law.quantiles_ns))

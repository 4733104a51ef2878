# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Values of one metric over many connections, with weights."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from warifu.results.noise import Noise

Floats = NDArray[np.float64]

#: Standard errors that a normal law is within in 95 %.
_ERRORS = 1.96


@dataclass(frozen=True)
class Distribution:
    """Values of one metric with weights, and how many connections never gave one.

    ``values`` (n atoms) ascend; ``weights`` (n atoms) count trials. ``failed`` connections are
    right-censored: they count as later than every value. ``independent`` is the number of
    independent draws, smaller than the count where connections share a trial.

    Of an ``exact`` distribution weights and ``failed`` are probabilities. What losses do is in them
    as infinitely many trials would show it; what costs do is drawn, by which they have ``noise``.
    What was too improbable to be enumerated is in neither: ``residual`` is its share of all
    connections, from 0 to below 1. It may have any values, and slow and failed connections are the
    likeliest. Statistics are of the rest; `quantile_ends`, `share_ends` and `mean_ends` are what
    those of all connections may be, but for one in twenty.
    """

    values: Floats
    weights: Floats
    failed: float = 0.0
    independent: int = 0
    exact: bool = False
    residual: float = 0.0
    noise: Noise | None = None

    @staticmethod
    def of(
        values: ArrayLike,
        weights: ArrayLike | None = None,
        failed: float = 0.0,
        concurrent: int = 1,
        exact: bool = False,
        residual: float = 0.0,
        noise: Noise | None = None,
    ) -> Distribution:
        """Sorts values (any order) with their weights; equal values become one atom.

        Raises ValueError where weights are not as many as values, and for a ``residual`` that is
        no share or of a distribution that is not ``exact``.
        """
        if not 0.0 <= residual < 1.0 or (residual and not exact):
            raise ValueError(f"residual is {residual}: expected a share below 1, and 0 of a sample")
        raw = np.asarray(values, dtype=np.float64).ravel()
        mass = np.ones_like(raw) if weights is None else np.asarray(weights, np.float64).ravel()
        if raw.shape != mass.shape:
            raise ValueError(f"{raw.size} values but {mass.size} weights: give one for each")
        atoms, where = np.unique(raw, return_inverse=True)
        summed = np.bincount(where, weights=mass, minlength=atoms.size).astype(np.float64)
        kept = summed > 0
        total = float(summed.sum()) + failed
        independent = max(1, round(total / max(1, concurrent))) if total else 0
        draws = 0 if exact else independent
        return Distribution(atoms[kept], summed[kept], float(failed), draws, exact, residual, noise)

    @property
    def completed(self) -> float:
        """Connections that gave a value."""
        return float(self.weights.sum())

    @property
    def n(self) -> float:
        """All connections, the failed ones too."""
        return self.completed + self.failed

    def quantile(self, p: float) -> float:
        """The smallest value that at least a share ``p`` of all connections does not exceed.

        The inverse of the distribution function, without interpolation, so that both halves are
        asked the same; infinite where failures reach it.
        """
        if self.n == 0:
            return float("nan")
        rank = p * self.n if self.exact else max(1.0, p * self.n)
        return float(self._at(np.array([rank]))[0])

    def mean(self, limit: float = np.inf) -> float:
        """The mean of min(value, limit); failed connections count as ``limit``.

        Without a finite limit failed connections are left out.
        """
        total, count = float(np.minimum(self.values, limit) @ self.weights), self.completed
        if np.isfinite(limit):
            total, count = total + limit * self.failed, self.n
        return total / count if count else float("nan")

    def quantile_ends(self, p: float) -> tuple[float, float]:
        """The least and the largest that the ``p`` quantile of all connections may be, wherever
        the residual lies and as far as noise goes; without either both are the quantile.

        The low end is no less than the smallest value, from which the rest begins.
        """
        reach = self._reach(p)
        if not (self.residual or reach) or self.n == 0:
            return self.quantile(p), self.quantile(p)
        # All of the residual is below the one end and above the other.
        shares = np.array([p - self.residual - reach, p + reach]) / (1.0 - self.residual)
        low, high = self._at(shares * self.n)
        return float(low), float(high)

    def share_ends(self, share: float) -> tuple[float, float]:
        """The least and the largest that a share of all connections may be, 0 to 1, by the
        ``share`` that it is of those that are known."""
        known = share * (1.0 - self.residual)
        reach = self._reach(known)
        return max(0.0, known - reach), min(1.0, known + self.residual + reach)

    @property
    def widest_reach(self) -> float:
        """The farthest that noise takes the probability of at most any value."""
        return 0.0 if self.noise is None else _ERRORS * max(self.noise.share_errors)

    def _reach(self, share: float) -> float:
        """How far by noise the probability of at most a value may be from what it is here."""
        return 0.0 if self.noise is None else _ERRORS * self.noise.share_error(share)

    def mean_ends(self, limit: float = np.inf) -> tuple[float, float]:
        """The least and the largest that the mean of all connections may be, as `mean` has it, of
        values from 0 to ``limit``; without a finite limit and with a residual it has no bound."""
        mean = self.mean(limit)
        reach = 0.0 if self.noise is None else _ERRORS * self.noise.mean_error
        if not self.residual or np.isnan(mean):
            return mean - reach, mean + reach
        known = self.n if np.isfinite(limit) else self.completed
        left_out = self.n * self.residual / (1.0 - self.residual)
        share = left_out / (known + left_out)
        low, high = (mean + reach * side for side in (-1.0, 1.0))
        return low * (1.0 - share), high * (1.0 - share) + limit * share

    def cdf(self, at: Floats) -> Floats:
        """The share of all connections with a value of at most each of ``at`` (any shape)."""
        if self.n == 0:
            return np.zeros_like(at)
        sums = np.concatenate(([0.0], self._sums))
        return np.asarray(sums[np.searchsorted(self.values, at, side="right")] / self.n)

    def limited(self, limit: float) -> tuple[Floats, Floats]:
        """Atoms and weights of min(value, limit) with the failed at a finite ``limit``."""
        values, weights = np.minimum(self.values, limit), self.weights
        if np.isfinite(limit) and self.failed:
            values = np.append(values, limit)
            weights = np.append(weights, self.failed)
        return values, weights

    def coarse(self, atoms: int) -> Distribution:
        """At most ``atoms`` atoms with the same mean and count, for resampling many values.

        Neighbours are averaged, fewer at both ends than in the middle (the scale function k1 of
        Dunning and Ertl, arXiv:1902.04023), so that the tail keeps its shape.
        """
        if self.values.size <= atoms:
            return self
        shares = (np.cumsum(self.weights) - self.weights / 2.0) / self.completed
        angle = np.arccos(1.0 - 2.0 * shares)
        _, group = np.unique(np.floor(angle / np.pi * atoms), return_inverse=True)
        mass = np.bincount(group, weights=self.weights).astype(np.float64)
        means = np.bincount(group, weights=self.weights * self.values) / mass
        return replace(self, values=means, weights=mass)

    def at_rank(self, rank: Floats) -> Floats:
        """The value at each 1-based rank (any shape): 0 below them all, infinite above."""
        return np.where(rank < 0.5, 0.0, self._at(rank))

    @functools.cached_property
    def _sums(self) -> Floats:
        """Trials up to each atom: a gate asks for dozens of quantiles."""
        return np.cumsum(self.weights)

    @functools.cached_property
    def _with_none(self) -> Floats:
        """The atoms, and what lies above them all."""
        return np.append(self.values, np.inf)

    def _at(self, rank: Floats) -> Floats:
        sums = self._sums
        # Sums of counts are exact; of fractions they may miss the rank by rounding alone.
        index = np.searchsorted(sums, rank * (1.0 - 1e-12), side="left")
        return np.asarray(self._with_none[index])

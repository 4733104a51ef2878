# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How often the truth lies in a scaled figure's band: each figure of each device is left out and
scaled from the other devices, whose errors alone made the band."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warifu.devices.catalog import Device
from warifu.devices.scaling import COVERAGE, SCALED, Corpus, Estimate, residual


@dataclass(frozen=True)
class Judged:
    """A figure that was left out."""

    device: str
    primitive: str
    estimate: Estimate
    error: float
    """The logarithm of truth over estimate."""

    @property
    def inside(self) -> bool:
        """Whether the truth lies in the band."""
        return abs(self.error) <= math.log(self.estimate.factor) + 1e-12

    @property
    def family(self) -> str:
        """What it is reported with."""
        verb, _, rest = self.primitive.partition(".")
        match verb:
            case "ecdh":
                return f"ECDH {rest.partition('.')[2]}"
            case "sign" | "verify":
                return "RSA-2048" if "rsa" in rest else "ECDSA P-256"
            case "hash" | "hmac":
                return "SHA-2, HMAC"
            case "aead":
                return "ChaCha20-Poly1305" if "CHACHA" in rest else "AES-GCM"
        return "random bytes"


@dataclass(frozen=True)
class Coverage:
    """Judged figures together."""

    what: str
    count: int
    inside: int
    low: float
    high: float
    """The 95 % interval of the share (Clopper and Pearson)."""
    error_factor: float
    """The median error, as a factor."""
    band_factor: float
    """The median band, as a factor on either side."""

    @property
    def share(self) -> float:
        """The share inside."""
        return self.inside / self.count

    @property
    def verdict(self) -> str:
        """`pass` where the share's interval reaches nine tenths, `fail` where it stays below."""
        return "pass" if self.high >= COVERAGE else "fail"


def judged(devices: Iterable[Device], *, anchored: bool) -> list[Judged]:
    """Every figure that somebody measured, left out: beside the device's other figures, or knowing
    its core, clock and code alone. Figures that no other device has are not judged."""
    return list(_judged(Corpus(list(devices)), anchored))


def _judged(corpus: Corpus, anchored: bool) -> Iterator[Judged]:
    for target in corpus.devices:
        others = corpus.without(target.name)
        for primitive in SCALED:
            truth = target.firm(primitive)
            if truth is None:
                continue
            # What it would be by itself knows its own code: a data sheet says whether a chip has an
            # accelerator.
            estimate = others.estimate(target, primitive, anchored=anchored, code=truth.code)
            if estimate is None or not math.isfinite(estimate.factor):
                continue
            if estimate.way.anchored != anchored:
                continue
            yield Judged(target.name, primitive, estimate, residual(truth, estimate))


def coverages(rows: Iterable[Judged]) -> list[Coverage]:
    """By family, and all of them at the end."""
    of: dict[str, list[Judged]] = {}
    for row in rows:
        of.setdefault(row.family, []).append(row)
    every = [one for rows in of.values() for one in rows]
    return [_coverage(what, of[what]) for what in sorted(of)] + (
        [_coverage("all", every)] if every else []
    )


def _coverage(what: str, rows: list[Judged]) -> Coverage:
    from scipy.stats import binomtest

    inside = sum(row.inside for row in rows)
    interval = binomtest(inside, len(rows)).proportion_ci(0.95, "exact")
    return Coverage(
        what,
        len(rows),
        inside,
        float(interval.low),
        float(interval.high),
        _median([math.exp(abs(row.error)) for row in rows]),
        _median([row.estimate.factor for row in rows]),
    )


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading `noise.json`: how sure the probabilities of an exact prediction are, whose costs are
drawn.

The format is that of crates/core/results/src/noise.rs.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu.printable import clipped
from warifu.results.manifest import NOISE
from warifu.results.sealed_json import MistakeError, not_as_written, read_sealed

VERSION = 1
_MOST_BYTES = 256 << 20
#: No time's mean is known worse, ns.
_MOST = 1e18


@dataclass(frozen=True)
class Noise:
    """The standard errors of a metric's distribution."""

    #: Where bands of probability end, ascending; the last at 1.
    band_ends: Sequence[float]
    #: Of the share of at most a value, where that share is in each band.
    share_errors: Sequence[float]
    #: Of the mean of what did not fail, in the metric's unit.
    mean_error: float

    def share_error(self, share: float) -> float:
        """Of a share from 0 to 1."""
        band = bisect.bisect_right(self.band_ends, share)
        return self.share_errors[min(band, len(self.share_errors) - 1)]


def read_noise(path: Path, manifest: dict[str, Any]) -> Mapping[str, Mapping[str, Noise]]:
    """By case id and metric. Empty where no case is of the exact tier.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    if NOISE not in (manifest.get("files") or {}):
        return {}
    value = read_sealed(path, manifest, NOISE, _MOST_BYTES)
    try:
        match value:
            case {
                "version": int(version),
                "band_ends": list(ends),
                "cases": dict(cases),
            } if type(version) is int and version == VERSION:
                pass
            case {"version": version} if version != VERSION or type(version) is not int:
                raise MistakeError(f"version is {clipped(str(version))}: expected {VERSION}")
            case _:
                raise MistakeError("has no version, band_ends or cases")
        if not cases:
            raise MistakeError("has no case")
        bands = _numbers(ends, "band_ends", 1.0)
        if not bands or bands[-1] != 1.0 or any(b <= a for a, b in itertools.pairwise(bands)):
            raise MistakeError("band_ends do not ascend to 1")
        return {case_id: _case(of, bands, f"cases.{case_id}") for case_id, of in cases.items()}
    except MistakeError as mistake:
        raise not_as_written(path / NOISE, str(mistake)) from None


def _case(value: object, bands: Sequence[float], key: str) -> dict[str, Noise]:
    if not isinstance(value, dict):
        raise MistakeError(f"{clipped(key)} is no table")
    return {name: _noise(one, bands, f"{key}.{name}") for name, one in value.items()}


def _noise(value: object, bands: Sequence[float], key: str) -> Noise:
    match value:
        case {"share_errors": list(errors), "mean_error": mean_error}:
            shares = _numbers(errors, f"{key}.share_errors", 1.0)
            (mean,) = _numbers([mean_error], f"{key}.mean_error", _MOST)
        case _:
            raise MistakeError(f"{clipped(key)} has no share_errors or mean_error")
    if len(shares) != len(bands):
        said = f"{clipped(key)}.share_errors has {len(shares)} entries"
        raise MistakeError(f"{said}: expected {len(bands)}")
    return Noise(bands, shares, mean)


def _numbers(values: list[Any], key: str, most: float) -> tuple[float, ...]:
    for one in values:
        # An integer of any length can be compared, and what is no number is in no range.
        if type(one) not in (int, float) or not 0 <= one <= most:
            said = f"{clipped(key)} has {clipped(str(one))}"
            raise MistakeError(f"{said}: expected numbers from 0 to {most:g}")
    return tuple(map(float, values))

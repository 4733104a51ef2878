# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Differences as people read them: three digits at most, and no decimal that is not known."""

from __future__ import annotations

import math

from warifu.report.figures import decimals, number

_MS = 1e6
#: Digits of a figure in a sentence; tables and the other formats have more.
_DIGITS = 3
#: From here times are in seconds.
_SECONDS = 10_000.0
#: What a range on the boards that assumed figures allow is called, and the share of a figure from
#: which that range is told.
BY_BOARD, BY_BOARD_FROM = "by the board", 0.1
#: A band is an estimate itself: of its larger end two digits are told.
_BAND_HALF = 0.04


def time(value_ns: float, half_ns: float = 0.0, finest_ns: float = 0.0) -> str:
    """`59 ms`, `1.31 ms`, `12.4 s`: the size of a time that is known to ``half_ns``."""
    if not math.isfinite(value_ns):
        return "unknown" if math.isnan(value_ns) else "without end"
    value, half, finest = abs(value_ns) / _MS, half_ns / _MS, finest_ns / _MS
    if value >= _SECONDS:
        return f"{number(value / 1e3, _places(value / 1e3, half / 1e3, finest / 1e3))} s"
    return f"{number(value, _places(value, half, finest))} ms"


def size(value: float, half: float = 0.0) -> str:
    """`14 B`, `1.5 kB`: the size of a difference of bytes, known to ``half``."""
    if not math.isfinite(value):
        return "unknown"
    value = abs(value)
    places = min(0, _places(value, half, 0.0))
    # What rounds to 1000 B is 1.0 kB.
    if round(value, places) < 1000.0:
        return f"{number(value, places)} B"
    return f"{number(value / 1e3, min(1, _places(value / 1e3, half / 1e3, 0.0)))} kB"


def span(low: str, high: str) -> str:
    """`1.6 to 2.1 ms` of `1.6 ms` and `2.1 ms`: what both have is said once."""
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def half_of_band(low: float, high: float) -> float:
    """The uncertainty that the ends of a band are told with."""
    return _BAND_HALF * max((abs(end) for end in (low, high) if math.isfinite(end)), default=0.0)


def parsed_ms(text: str) -> float | None:
    """The ms of a study's `60 ms` or `1.5 s`; None for what is no plain time."""
    value, _, unit = text.strip().partition(" ")
    scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4}.get(unit.strip())
    try:
        return None if scale is None else float(value) * scale
    except ValueError:
        return None


def _places(value: float, half: float, finest: float) -> int:
    """Decimals: as many as the uncertainty bears, and not more than three digits have."""
    places = _DIGITS - 1 - (math.floor(math.log10(value)) if value > 0.0 else 0)
    if 0.0 < half < math.inf:
        places = min(places, decimals(half))
    if finest > 0.0:
        places = min(places, -math.floor(math.log10(finest)))
    if value > 0.0:
        # However uncertain, one digit is shown.
        places = max(places, -math.floor(math.log10(value))) if finest <= 0.0 else places
    return places

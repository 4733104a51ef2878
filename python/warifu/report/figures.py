# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Figures for people: no more decimals than the interval supports."""

from __future__ import annotations

import math

from warifu.compare.stats import Interval

_MS = 1e6
#: Without an interval, figures are given to this many significant digits.
_PLAIN_DIGITS = 3
#: With an interval that is open at an end, to this many.
_OPEN_DIGITS = 2


def decimals(half_width: float) -> int:
    """How many decimals an uncertainty of this size supports; negative to round to tens.

    The uncertainty is worth one digit, two if it begins below 3.5, where one digit would round it
    by more than a seventh.
    """
    if not math.isfinite(half_width) or half_width <= 0.0:
        return _PLAIN_DIGITS
    exponent = math.floor(math.log10(half_width))
    leading = half_width / 10.0**exponent
    return min(6, -exponent + (1 if leading < 3.5 else 0))


def number(value: float, places: int) -> str:
    """A figure with this many decimals; a word where there is none."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = round(value, places)
    # -0.0 would be printed with its sign.
    return f"{rounded + 0.0:.{max(0, places)}f}"


def ms(value_ns: float, interval_ns: Interval | None = None, finest_ns: float = 0.0) -> str:
    """A time in ms, as exact as its interval is narrow, and no finer than ``finest_ns``."""
    return number(value_ns / _MS, _no_finer(_shown_places(value_ns, interval_ns), finest_ns))


def ms_with(value_ns: float, interval_ns: Interval, finest_ns: float = 0.0) -> str:
    """A time in ms with its interval: `184.32 (184.30 to 184.35)`; no finer than ``finest_ns``."""
    places = _no_finer(_shown_places(value_ns, interval_ns), finest_ns)
    if interval_ns.low == interval_ns.high:
        return number(value_ns / _MS, places)
    low, high = (number(end / _MS, places) for end in interval_ns)
    return f"{number(value_ns / _MS, places)} ({low} to {high})"


def signed_ms_with(value_ns: float, interval_ns: Interval, finest_ns: float = 0.0) -> str:
    """A difference in ms with its interval: `+0.12 (-0.03 to +0.25)`."""
    places = _no_finer(_places(value_ns, interval_ns), finest_ns)
    value, low, high = (_signed(number(one / _MS, places)) for one in (value_ns, *interval_ns))
    return f"{value} ({low} to {high})"


def percent(value: float, half_width: float = math.nan) -> str:
    """A signed share in percent: `-1.2 %`."""
    if math.isnan(value) or math.isinf(value):
        return "-"
    places = decimals(half_width * 100.0) if 0 < half_width < math.inf else 1
    return _signed(number(value * 100.0, max(0, min(2, places)))) + " %"


def ended_only(failed_share: float) -> str:
    """What a figure leaves out that failed trials have no part in; empty where none failed."""
    if not failed_share:
        return ""
    least = min(failed_share, 1.0 - failed_share) * 100.0
    # So many decimals that neither side is rounded away.
    places = max(0, -math.floor(math.log10(least))) if least > 0.0 else 0
    return f"of the trials that ended; {number(failed_share * 100.0, places)} % failed"


def count(value: float) -> str:
    """A count with groups of digits: `20,000`."""
    return f"{value:,.0f}"


def span(low: float, high: float) -> str:
    """A range of counts: `914` or `914 to 918`."""
    shown = [f"{one:.0f}" if one == round(one) else f"{one:.1f}" for one in (low, high)]
    return shown[0] if low == high else " to ".join(shown)


def _shown_places(value_ns: float, interval_ns: Interval | None) -> int:
    """The decimals of a value and its interval: one rule, so that the one stays in the other."""
    places = _places(value_ns, interval_ns)
    if math.isfinite(value_ns) and value_ns > 0.0:
        # However wide the interval, a digit of the value is shown.
        places = max(places, -math.floor(math.log10(value_ns / _MS)))
    return places


def _places(value_ns: float, interval_ns: Interval | None) -> int:
    widths = [] if interval_ns is None else [abs(end - value_ns) / _MS for end in interval_ns]
    known = [width for width in widths if math.isfinite(width) and width > 0.0]
    is_open = any(not math.isfinite(width) for width in widths)
    if known and not is_open:
        return decimals(max(known))
    if not math.isfinite(value_ns) or value_ns == 0.0:
        return decimals(max(known)) if known else 0
    digits = _OPEN_DIGITS if is_open else _PLAIN_DIGITS
    own = digits - 1 - math.floor(math.log10(abs(value_ns) / _MS))
    # With an open end the other end's distance is the least that is uncertain.
    return min(own, decimals(max(known))) if known else own


def _no_finer(places: int, finest_ns: float) -> int:
    """So many decimals of a ms, but none beyond that of ``finest_ns``; 0 sets no limit."""
    return places if finest_ns <= 0.0 else min(places, -math.floor(math.log10(finest_ns / _MS)))


def _signed(text: str) -> str:
    if text.startswith("-") or text in {"-", "0"} or not text.strip("0."):
        return text
    return f"+{text}"

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Distribution functions as still pictures: Altair describes them, vl-convert draws SVG.

The SVG is put into the page as it is, so the page needs no script and no network, prints, and
takes its colours from the page's style (light or dark) through CSS variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warifu.report.figures import ms, number
from warifu.report.markup import text
from warifu.results import MEASURED, PREDICTED, Distribution

#: Points of a curve: more cannot be seen at this size.
_POINTS = 240
_WIDTH, _HEIGHT = 300, 150
#: Beyond this ratio of P99 to the median a logarithmic axis shows both.
_LOG_FROM = 1.8
_MS = 1e6
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: With a stretched tail equal steps are equal factors of the connections still waiting.
_TAIL_TICKS = (0.0, 0.5, 0.9, 0.95, 0.99, 0.999)
_LEAST_WAITING = 1e-3


@dataclass(frozen=True)
class Picture:
    """An SVG with what it shows in words."""

    svg: str
    alt: str
    #: Whether the time axis is logarithmic and the tail of the share axis stretched.
    is_stretched: bool


@dataclass(frozen=True)
class Band:
    """Where a gate lets the prediction cross a share of the connections, ns."""

    share: float
    low: float
    high: float


def cdf(
    label: str,
    predicted: Distribution | None,
    measured: Distribution | None,
    key: str,
    gates: Sequence[Band] = (),
    bounds: Sequence[float] = (),
) -> Picture:
    """The distribution functions of a case in the halves that there are; ``key`` makes the
    picture's ids unique. ``gates`` are shaded, ``bounds`` (ns) are upright lines."""
    given = {PREDICTED: predicted, MEASURED: measured}
    halves = {half: one for half, one in given.items() if one is not None and one.values.size}
    if not halves:
        alt = f"{label}: no connection succeeded, so there is no time to show."
        return Picture(f"<p>{text(alt)}</p>", alt, False)
    is_log = any(_has_long_tail(one) for one in halves.values())
    low, high = _range(list(halves.values()), is_log)
    marks = [*_bands(gates, is_log, low, high), *_bounds(bounds, low, high)]
    svg = _svg(_spec(halves, is_log, low, high, marks))
    alt = _alt(label, halves)
    return Picture(_accessible(svg, alt, key), alt, is_log)


def curve(distribution: Distribution) -> tuple[list[float], list[float]]:
    """At most `_POINTS` corners of the distribution function: ms, and share of connections.

    The shares are spread as finely at both ends as in the middle.
    """
    shares = np.cumsum(distribution.weights) / distribution.n
    values = distribution.values / _MS
    if values.size > _POINTS:
        # Equal steps of an angle put more points at the tails.
        wanted = (1.0 - np.cos(np.linspace(0.0, math.pi, _POINTS))) / 2.0 * shares[-1]
        kept = np.unique(np.minimum(np.searchsorted(shares, wanted), values.size - 1))
        shares, values = shares[kept], values[kept]
    first = max(0.0, float(shares[0]) - float(distribution.weights[0] / distribution.n))
    return [float(values[0]), *map(float, values)], [first, *map(float, shares)]


def _has_long_tail(one: Distribution) -> bool:
    """Whether a logarithmic axis is needed for the connections that succeeded."""
    last = min(one.quantile(0.99), float(one.values[-1]))
    return last > _LOG_FROM * one.quantile(0.5)


def _range(halves: list[Distribution], is_log: bool) -> tuple[float, float]:
    """From the least to P99, or to P99.9 with a stretched tail, with some air, ms.

    One straggler in hundreds would press everything else into a line.
    """
    last = 1.0 - _LEAST_WAITING if is_log else 0.99
    low = min(float(one.values[0]) for one in halves) / _MS
    high = max(min(one.quantile(last), float(one.values[-1])) for one in halves) / _MS
    if is_log:
        return max(low * 0.93, 1e-3), high * 1.08
    air = max((high - low) * 0.04, 1e-3)
    return low - air, high + air


def _spec(
    halves: dict[str, Distribution], is_log: bool, low: float, high: float, marks: list[Any]
) -> dict[str, Any]:
    import altair as alt

    rows = []
    for half, distribution in halves.items():
        for time_ms, share in zip(*curve(distribution), strict=True):
            height = _height(share, is_log)
            rows.append({"ms": min(max(time_ms, low), high), "share": height, "half": half})
    # Both names even if one half is missing: a scale of one value would fall back to defaults.
    names = [PREDICTED, MEASURED]
    scale = alt.Scale(
        type="log" if is_log else "linear", domain=[low, high], nice=False, zero=False, clamp=True
    )
    ticks = {"values": _log_ticks(low, high)} if is_log else {"tickCount": 4}
    axis = alt.Axis(title="ms", titleAnchor="end", format="~r" if is_log else "~f", **ticks)
    lines = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("ms:Q", scale=scale, axis=axis),
            y=alt.Y(
                "share:Q",
                scale=alt.Scale(domain=[0, _height(1.0, is_log)]),
                axis=_share_axis(is_log),
            ),
            order=alt.Order("share:Q"),
            detail="half:N",
            color=_by_half(alt.Color, names, ["var(--predicted)", "var(--measured)"]),
            strokeDash=_by_half(alt.StrokeDash, names, [[1, 0], [5, 3]]),
            strokeWidth=_by_half(alt.StrokeWidth, names, [3.5, 1.75]),
        )
    )
    layers = alt.layer(*marks, lines) if marks else lines
    chart = layers.properties(width=_WIDTH, height=_HEIGHT).configure(
        background="transparent",
        font="system-ui, sans-serif",
        padding=4,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            domainColor="var(--rule)",
            gridColor="var(--grid)",
            labelColor="var(--quiet)",
            labelFontSize=11,
            tickColor="var(--rule)",
            titleColor="var(--quiet)",
            titleFontSize=11,
            titleFontWeight="normal",
        ),
    )
    return dict(chart.to_dict())


def _height(share: float, is_stretched: bool) -> float:
    """The place of a share on its axis."""
    return -math.log10(max(1.0 - share, _LEAST_WAITING)) if is_stretched else share


def _bands(gates: Sequence[Band], is_log: bool, low: float, high: float) -> list[Any]:
    """A gate as a shaded box: the prediction's line is to cross it."""
    import altair as alt

    thick = 0.045 * _height(1.0, is_log)
    rows = []
    for gate in gates:
        left, right = max(gate.low / _MS, low), min(gate.high / _MS, high)
        if left < right:
            middle = _height(gate.share, is_log)
            rows.append(
                {"ms": left, "until": right, "share": middle - thick, "top": middle + thick}
            )
    if not rows:
        return []
    marks = alt.Chart(alt.InlineData(values=rows)).mark_rect(
        color="var(--gate)", stroke="var(--gate-edge)", strokeWidth=0.8
    )
    return [marks.encode(x="ms:Q", x2="until:Q", y="share:Q", y2="top:Q")]


def _bounds(bounds: Sequence[float], low: float, high: float) -> list[Any]:
    """Deadlines, where they are in the picture."""
    import altair as alt

    rows = [{"ms": bound / _MS} for bound in bounds if low < bound / _MS < high]
    if not rows:
        return []
    marks = alt.Chart(alt.InlineData(values=rows)).mark_rule(
        color="var(--fail)", strokeDash=[2, 3], strokeWidth=1.6
    )
    return [marks.encode(x="ms:Q")]


def _share_axis(is_stretched: bool) -> Any:  # noqa: ANN401 - Altair's generated class
    """The axis of the shares, in percent whatever its scale is."""
    import altair as alt

    if not is_stretched:
        return alt.Axis(title=None, values=list(_TICKS), format=".0%")
    values = [-math.log10(1.0 - share) for share in _TAIL_TICKS]
    words = "format(1 - pow(10, -datum.value), datum.value > 2.5 ? '.1%' : '.0%')"
    return alt.Axis(title=None, values=values, labelExpr=words)


def _by_half(channel: Any, names: list[str], values: list[Any]) -> Any:  # noqa: ANN401
    """A channel that tells the halves apart; colour is only one of three."""
    import altair as alt

    scale = alt.Scale(domain=names, range=values)
    return channel("half:N", scale=scale, legend=None)


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 in every decade; where that is too few, finer."""
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(np.arange(1, 10, 0.5))):
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 3:
            break
    # More than six labels would run into each other.
    return inside[:: -(-len(inside) // 6)]


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec))


def _accessible(svg: str, alt: str, key: str) -> str:
    """One image with one description, in place of Vega's marks; sized by the page."""
    body = svg[svg.index(">") + 1 :]
    box = re.search(r'viewBox="([^"]+)"', svg)
    view = box.group(1) if box else f"0 0 {_WIDTH} {_HEIGHT}"
    body = re.sub(r'\s(?:role|aria-[a-z]+|class)="[^"]*"', "", body)
    body = re.sub(r'id="([^"]+)"', rf'id="{key}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", body)
    # Half pixels and a digit more are all that a screen can show.
    body = re.sub(r"(\d+\.\d\d)\d+", r"\1", body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" '
        f'aria-label="{text(alt)}">{body}'
    )


def _alt(label: str, halves: dict[str, Distribution]) -> str:
    parts = [
        f"{half} P50 {ms(one.quantile(0.5))}, P95 {ms(one.quantile(0.95))}, "
        f"P99 {ms(one.quantile(0.99))} ms (n {number(one.n, 0)})"
        for half, one in halves.items()
    ]
    return f"Distribution of the whole time, {label}: {'; '.join(parts)}"

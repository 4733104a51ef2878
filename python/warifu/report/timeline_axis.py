# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The time axis of a timeline: linear, but for long silence, which is cut out.

While nothing is under way and nobody computes there is nothing to see, and a retransmission timer
of seconds would press all else into a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warifu.results import Timeline

#: Silence of more than this share of a timeline is cut to it.
_SILENCE = 0.12
#: So many ticks, about.
_TICKS = 8
_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Break:
    """A part of the time that is not drawn to scale."""

    from_ns: float
    until_ns: float


@dataclass(frozen=True)
class Axis:
    """From times to places: piecewise linear."""

    #: Times and their places, ascending; linear in between.
    corners: Sequence[tuple[float, float]]
    breaks: Sequence[Break]

    @staticmethod
    def of(timeline: Timeline, top: float, height: float) -> Axis:
        """The axis of a timeline, from ``top`` on, so high."""
        total = float(max(timeline.total_ns, 1))
        breaks = [one for one in _silences(timeline) if _length(one) > _SILENCE * total]
        drawn = total - sum(_length(one) for one in breaks)
        each = _SILENCE * (drawn / max(1e-9, 1.0 - _SILENCE * len(breaks)))
        if len(breaks) * _SILENCE >= 1.0 or drawn <= 0:
            breaks, drawn, each = [], total, 0.0
        scale = height / (drawn + each * len(breaks))
        corners = [(0.0, top)]
        for one in breaks:
            time, place = corners[-1]
            place += (one.from_ns - time) * scale
            corners += [(one.from_ns, place), (one.until_ns, place + each * scale)]
        time, place = corners[-1]
        corners.append((total, place + (total - time) * scale))
        return Axis(corners, breaks)

    def __call__(self, time: float) -> float:
        """The place of a time; what is later than the end goes on with the last slope."""
        before = self.corners[0]
        for corner in self.corners[1:]:
            if time <= corner[0] or corner is self.corners[-1]:
                break
            before = corner
        (t0, p0), (t1, p1) = before, corner
        # Of times beyond 2^53 ns the greater may be no further as a number with a fraction.
        span = t1 - t0
        slope = (p1 - p0) / span if span > 0 else 0.0
        return p0 + (time - t0) * slope

    def ticks(self) -> list[float]:
        """Round times of which none is in what was cut out."""
        total = self.corners[-1][0]
        drawn = total - sum(_length(one) for one in self.breaks)
        step = _round_step(drawn / _TICKS)
        margin = step / 4
        times: list[float] = []
        # Stretch by stretch, since what was cut out may be very much longer than all that is drawn.
        begins = [0.0, *(one.until_ns + margin for one in self.breaks)]
        ends = [*(one.from_ns - margin for one in self.breaks), total]
        for begin, end in zip(begins, ends, strict=True):
            first, last = math.ceil(begin / step), math.floor(end / step)
            times += [index * step for index in range(first, last + 1)]
        return times[:: -(-len(times) // (4 * _TICKS)) or 1]


def _length(one: Break) -> float:
    return one.until_ns - one.from_ns


def _silences(timeline: Timeline) -> list[Break]:
    """When neither a packet is under way nor anybody does anything."""
    spans = [(one.from_ns, one.until_ns) for one in timeline.activities if one.kind != "pause"]
    transit = _typical_transit(timeline)
    spans += [
        (one.at_ns, one.at_ns + transit if one.arrives_ns is None else one.arrives_ns)
        for one in timeline.packets
    ]
    silences, since = [], 0
    for begin, end in sorted([*spans, (timeline.total_ns, timeline.total_ns)]):
        if begin > since:
            silences.append(Break(since, min(begin, timeline.total_ns)))
        since = max(since, end)
    return silences


def _typical_transit(timeline: Timeline) -> int:
    """How long a packet takes that was not lost."""
    times = sorted(p.arrives_ns - p.at_ns for p in timeline.packets if p.arrives_ns is not None)
    return times[len(times) // 2] if times else timeline.total_ns // 10


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10 .. that is no less."""
    power = 10.0 ** math.floor(math.log10(max(least, 1.0)))
    return next(power * step for step in _STEPS if power * step >= least * 0.999)

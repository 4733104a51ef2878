# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A connection as a picture: two lanes from top to bottom, and what goes between them.

It needs no script, says what it shows to those who cannot see it, and takes its colours and its
hatching from the page's style. Every part says what it is where one points at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from warifu.report.markup import text
from warifu.report.timeline_axis import Axis
from warifu.report.timeline_labels import (
    Flight,
    Label,
    activity_words,
    description,
    duration_ms,
    flight_words,
    flights,
    kind_words,
    packet_words,
    side_labels,
)
from warifu.results import Timeline
from warifu.results.timelines import Activity, End, Packet

T = TypeVar("T")

_WIDTH = 600.0
#: The lanes' left edges, and their width.
_LANES = {"client": 206.0, "server": 412.0}
_LANE = 12.0
_TOP = 40.0
#: Lines of words are so far apart.
_LINE = 14.0
_LEAST_HEIGHT, _MOST_HEIGHT = 360.0, 1_400.0
#: The height of what is too short to be seen.
_THIN = 1.2
#: Letters of a device's name above its lane, and of a line of words beside it.
_NAME = 26
_LETTERS = 22


def picture(timeline: Timeline, title: str, ends: tuple[str, str]) -> str:
    """The SVG of a connection; ``ends`` are the names of device and server."""
    labels = side_labels(timeline)
    groups = flights(timeline)
    lines = max(
        *(sum(_lines(label) for label in labels if label.end == end) for end in _LANES),
        2 * len(groups),
    )
    height = min(max(_LEAST_HEIGHT, lines * _LINE * 1.35), _MOST_HEIGHT)
    axis = Axis.of(timeline, _TOP, height)
    placed = {
        end: _spread([(axis(one.at_ns), _lines(one), one) for one in labels if one.end == end])
        for end in ("client", "server")
    }
    lowest = max([axis(timeline.total_ns), *(p for one in placed.values() for p, _ in one)])
    parts = [
        *_names(ends),
        *_grid(axis, lowest),
        *_lanes(axis, timeline),
        *(part for packet in timeline.packets for part in _packet(axis, packet, timeline)),
        *(_activity(axis, one, timeline) for one in timeline.activities if one.kind != "pause"),
        *(_timer(axis, end, at) for end, at in _timers(timeline)),
        *_words_of_flights(axis, groups, timeline),
        *(part for place, label in placed["client"] for part in _label(axis, place, label)),
        *(part for place, label in placed["server"] for part in _label(axis, place, label)),
    ]
    what = text(description(timeline, title))
    return (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH:g} {lowest + 16:.0f}" role="img">'
        f"<title>{text(title)}</title><desc>{what}</desc>{''.join(parts)}</svg>"
    )


def _names(ends: tuple[str, str]) -> Iterator[str]:
    for (end, name), role in zip(zip(_LANES, ends, strict=True), ("device", "server"), strict=True):
        short = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        middle = _LANES[end] + _LANE / 2
        yield f'<text class="tn" x="{middle:g}" y="14" text-anchor="middle">{role}</text>'
        yield (
            f'<text class="tq" x="{middle:g}" y="28" text-anchor="middle">{text(short)}'
            f"<title>{text(name)}</title></text>"
        )


def _grid(axis: Axis, lowest: float) -> Iterator[str]:
    """Round times, and where the axis is cut."""
    right = _LANES["server"] + _LANE
    times = axis.ticks()
    in_seconds = axis.corners[-1][0] >= 1e10
    for index, time in enumerate(times):
        y = axis(time)
        unit = (" s" if in_seconds else " ms") if index == 0 else ""
        shown = f"{time / (1e9 if in_seconds else 1e6):g}{unit}"
        yield f'<line class="tg" x1="40" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tq" x="36" y="{y + 4:.1f}" text-anchor="end">{shown}</text>'
    for one in axis.breaks:
        y = (axis(one.from_ns) + axis(one.until_ns)) / 2
        words = f"{duration_ms(one.until_ns - one.from_ns)} not to scale"
        middle = (_LANES["client"] + _LANES["server"] + _LANE) / 2
        yield (
            f'<text class="tq" x="{middle:g}" y="{y + 4:.1f}" text-anchor="middle">{words}</text>'
        )


def _lanes(axis: Axis, timeline: Timeline) -> Iterator[str]:
    bottom = axis(timeline.total_ns)
    for left in _LANES.values():
        yield (
            f'<rect class="tw" x="{left:g}" y="{_TOP:g}" width="{_LANE:g}" '
            f'height="{bottom - _TOP:.1f}"><title>waiting</title></rect>'
        )
        for one in axis.breaks:
            y = (axis(one.from_ns) + axis(one.until_ns)) / 2
            yield f'<path class="tb" d="M{left - 4:g} {y:.1f}l5 -4 5 8 5 -8 5 8"/>'


def _activity(axis: Axis, one: Activity, timeline: Timeline) -> str:
    top, bottom = axis(one.from_ns), axis(min(one.until_ns, timeline.total_ns))
    height = max(bottom - top, _THIN)
    place = f'x="{_LANES[one.end]:g}" y="{top:.1f}" width="{_LANE:g}" height="{height:.1f}"'
    style = {"compute": one.end, "system": f"{one.end} sys", "key_store": "store"}
    said = (
        f"{activity_words(one)} ({kind_words(one)}): {duration_ms(one.until_ns - one.from_ns)}, "
        f"from {duration_ms(one.from_ns)}"
    )
    title = f"<title>{text(said)}</title>"
    if one.kind == "compute":
        return f'<rect class="ta {style[one.kind]}" {place}>{title}</rect>'
    # Hatching lies over the colour, so that neither alone tells the kinds apart.
    hatch = {"system": "hatch-lines", "key_store": "hatch-cross"}.get(one.kind, "hatch-bars")
    base = style.get(one.kind, "queue")
    return (
        f'<g>{title}<rect class="ta {base}" {place}/>'
        f'<rect class="th" fill="url(#{hatch})" {place}/></g>'
    )


def _packet(axis: Axis, packet: Packet, timeline: Timeline) -> Iterator[str]:
    """A line from one lane to the other; a lost packet's ends on the way, with a cross."""
    down = packet.end == "client"
    begin = _LANES["client"] + _LANE if down else _LANES["server"]
    end = _LANES["server"] if down else _LANES["client"] + _LANE
    top = axis(packet.at_ns)
    lost = packet.arrives_ns is None
    if packet.arrives_ns is None:
        bottom, end = top + 14.0, begin + (end - begin) * 0.55
    else:
        bottom = axis(min(packet.arrives_ns, timeline.total_ns))
        if packet.arrives_ns > timeline.total_ns > packet.at_ns:
            # It is still under way when the response is there.
            share = (timeline.total_ns - packet.at_ns) / (packet.arrives_ns - packet.at_ns)
            end = begin + (end - begin) * share
    has_content = packet.messages[0] < packet.messages[1]
    style = "tp" + (" tl" if lost else "") + (" tr" if packet.again else "")
    style += "" if has_content or "S" in packet.flags else " tk"
    when = f"{duration_ms(packet.at_ns)}"
    until = "lost" if lost else f"arrives {duration_ms(packet.arrives_ns or 0)}"
    title = text(f"{packet_words(packet, timeline)}: sent {when}, {until}")
    yield (
        f'<line class="{style}" x1="{begin:g}" y1="{top:.1f}" x2="{end:.1f}" y2="{bottom:.1f}">'
        f"<title>{title}</title></line>"
    )
    if lost:
        yield (
            f'<path class="tx" d="M{end - 5:.1f} {bottom - 5:.1f}l10 10m0 -10l-10 10">'
            f"<title>{title}</title></path>"
        )


def _timers(timeline: Timeline) -> list[tuple[End, int]]:
    return [(one.end, one.at_ns) for one in timeline.timers if one.kind == "retransmit"]


def _timer(axis: Axis, end: End, at: int) -> str:
    middle, y = _LANES[end] + _LANE / 2, axis(at)
    return (
        f'<path class="tt" d="M{middle:g} {y - 6:.1f}l6 6 -6 6 -6 -6z"><title>retransmission timer '
        f"expires at {duration_ms(at)}</title></path>"
    )


def _words_of_flights(axis: Axis, groups: Sequence[Flight], timeline: Timeline) -> Iterator[str]:
    """The messages of each flight, in the middle."""
    middle = (_LANES["client"] + _LANE + _LANES["server"]) / 2
    wanted = []
    for one in groups:
        first = next(iter(one.packets), None)
        begin = axis(first.at_ns if first else one.messages[0].at_ns)
        until = begin
        if first is not None and first.arrives_ns is not None:
            until = axis(min(first.arrives_ns, timeline.total_ns))
        wanted.append(((begin + until) / 2 - 4, 2, one))
    for y, one in _spread(wanted):
        shown, size = flight_words(one)
        full = ", ".join(f"{message.label} {message.bytes:,} B" for message in one.messages)
        arrow = "→" if one.end == "client" else "←"
        width = max(7.2 * len(shown), 6.4 * (len(size) + 2)) + 6
        yield (
            f'<rect class="tv" x="{middle - width / 2:.1f}" y="{y - 11:.1f}" width="{width:.1f}" '
            f'height="26"/><text class="tf" x="{middle:g}" y="{y:.1f}" text-anchor="middle">'
            f"<title>{text(full)}</title>{text(shown)}"
            f'<tspan class="tq" x="{middle:g}" dy="12">{arrow} {size}</tspan></text>'
        )


def _lines(label: Label) -> int:
    """How many lines the words take: what is too long for one has its time in a second."""
    return 1 if len(label.words) + len(label.took) < _LETTERS else 2


def _label(axis: Axis, y: float, label: Label) -> Iterator[str]:
    """Words beside a lane, with a line to where they belong."""
    is_device = label.end == "client"
    lane = _LANES[label.end] + (0.0 if is_device else _LANE)
    x = lane - 12 if is_device else lane + 12
    at = axis(label.at_ns)
    anchor = "end" if is_device else "start"
    near = x + 2 if is_device else x - 2
    words = text(f"{label.words} {label.took}".strip())
    if _lines(label) == 2:
        words = f'{text(label.words)}<tspan x="{x:g}" dy="{_LINE - 1:g}">{text(label.took)}</tspan>'
    yield f'<path class="te" d="M{lane:g} {at:.1f}L{near:g} {y:.1f}"/>'
    yield (
        f'<text class="tz {label.style}" x="{x:g}" y="{y + 4:.1f}" text-anchor="{anchor}">'
        f"{words}</text>"
    )


def _spread(wanted: Sequence[tuple[float, int, T]]) -> list[tuple[float, T]]:
    """Places as near to those that are wanted as they can be, in their order, so that no words lie
    over others; each comes with its number of lines."""
    blocks: list[tuple[float, list[tuple[int, T]]]] = []
    for place, lines, one in sorted(wanted, key=lambda each: each[0]):
        blocks.append((place, [(lines, one)]))
        # Neighbours that touch become one block around their middle.
        while len(blocks) > 1:
            (above, ours), (below, theirs) = blocks[-2:]
            n, m = (sum(size for size, _ in block) for block in (ours, theirs))
            if below - above >= _LINE * n:
                break
            start = (above * n + (below - _LINE * n) * m) / (n + m)
            blocks[-2:] = [(max(start, _TOP), ours + theirs)]
    placed = []
    for start, block in blocks:
        at = start
        for lines, one in block:
            placed.append((at, one))
            at += _LINE * lines
    return placed


#: The hatching that timelines refer to; once in a page.
HATCHES = (
    '<svg class="hatches" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="hatch-lines" width="5" height="5" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="hs" width="1.8" height="5"/></pattern>'
    '<pattern id="hatch-cross" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path class="hp" d="M0 0l5 5M5 0l-5 5"/></pattern>'
    '<pattern id="hatch-bars" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect class="hs" width="4" height="1.4"/></pattern></defs></svg>'
)

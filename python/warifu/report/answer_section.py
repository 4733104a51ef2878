# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the page opens with: the answer, and every case beside a baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from warifu.answer import Answer, Row, amounts, words
from warifu.compare.boards import median_open, middle_median
from warifu.compare.require import Judged
from warifu.compare.stats import Interval
from warifu.report import markup
from warifu.report.content import Content
from warifu.report.figures import decimals, ms, number, percent, signed_ms_with
from warifu.results import PREDICTED

#: Rows of the table; a page with more is not read, and the other formats have them all.
_ROWS = 400
_MARKS = {"met": "pass", "missed": "fail", "undecided": "undecided"}
#: Decimals of a ms that are shown at most.
_MOST_PLACES = 3


def answer_section(content: Content, found: Answer) -> str:
    """The answer: what was asked, what was found, how far to believe it, and the cases."""
    first = [one for one in found.warnings if one != found.stands_in]
    parts = [markup.warning(one) for one in first]
    parts.append(f'<p class="question">{markup.prose(found.question)}</p>')
    parts.append(
        '<ul class="answers">'
        + "".join(f"<li>{markup.prose(sentence)}</li>" for sentence in found.sentences)
        + "</ul>"
    )
    # The question has said so in brief, so the answer did not wait for it.
    parts += [markup.warning(one) for one in found.warnings if one == found.stands_in]
    parts.append(_badge(found))
    for one in found.not_included:
        parts.append(f'<p class="left-out">{markup.prose(one.rstrip("."))}.</p>')
    parts.append(_table(content, found))
    return f'<section id="answer" aria-label="The answer">{"".join(parts)}</section>'


def _badge(found: Answer) -> str:
    """How far to believe it, in one line that leads to more."""
    level = str(found.badge.level)
    marks = {"pass": "✓", "fail": "✗", "undecided": "?"}
    mark = f"{marks[level]} " if level in marks else ""
    return (
        f'<p class="validation"><a class="badge {level}" href="#validation">{mark}'
        f"{markup.text(found.badge.text)}</a></p>"
    )


def _table(content: Content, found: Answer) -> str:
    rows = found.rows[:_ROWS]
    several = len(found.rows) > 1
    sized = any(math.isfinite(row.bytes) for row in rows)
    bounds = deadlines(content.judged, content.main.half)
    heads = ["case", "P50 ms", "P99 ms"]
    heads += ["P50 vs. baseline, ms"] if several else []
    heads += [_size_head(found)] if sized else []
    heads += ["B vs. baseline"] if sized and several else []
    heads += ["deadline"] if found.requirements else []
    heads += ["validated"] if any(row.verdict for row in rows) else []
    scale = _scale(rows, bounds)
    body = "".join(_row(row, found, heads, scale, bounds) for row in rows)
    choices = list(rows[0].settings) if rows else []
    caption = _caption(found, several)
    label = markup.text(caption.replace("`", ""))
    head = "".join(
        f'<th scope="col"{"" if at in (0,) else _NUMBER if "ms" in name or "B" in name else ""}>'
        f"{markup.text(name)}</th>"
        for at, name in enumerate(heads)
    )
    named = markup.text(json.dumps([words.key_of(one).replace("_", " ") for one in choices]))
    return (
        f'<div class="scroll beside" tabindex="0" role="region" aria-label="{label}">'
        f'<table id="cases-beside-baseline" data-choices="{named}"><caption>'
        f"<span>{markup.prose(caption)}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


_NUMBER = ' class="number"'
_ON_LINK, _WRITTEN = "B on the link", "B written"
_SIZES = {
    _ON_LINK: "all IP packets on the link, both ways",
    _WRITTEN: "what both programs wrote: these results have no bytes on the link",
}


def _size_head(found: Answer) -> str:
    """What the bytes are: no measurement has any of the link."""
    return _ON_LINK if all(row.on_link for row in found.rows) else _WRITTEN


def _caption(found: Answer, several: bool) -> str:
    half = "Predicted" if found.half == PREDICTED else "Measured"
    said = f"{half}: time to the response; B are {_SIZES[_size_head(found)]}."
    if several:
        said += (
            f" Baseline: {found.baseline_label or 'the first case'}. Behind a difference its 95 % "
            "interval; ~ marks one that is not certain."
        )
    if found.requirements:
        said += f" Deadline: {'; '.join(found.requirements)}."
    left = len(found.rows) - _ROWS
    if left > 0:
        said += f" The first {_ROWS} of {len(found.rows)}; `warifu report --format csv` has all."
    return said


def deadlines(judged: list[Judged] | tuple[Judged, ...] | object, half: str) -> list[float]:
    """The bounds on whole times that requirements set, ns."""
    found = []
    for one in judged if isinstance(judged, list | tuple) else []:
        metric = one.requirement.metric
        is_time = metric.endswith((".establishment", ".exchange", ".round_trip"))
        if one.half == half and is_time and one.requirement.operator in {"<", "<="}:
            found.append(one.requirement.bound)
    return sorted(set(found))


def _scale(rows: list[Row], bounds: list[float]) -> float:
    """The time at the right end of the small bars, ns."""
    times = [value for row in rows for value in (row.p50, row.p99) if math.isfinite(value)]
    most = max(times, default=1.0)
    # A deadline far beyond all times would press them into a corner.
    return max([most, *(bound for bound in bounds if bound < 3 * most)]) * 1.02


def _row(row: Row, found: Answer, heads: list[str], scale: float, bounds: list[float]) -> str:
    base = row.case_id == found.baseline
    several = len(found.rows) > 1
    cells = [
        _times(row.p50, row.p50_interval, row, _by_board(row.boards, row.p50)),
        _times(row.p99, row.p99_interval, row, _bar(row, scale, bounds)),
    ]
    if several:
        cells.append(_delta(row, base))
    if "B vs. baseline" in heads or _ON_LINK in heads or _WRITTEN in heads:
        known = math.isfinite(row.bytes)
        shown = f"{row.bytes:,.0f}" if known else "-"
        up_down = ""
        if math.isfinite(row.bytes_up) and math.isfinite(row.bytes_down):
            up_down = (
                f' title="the device wrote {row.bytes_up:,.0f} B and read {row.bytes_down:,.0f} B"'
            )
        cells.append(f'<td class="number"{_sort(row.bytes)}{up_down}>{shown}</td>')
        if several:
            cells.append(_delta_bytes(row, base))
    if "deadline" in heads:
        cells.append(f"<td>{_deadline(row)}</td>")
    if "validated" in heads:
        cells.append(f"<td>{markup.badge(row.verdict) if row.verdict else '-'}</td>")
    failed = ""
    if row.failed:
        failed = f'<small class="failed">{percent(row.failed).lstrip("+")} failed</small>'
    settings = markup.text(json.dumps(list(row.settings.values())))
    label = markup.flowing(row.label or "the only case")
    style = ' class="baseline"' if base else ""
    return (
        f'<tr{style} data-settings="{settings}"{_data(row)}><th scope="row">{label}{failed}</th>'
        f"{''.join(cells)}</tr>"
    )


def _data(row: Row) -> str:
    """The figures that another baseline is computed from, in the page."""
    places = _MOST_PLACES
    if row.finest > 0.0:
        places = max(0, min(places, -math.floor(math.log10(row.finest / 1e6))))
    figures = {
        "p50": row.p50,
        "p50-low": row.p50_interval.low,
        "p50-high": row.p50_interval.high,
        "bytes": row.bytes,
        "bytes-low": row.bytes,
        "bytes-high": row.bytes,
        "places": places,
    }
    data = "".join(f' data-{name}="{value:.17g}"' for name, value in figures.items())
    if row.on_boards is not None:
        # Whole us: a board is not known better.
        middle = [middle_median(row.on_boards, row.p50), median_open(row.on_boards)]
        on_boards, in_middle = (
            " ".join(f"{one / 1e3:.0f}" if math.isfinite(one) else "Infinity" for one in times)
            for times in (row.on_boards.off_middle, middle)
        )
        data += f' data-boards="{on_boards}" data-middle="{in_middle}"'
    return data


def _places_of(boards: Interval) -> int:
    half = amounts.half_of_band(*boards)
    return decimals(half / 1e6) if half else 0


def _ends_of(boards: Interval) -> str:
    """In ms, with the digits that a band has."""
    return " to ".join(number(end / 1e6, _places_of(boards)) for end in boards)


def _signed_ends(boards: Interval) -> str:
    shown = [number(end / 1e6, _places_of(boards)) for end in boards]
    return " to ".join(
        f"+{text}" if end > 0.0 and text.strip("0.") else text
        for end, text in zip(boards, shown, strict=True)
    )


def _sort(value: float) -> str:
    return f' data-sort="{value:.17g}"' if math.isfinite(value) else ""


def _times(value: float, interval: Interval, row: Row, more: str = "") -> str:
    shown = ms(value, interval, row.finest)
    ends = ""
    if all(map(math.isfinite, interval)) and interval.low < interval.high:
        low, high = (ms(end, interval, row.finest) for end in interval)
        ends = f' title="95 % interval {low} to {high} ms"'
    return f'<td class="number"{_sort(value)}{ends}>{shown}{more}</td>'


def _bar(row: Row, scale: float, bounds: list[float]) -> str:
    """From P50 to P99, and the deadlines, on one scale for all cases."""
    if not (math.isfinite(row.p50) and math.isfinite(row.p99)):
        return ""
    left, right = (100.0 * value / scale for value in (row.p50, row.p99))
    marks = "".join(
        f'<b style="left:{100.0 * bound / scale:.1f}%"></b>' for bound in bounds if bound < scale
    )
    return (
        f'<span class="range" aria-hidden="true"><u style="width:{left:.1f}%"></u>'
        f'<i style="left:{left:.1f}%;width:{max(right - left, 0.5):.1f}%"></i>{marks}</span>'
    )


def _delta(row: Row, base: bool) -> str:
    change = row.delta
    if base:
        shown = "baseline"
    elif not math.isfinite(change.value):
        shown = "-"
    else:
        shown = ("" if row.certain else "~") + signed_ms_with(
            change.value, change.interval, row.finest
        )
    value = 0.0 if base else change.value
    by_board = "" if base else _by_board(change.boards, change.value, _signed_ends)
    return f'<td class="number" data-delta="p50"{_sort(value)}>{markup.text(shown)}{by_board}</td>'


def _by_board(
    boards: Interval | None, value: float, of: Callable[[Interval], str] = _ends_of
) -> str:
    """`90 to 2100 by the board` below a time, where that tells."""
    if boards is None or boards.high - boards.low < amounts.BY_BOARD_FROM * abs(value):
        return ""
    return f'<small class="boards">{markup.text(of(boards))} {amounts.BY_BOARD}</small>'


def _delta_bytes(row: Row, base: bool) -> str:
    change = row.delta_bytes
    if base:
        shown = "baseline"
    elif not math.isfinite(change.value):
        shown = "-"
    else:
        sure = change.certain or change.value == 0.0
        whole = round(change.value)
        shown = f"{'' if sure else '~'}{'+' if whole > 0 else ''}{whole:,}"
    value = 0.0 if base else change.value
    return f'<td class="number" data-delta="bytes"{_sort(value)}>{markup.text(shown)}</td>'


def _deadline(row: Row) -> str:
    if row.deadline is None:
        return "-"
    style = _MARKS.get(row.deadline, "")
    mark = {"pass": "✓ ", "fail": "✗ ", "undecided": "? "}.get(style, "")
    return f'<span class="badge {style}">{mark}{markup.text(row.deadline)}</span>'

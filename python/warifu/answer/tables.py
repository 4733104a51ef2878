# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every case beside the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from warifu.answer import words
from warifu.answer.model import UNDECIDED, Answer, Change, Row
from warifu.compare.stats import Interval
from warifu.report.figures import decimals, ms, number
from warifu.report.table import Column, Table, Value

_MS = 1e6
#: What an undecided deadline is called in a narrow column.
_OPEN = "open"
#: Letters of a setting's value that is not broken into lines: those of TLS 1.3's suites fit.
_SHORT = 24


def cases_table(found: Answer, limit: int | None = None) -> Table:
    """A row a case: its choices, its times, and what differs from the baseline."""
    rows = _shown(found, limit)
    paths = list(found.rows[0].settings) if found.rows else []
    several = len(found.rows) > 1
    deadline = any(row.deadline for row in rows)
    sized = any(math.isfinite(row.bytes) for row in rows)
    columns = [
        Column(
            _head(path, paths), number=False, whole=_is_short(row.settings[path] for row in rows)
        )
        for path in paths
    ]
    columns = columns or [Column("case", number=False)]
    columns += [Column("P50 ms"), Column("P99 ms")]
    columns += [Column("+/- ms")] if several else []
    # Without packets that were counted they are others than a prediction's, and are called so.
    columns += [Column("bytes" if all(row.on_link for row in rows) else "B written")] * sized
    columns += [Column("+/- B")] if sized and several else []
    columns += [Column("deadline", number=False)] if deadline else []
    table = Table(f"{found.study}: {found.half}, beside the baseline", columns)
    for row in rows:
        cells = list(row.settings.values()) or [row.label or "the only case"]
        cells += [
            ms(row.p50, row.p50_interval, row.finest),
            ms(row.p99, row.p99_interval, row.finest),
        ]
        base = row.case_id == found.baseline
        cells += [_delta(row, base)] if several else []
        cells += [_bytes(row.bytes)] if sized else []
        cells += [_delta_bytes(row.delta_bytes, base)] if sized and several else []
        # As narrow as the head, so that no name of a suite is broken.
        cells += [_OPEN if row.deadline == UNDECIDED else row.deadline or "-"] if deadline else []
        table.add(cells, record(row, found))
    if several:
        table.notes.append(f"Baseline: {found.baseline_label}. ~ marks an uncertain difference.")
    if any(row.deadline == UNDECIDED for row in rows):
        table.notes.append(f"{_OPEN.capitalize()}: undecided.")
    if len(rows) < len(found.rows):
        table.notes.append(
            f"{len(rows)} of {len(found.rows):,} cases: the baseline, the fastest and the slowest; "
            "--format csv has all."
        )
    return table


def record(row: Row, found: Answer) -> dict[str, Value]:
    """A case for programs."""
    delta = row.delta
    unknown = Change(math.nan, Interval(math.nan, math.nan))
    link_bytes, size = (row.bytes, row.delta_bytes) if row.on_link else (math.nan, unknown)
    return {
        "case_id": row.case_id,
        "label": row.label,
        "half": found.half,
        "p50_ns": row.p50,
        "p50_low_ns": row.p50_interval.low,
        "p50_high_ns": row.p50_interval.high,
        "p99_ns": row.p99,
        "p99_low_ns": row.p99_interval.low,
        "p99_high_ns": row.p99_interval.high,
        "delta_ns": delta.value,
        "delta_low_ns": delta.interval.low,
        "delta_high_ns": delta.interval.high,
        "delta_certain": row.certain,
        "p50_boards_low_ns": _end(row.boards, 0),
        "p50_boards_high_ns": _end(row.boards, 1),
        "delta_boards_low_ns": _end(delta.boards, 0),
        "delta_boards_high_ns": _end(delta.boards, 1),
        "link_b": link_bytes,
        "delta_link_b": size.value,
        "delta_link_low_b": size.interval.low,
        "delta_link_high_b": size.interval.high,
        "sent_b": row.bytes_up,
        "received_b": row.bytes_down,
        "failed_share": row.failed,
        "deadline": row.deadline,
        "verdict": row.verdict,
        "is_baseline": row.case_id == found.baseline,
    }


def _end(of: Interval | None, end: int) -> float | None:
    return None if of is None else float(round(of[end])) if math.isfinite(of[end]) else of[end]


def _head(path: str, paths: Sequence[str]) -> str:
    key = words.key_of(path)
    alone = sum(words.key_of(other) == key for other in paths) == 1
    return (key if alone else path).replace("_", " ")


def _is_short(values: Iterable[str]) -> bool:
    """Whether a column is narrow enough for names that stay in one piece."""
    return max(map(len, values), default=0) <= _SHORT


def _shown(found: Answer, limit: int | None) -> list[Row]:
    """All, or the baseline with the fastest and the slowest."""
    rows = found.rows
    if limit is None or len(rows) <= limit:
        return rows
    ordered = sorted(rows, key=lambda row: row.p50)
    half = max(1, (limit - 1) // 2)
    chosen = {row.case_id for row in [*ordered[:half], *ordered[-half:]]} | {found.baseline}
    return [row for row in rows if row.case_id in chosen]


def _delta(row: Row, base: bool) -> str:
    if base:
        return "base"
    value, interval = row.delta.value / _MS, row.delta.interval
    if not math.isfinite(value):
        return "-"
    half = max(interval.high - row.delta.value, row.delta.value - interval.low) / _MS
    places = decimals(half) if 0.0 < half < math.inf else 3
    if row.finest:
        places = min(places, -math.floor(math.log10(row.finest / _MS)))
    # Beyond three decimals nobody reads on; the other formats have them.
    shown = number(value, min(places, 3))
    sign = "+" if value > 0 and shown.strip("0.") else ""
    return f"{'' if row.certain else '~'}{sign}{shown}"


def _bytes(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "-"


def _delta_bytes(change: Change, base: bool) -> str:
    if base:
        return "base"
    if not math.isfinite(change.value):
        return "-"
    sure = change.certain or change.value == 0.0
    return f"{'' if sure else '~'}{change.value:+,.0f}".replace("+0", "0").replace("-0", "0")

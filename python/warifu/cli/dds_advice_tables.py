# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of `warifu dds advise`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from warifu.dds import crossing, way
from warifu.dds.advice import Advice, Change, Verdict
from warifu.dds.crossing import Stretch
from warifu.dds.way import Bounds
from warifu.report.table import Column, Table

#: The order of rows.
_ENDS = (way.WRITER, way.LINK, way.READER)
_WHATS = (way.MIDDLEWARE, way.PLUGIN, way.CALL, way.BYTES, way.SYSTEM, way.TRANSIT, way.COLD)


def advice(label: str, found: Advice, evidence: str, of_bytes: str | None) -> list[Table]:
    """The answer with its changes, and where the time goes.

    ``evidence`` is the weakest of the figures, ``of_bytes`` that of the times for each byte.
    """
    return [_changes(label, found, evidence, of_bytes), _rows(label, found)]


def headline(label: str, found: Advice, of_bytes: str | None) -> str:
    """The answer: the present, and what to change first."""
    size = crossing.size(_payload(found))
    present = f"{label}, {size}: {_interval(found.total)} one way."
    if of_bytes is not None:
        # Most of a long sample's time, and a profile has no bounds for it.
        present += (
            f" The time for each byte is taken as one number, which rests on {of_bytes} values, "
            "and not in this band."
        )
    if (first := found.first) is not None:
        low, usual, high = (round(100 * part) for part in first.share)
        return (
            f"{present} Change first: {first.name}, which saves "
            f"{_interval(first.saves)}, {usual} % ({low} to {high} %)."
        )
    bound = f"{100 * found.asked.at_least:g} %"
    if not (open_ := found.undecided):
        return f"{present} No change saves {bound}."
    low, usual, high = (round(100 * part) for part in open_[0].share)
    return f"{present} No change saves {bound} for certain; {open_[0].name} may: {low} to {high} %."


def _changes(label: str, found: Advice, evidence: str, of_bytes: str | None) -> Table:
    heads = ("saves", "%", "% at least", "% at most")
    columns = [Column("change", number=False, wrap=34), *map(Column, heads)]
    columns += [Column("verdict", number=False), Column("what is given up", number=False, wrap=44)]
    columns.append(Column("needs", number=False, wrap=34))
    table = Table(headline(label, found, of_bytes), columns)
    for change in found.sorted_changes:
        low, usual, high = (100 * part for part in change.share)
        saves = _time(change.saves[1])
        table.add(
            [change.name, saves, f"{usual:.0f}", f"{low:.0f}", f"{high:.0f}", _verdict(change),
             change.of.gives_up, change.of.needs],
            _record(found, change, evidence),
        )  # fmt: skip
    first = found.first
    if first is not None:
        table.notes += [*first.of.diff, f"Given up: {first.of.gives_up}."]
        if first.of.effort.name == "EXPERIMENT":
            table.notes.append("An experiment: no standard says that it may be used so.")
    if found.unknown:
        names = "; ".join(name for name, _ in found.unknown)
        table.notes.append(f"Not predicted, since a profile lacks figures for it: {names}.")
    table.notes.append(
        f"Simulated; rests on {evidence} values. Of a time, the least and the most, with all that "
        "is uncertain at its worst; a saving compares both settings on the same figures. What a "
        "profile gives as one number, such as the time for each byte, has no interval here."
    )
    return table


def _verdict(change: Change) -> str:
    return "takes longer" if change.saves[2] < 0 else change.verdict.value


def _record(found: Advice, change: Change, evidence: str) -> Mapping[str, str | float | int]:
    least, total, most = (round(bound) for bound in found.total)
    return {
        "change": change.name, "effort": change.of.effort.name.lower(),
        "verdict": change.verdict.value, "saves_low_ns": change.saves[0],
        "saves_ns": change.saves[1], "saves_high_ns": change.saves[2],
        "gives_up": change.of.gives_up, "needs": change.of.needs,
        "diff": "\n".join(change.of.diff), "first": int(change is found.first),
        "total_low_ns": least, "total_ns": total, "total_high_ns": most,
        "payload": _payload(found), "evidence": evidence,
    }  # fmt: skip


def _rows(label: str, found: Advice) -> Table:
    points = [found.present.rows(way.at(index)) for index in range(3)]
    order = [(end, what) for end in _ENDS for what in _WHATS]
    order = [row for row in order if any(rows.get(row) for rows in points)]
    times = [[rows.get(row, 0.0) for row in order] for rows in points]
    # No more digits than three of the whole; the rows still add up to it.
    total = sum(times[1])
    unit, scale = _unit(total)
    step = 10 ** (math.floor(math.log10(total)) - 2) if total > 0 else 1.0
    shown = [adding_up(column, step) for column in times]
    exact = [adding_up(column, 1.0) for column in times]
    heads = (f"fastest, {unit}", f"usual, {unit}", "%", f"slowest, {unit}")
    columns = [Column("where", number=False), Column("what", number=False), *map(Column, heads)]
    table = Table(f"{label}: where the time goes", columns)
    digits = max(0, round(math.log10(scale / step)))
    for index, row in enumerate([*order, ("all", "the sum of these rows")]):
        low, usual, high = (f"{column[index] / scale:,.{digits}f}" for column in shown)
        ns = [round(column[index]) for column in exact]
        share = 100 * exact[1][index] / total if total else 0.0
        table.add(
            [*row, low, usual, f"{share:.0f}", high],
            {"where": row[0], "what": row[1], "low_ns": ns[0], "ns": ns[1], "high_ns": ns[2]},
        )
    table.notes.append(
        "Fastest and slowest: each figure at its bound. Only what somebody waits for counts, so a "
        "row may be less in the slowest case, where more of it is done while another end works."
    )
    return table


def adding_up(times: Sequence[float], step: float) -> list[float]:
    """Times as multiples of ``step``, and then their sum, which is that of what is returned."""
    found = []
    exact, given = 0.0, 0
    for time in times:
        exact += time
        steps = round(exact / step) - given
        given += steps
        found.append(steps * step)
    return [*found, given * step]


def over_payload(
    label: str, found: Mapping[str, Sequence[Stretch]], at_least: float, evidence: str
) -> list[Table]:
    """A sentence for each change, and then the payloads."""
    what = f"saves {100 * at_least:g} %" if at_least else "saves anything"
    sentences = Table(
        f"{label}: at which payload a change pays, which is that it {what} for certain",
        [Column("answer", number=False, wrap=110)],
    )
    columns = [Column("change", number=False, wrap=60), Column("from"), Column("to")]
    table = Table(f"{label}: payload by payload", [*columns, Column("verdict", number=False)])
    for name, stretches in found.items():
        said = crossing.sentence(name, stretches)
        sentences.add([said], {"device": label, "change": name, "says": said, "evidence": evidence})
        for of in stretches:
            table.add(
                [name, crossing.size(of.first), crossing.size(of.last), of.verdict.value],
                {"device": label, "change": name, "first": of.first, "last": of.last,
                 "verdict": of.verdict.value, "pays": int(of.verdict is Verdict.SAVES),
                 "evidence": evidence},
            )  # fmt: skip
    sentences.notes.append(f"Simulated; rests on {evidence} values.")
    return [sentences, table]


def _payload(found: Advice) -> int:
    return int(dict(found.asked.fixed)["pattern.response_body"].removesuffix(" B"))


def _interval(bounds: Bounds) -> str:
    low, usual, high = bounds
    unit, scale = _unit(usual)
    shown = [f"{value / scale:.{_digits(usual / scale)}f}" for value in (usual, low, high)]
    return f"{shown[0]} {unit} ({shown[1]} to {shown[2]} {unit})"


def _time(ns: float) -> str:
    unit, scale = _unit(ns)
    return f"{ns / scale:.{_digits(ns / scale)}f} {unit}"


def _unit(ns: float) -> tuple[str, float]:
    return ("ms", 1e6) if abs(ns) >= 1e6 else ("us", 1e3)


def _digits(value: float) -> int:
    """None of these figures deserves three of them."""
    return 0 if abs(value) >= 10 else 1

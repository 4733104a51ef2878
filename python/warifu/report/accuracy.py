# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of a comparison: what is judged, and how far apart the halves are."""

from __future__ import annotations

import math
from collections.abc import Iterable

from warifu.compare.comparison import NOT_JUDGED, STATISTICS, CaseComparison, Comparison
from warifu.compare.exact import Bytes
from warifu.compare.gates import Verdict, worst
from warifu.compare.rows import Row
from warifu.compare.stats import Interval
from warifu.report.figures import count, ms, number, percent, signed_ms_with, span
from warifu.report.summaries import names
from warifu.report.table import Column, Table, Value

#: What is said of a comparison whose prediction was not there first.
NOT_REGISTERED = (
    "The prediction is not the one that was there before the measurement was begun: it may have "
    "been made with what was seen"
)
#: A share in percent is formatted as a time of so many ns would be in ms.
_PERCENT = 1e8


def overview_table(comparison: Comparison) -> Table:
    """One row a case: how far off each figure is, in percent of the measured one."""
    table = Table(
        f"{comparison.study}: predicted against measured, {_judged(comparison)}",
        [
            Column("case", number=False),
            Column("verdict", number=False),
            *(Column(statistic_name(statistic)) for statistic in STATISTICS),
            Column("W1 in ms"),
            Column("bytes", number=False),
            Column("pass"),
            Column("fail"),
            Column("undecided"),
            Column(NOT_JUDGED),
            Column("n"),
            Column("failed"),
        ],
    )
    order = (Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED, NOT_JUDGED)
    for case in comparison.cases:
        rows = {
            row.statistic: row
            for row in case.rows
            if row.metric == case.metric and row.statistic in STATISTICS
        }
        bytes_verdict = worst([one.verdict for one in case.bytes])
        exact = {Verdict.PASS: "exact", Verdict.FAIL: "differ", None: "-"}
        record: dict[str, Value] = {"case_id": case.case_id, "label": case.label}
        record |= {"metric": case.metric, "verdict": str(case.verdict) if case.verdict else None}
        for one, row in rows.items():
            record |= {f"{one}_predicted_ns": row.predicted, f"{one}_measured_ns": row.measured}
            record |= {f"{one}_difference_ns": row.difference, f"{one}_low_ns": row.interval.low}
            record |= {f"{one}_high_ns": row.interval.high, f"{one}_relative": row.relative}
        table.add(
            [
                case.label,
                str(case.verdict or NOT_JUDGED),
                *(_relative(rows[one]) if one in rows else "-" for one in STATISTICS),
                ms(case.wasserstein.value, case.wasserstein.interval),
                exact.get(bytes_verdict, "undecided"),
                *(count(case.gates[one]) for one in order),
                count(case.n_measured),
                count(case.failed_measured),
            ],
            record
            | {f"gates_{name.replace(' ', '_')}": of for name, of in case.gates.items()}
            | {
                "not_judged": case.not_judged or None,
                "wasserstein_ns": case.wasserstein.value,
                "bytes_verdict": str(bytes_verdict) if bytes_verdict else None,
                "n_predicted": case.n_predicted,
                "n_measured": case.n_measured,
                "failed_predicted": case.failed_predicted,
                "failed_measured": case.failed_measured,
            },
        )
    # Of the exact tier they are no counts, and add up to one.
    predicted = sorted({case.n_predicted for case in comparison.cases if case.n_predicted > 1.0})
    beside = f", beside {span(predicted[0], predicted[-1])} predicted" if predicted else ""
    table.notes.append(
        "Predicted minus measured in percent of measured, with the 95 % interval; pass, fail, "
        "undecided and not judged count gates; W1 is the "
        f"Wasserstein-1 distance; n and failed are measured connections{beside}."
    )
    table.notes[:0] = [
        gates_sentence(comparison),
        *_not_judged(comparison),
        *speed_sentences(comparison),
    ]
    table.notes[:0] = comparison.interrupted
    # Beside the verdicts, not only in the machine's table: they may be the contention's.
    table.notes += measurement_warnings(comparison.warnings)
    return table


def measurement_warnings(warnings: Iterable[str]) -> list[str]:
    """What a measured half warns of, a sentence each that says whose warning it is."""
    return [f"Warning from the measurement: {one}." for one in warnings]


def gates_sentence(comparison: Comparison) -> str:
    """How many gates there are, how many of them were judged, and how."""
    gates = comparison.gates
    open_ones = gates[NOT_JUDGED]
    judged = sum(gates.values()) - open_ones
    if not judged + open_ones:
        return "No case has a gate."
    counts = ", ".join(
        f"{gates[one]} {one}" for one in (Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED)
    )
    said = f"{judged} of {judged + open_ones} gates are judged: {counts}"
    return f"{said}; {open_ones} are not judged."


def _not_judged(comparison: Comparison) -> Iterable[str]:
    """Which cases are not judged at all, and what there was nothing to compare of."""
    whys = dict.fromkeys(case.not_judged for case in comparison.cases if case.not_judged)
    for why in whys:
        cases = [case.label for case in comparison.cases if case.not_judged == why]
        yield f"Not judged: {why} ({'; '.join(cases) or 'the only case'})."
    missing = dict.fromkeys(one for case in comparison.cases for one in case.missing)
    for what in missing:
        of = sum(what in case.missing for case in comparison.cases)
        yield f"Without gates for lack of data in {of} of {len(comparison.cases)} cases: {what}."


def speed_sentences(comparison: Comparison) -> Iterable[str]:
    """How quick the machine was, and what is judged at that speed."""
    for speed in dict.fromkeys(case.speed for case in comparison.cases if case.speed):
        low, high = (number(end, 2) for end in speed.interval)
        cells = "one calibrated cell" if speed.cells == 1 else f"{speed.cells} calibrated cells"
        delay = "With delay" if speed.delayed else "Without delay"
        yield (
            f"{delay} computing took {number(speed.mean, 2)} times what was predicted ({low} to "
            f"{high}), by {cells} in {len(speed.by_round)} parts each, measured "
            "between the judged ones: P50, the mean and what was replayed are judged at "
            "that speed, and stand beside it as they are."
        )


def _judged(comparison: Comparison) -> str:
    return names(case.metric for case in comparison.cases)


def _relative(row: Row) -> str:
    if not row.measured or not math.isfinite(row.measured):
        return "-"
    low, high = row.interval.low / row.measured, row.interval.high / row.measured
    half = max(row.relative - low, high - row.relative)
    if not math.isfinite(half):
        return f"{percent(row.relative)} (open)"
    ends = f"{percent(low, half)} to {percent(high, half)}".replace(" %", "")
    return f"{percent(row.relative, half)} ({ends})"


def statistic_name(statistic: str) -> str:
    """As a table has it."""
    words = (word.upper() if word[1:].isdigit() else word for word in statistic.split(" "))
    return " ".join(words)


def comparison_table(
    comparison: Comparison, worst_first: bool = False, judged_only: bool = False
) -> Table:
    """Every figure of every case, with the difference, its interval and the verdict."""
    table = Table(
        f"{comparison.study}: predicted - measured, {_judged(comparison)} in ms",
        [
            Column("case", number=False),
            Column("figure", number=False),
            Column("predicted"),
            Column("measured"),
            Column("difference (95 % interval)"),
            Column("relative"),
            Column("gate"),
            Column("verdict", number=False),
            Column("n"),
            Column("remark", number=False),
        ],
    )
    items: list[tuple[CaseComparison, Row | Bytes]] = []
    for case in comparison.cases:
        rows = (row for row in case.rows if row.metric == case.metric)
        items += [(case, row) for row in rows if row.gate is not None or not judged_only]
        items += [(case, one) for one in case.bytes if case.bytes_gated or not judged_only]
    if worst_first:
        items.sort(key=lambda item: badness(*item), reverse=True)
    for case, one in items:
        if isinstance(one, Row):
            _comparison_row(table, case, one)
        else:
            _byte_row(table, case, one)
    table.notes = list(comparison_notes(comparison))
    return table


def badness(case: CaseComparison, one: Row | Bytes) -> tuple[int, float]:
    """Sorts the worst first: by verdict, then by the difference as a share of its gate."""
    order = {Verdict.FAIL: 3, Verdict.UNDECIDED: 2, Verdict.PASS: 1}
    if isinstance(one, Bytes):
        return (order[one.verdict] if case.bytes_gated else 0), 0.0
    if one.verdict is None or not one.width:
        return 0, abs(one.relative) if math.isfinite(one.relative) else math.inf
    return order[one.verdict], abs(one.difference) / one.width


def _comparison_row(table: Table, case: CaseComparison, row: Row) -> None:
    half = row.interval.half_width / row.measured if row.measured else math.nan
    remark = row.no_statement
    if row.trials_needed:
        remark += f": needs about {count(_roughly(row.trials_needed))}"
    width = row.width or math.inf
    if row.no_statement and (row.interval.low > width or row.interval.high < -width):
        # Not judged by the rule, and no comfort either.
        remark += "; the interval is wholly outside the gate"
    if row.verdict is Verdict.UNDECIDED:
        remark = "the difference is near the gate"
    table.add(
        [
            case.label,
            statistic_name(row.statistic),
            _as_exact_as(row.predicted, row),
            _as_exact_as(row.measured, row),
            _difference(row),
            percent(row.relative, half),
            row.gate or "-",
            _verdict(row) or "-",
            count(case.n_measured),
            remark,
        ],
        {
            "case_id": case.case_id,
            "label": case.label,
            "metric": row.metric,
            "statistic": row.statistic,
            "n_predicted": case.n_predicted,
            "n_measured": case.n_measured,
            "failed_predicted": case.failed_predicted,
            "failed_measured": case.failed_measured,
            **_record(row),
            "relative": row.relative,
            "gate": row.gate,
            "verdict": _verdict(row),
            "no_statement": row.no_statement or None,
            "trials_needed": row.trials_needed,
            "on_edge": row.on_edge,
            "wasserstein_ns": case.wasserstein.value,
            "wasserstein_low_ns": case.wasserstein.interval.low,
            "wasserstein_high_ns": case.wasserstein.interval.high,
            "wasserstein_chance_ns": case.wasserstein.chance,
            "ks": case.kolmogorov[0],
            "ks_chance": case.kolmogorov[1],
            "evidence_predicted": case.evidence_predicted,
            "evidence_measured": case.evidence_measured,
        },
    )


def _record(row: Row) -> dict[str, Value]:
    """Its figures for programs: times in ns, shares from 0 to 1."""
    figures = {
        "predicted": row.predicted,
        "measured": row.measured,
        "difference": row.difference,
        "low": row.interval.low,
        "high": row.interval.high,
        "gate": row.width,
    }
    end = "_ns" if row.unit == "ns" else "_share"
    return {f"{name}{end}": value for name, value in figures.items()}


def _difference(row: Row) -> str:
    if math.isnan(row.difference):
        return "-"
    if row.unit == "ns":
        return signed_ms_with(row.difference, row.interval)
    low, high = (end * _PERCENT for end in row.interval)
    return signed_ms_with(row.difference * _PERCENT, Interval(low, high)) + " points"


def _verdict(row: Row) -> str | None:
    if row.no_statement:
        return NOT_JUDGED
    return None if row.verdict is None else str(row.verdict)


def _roughly(trials: int) -> int:
    """Two digits are as much as an extrapolation is worth."""
    return int(float(f"{trials:.1e}"))


def _as_exact_as(value: float, row: Row) -> str:
    if row.unit != "ns":
        width = row.interval.half_width
        ends = Interval((value - width) * _PERCENT, (value + width) * _PERCENT)
        return f"{ms(value * _PERCENT, ends)} %"
    if not math.isfinite(row.interval.half_width):
        return ms(value)
    half = Interval(value - row.interval.half_width, value + row.interval.half_width)
    return ms(value, half)


def _byte_row(table: Table, case: CaseComparison, one: Bytes) -> None:
    gate = "exact" if case.bytes_gated else "-"
    verdict = str(one.verdict) if case.bytes_gated else "-"
    remark = "" if one.verdict is Verdict.PASS else one.reason
    who = "B sent" if one.metric == "bytes.client_sent" else "B received"
    cells = [case.label, who, one.predicted, one.measured, "-", "-", gate, verdict]
    table.add(
        [*cells, count(case.n_measured), remark],
        {
            "case_id": case.case_id,
            "label": case.label,
            "metric": one.metric,
            "statistic": "exact",
            "predicted": one.predicted,
            "measured": one.measured,
            "verdict": str(one.verdict) if case.bytes_gated else None,
            "reason": one.reason,
        },
    )


def comparison_notes(comparison: Comparison) -> Iterable[str]:
    """What a reader of the comparison must know: the rule, the two errors, what is special."""
    yield comparison.rule
    yield gates_sentence(comparison)
    yield (
        f"Engine error: {verdict_sentence(comparison)} Field error: none yet, nothing here was "
        "measured on a real device or network."
    )
    yield from special_notes(comparison)


def special_notes(comparison: Comparison) -> Iterable[str]:
    """What is special about this comparison: failures, edges, what was not compared, the runs."""
    failed = sum(case.failed_measured for case in comparison.cases)
    if failed:
        yield (
            f"{count(failed)} measured connections failed. They count as later than every other; "
            "means are then of times up to the latest one seen, in both halves."
        )
    if any(row.unit == "1" and "P" in statistic_name(row.statistic) for row in _gated(comparison)):
        yield (
            "Some quantiles lie where the distribution jumps (a timer's edge): there a small error "
            "of a probability moves the quantile far, and the share of later connections is judged."
        )
    for labels, half in (
        (comparison.only_predicted, "predicted"),
        (comparison.only_measured, "measured"),
    ):
        if labels:
            some = "; ".join(labels[:3])
            yield f"Only {half}, so not compared: {len(labels)} cases ({some} ...)."
    when = (
        "The prediction was there before the measurement was begun"
        if comparison.registered
        else NOT_REGISTERED
    )
    by = f" (commit {comparison.predictor})" if comparison.predictor else ""
    runs = f"{comparison.predicted_run}{by}, measured by {comparison.measured_run}"
    yield f"Predicted by {runs}. {when}."


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict in a sentence."""
    judged = [case for case in comparison.cases if case.verdict is not None]
    if not judged:
        return "no case has a gate."
    words = [
        f"{comparison.count(verdict)} {word}"
        for verdict, word in (
            (Verdict.PASS, "pass"),
            (Verdict.FAIL, "fail"),
            (Verdict.UNDECIDED, "undecided"),
        )
        if comparison.count(verdict)
    ]
    return f"of {len(judged)} judged cases {', '.join(words)}."


def _gated(comparison: Comparison) -> Iterable[Row]:
    return (row for case in comparison.cases for row in case.rows if row.gate is not None)

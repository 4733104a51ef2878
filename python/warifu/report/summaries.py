# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of a study's results."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

from warifu.compare import stats
from warifu.compare.exact import Bytes
from warifu.compare.gates import Verdict, worst
from warifu.compare.join import STATISTICS, CaseComparison, Comparison, Row
from warifu.compare.stats import Interval
from warifu.report.figures import (
    count,
    ms,
    ms_with,
    number,
    percent,
    signed_ms_with,
    span,
)
from warifu.report.inputs import finest_ns, remarks
from warifu.report.table import Column, Table, Value
from warifu.results import PREDICTED, Distribution, Results, metrics

#: Rows that a terminal gets at most; every row is in the other formats and in the results.
TERMINAL_ROWS = 60
#: From this many trials the mean's interval is the normal one: the bootstrap's is the same
#: within a few percent and takes a hundred times as long.
_NORMAL_FROM = 10_000
_BYTES = ("bytes.client_sent", "bytes.server_sent")
#: The verdict of a gate that says nothing.
_NO_STATEMENT = "no statement"


def half_table(results: Results, limit: int | None = None) -> Table:
    """One half: n, median, mean with interval, P95, P99, bytes, method and evidence by case."""
    shown = list(results.cases)[:limit]
    several = any(results.concurrent(case_id) > 1 for case_id in shown)
    streams = any(map(results.is_stream, shown))
    sized = any(
        results.distribution(case_id, metric).values.size for case_id in shown for metric in _BYTES
    )
    table = Table(
        f"{results.study}: {results.half}, {_names(map(results.whole, results.cases))} in ms",
        [
            Column("case", number=False),
            Column("n"),
            Column("P50"),
            Column("mean (95 % interval)"),
            Column("P95"),
            Column("P99"),
            *([Column("all P50"), Column("all P95")] if several else []),
            *([Column("samples/s")] if streams else []),
            *([Column("B sent"), Column("B received")] if sized else []),
            Column("method", number=False),
            Column("rests on", number=False),
        ],
    )
    failed = 0.0
    # A setting of a layer that no case has, such as TLS beside CoAP, is no column.
    settings = {
        name for case in results.cases.values() for name, value in case.items() if value is not None
    }
    for case_id in shown:
        failed += results.failures(case_id)
        _half_row(table, results, case_id, settings, several, sized, streams)
    predicted = results.half == PREDICTED
    table.notes.append(
        (
            "The interval is the noise of the simulation alone: it says nothing of how right the "
            "inputs are. Decimals end where it does, or where a published or assumed input's do"
            if predicted
            else "The interval is the noise of these trials alone. Decimals end where it does"
        )
        + (
            "; B are the bytes that the programs wrote up to the first byte of the response, not "
            "those on the link."
            if sized
            else "."
        )
    )
    if several:
        table.notes.append(
            f"all: {metrics.whole_of_scenario()}, from the first call of the first of a trial's "
            "connections to the last one's response."
        )
    if predicted:
        table.notes += remarks(results.manifest)
    if failed:
        table.notes.append(
            f"{count(failed)} connections failed; they count as later than all others and are "
            "left out of the mean."
        )
    if len(shown) < len(results.cases):
        table.notes.append(
            f"{len(shown)} of {len(results.cases)} cases are shown; --format csv or json gives all."
        )
    return table


def _half_row(
    table: Table,
    results: Results,
    case_id: str,
    settings: Container[str],
    several: bool,
    sized: bool,
    streams: bool,
) -> None:
    times = results.distribution(case_id, results.whole(case_id))
    method, evidence = results.method(case_id), results.evidence(case_id)
    mean, mean_interval = times.mean(), normal_mean(times)
    # Measured times rest on no input: the link imposes what the study asks for.
    finest = finest_ns(results.manifest, case_id) if results.half == PREDICTED else 0.0
    cells = [results.label(case_id), count(times.n)]
    record: dict[str, Value] = {
        "case_id": case_id,
        "label": results.label(case_id),
        "half": results.half,
        "run_id": results.run_id,
        "n": times.n,
        "failed": times.failed,
    }
    quantiles = {}
    for p in (0.50, 0.95, 0.99):
        value, interval = times.quantile(p), stats.quantile_interval(times, p)
        quantiles[p] = ms(value, interval, finest)
        name = f"p{p * 100:.0f}"
        record |= {f"{name}_ns": value, f"{name}_low_ns": interval.low}
        record |= {f"{name}_high_ns": interval.high}
    record |= {"mean_ns": mean, "mean_low_ns": mean_interval.low}
    record |= {"mean_high_ns": mean_interval.high}
    shown_mean = ms_with(mean, mean_interval, finest)
    cells += [quantiles[0.50], shown_mean, quantiles[0.95], quantiles[0.99]]
    if several:
        cells += _scenario_cells(results, case_id, finest, record)
    if streams:
        rates = results.distribution(case_id, metrics.RATE_OF_STREAM)
        cells.append(f"{rates.quantile(0.5):.4g}" if rates.values.size else "-")
        record["rate_p50_per_s"] = rates.quantile(0.5)
    for metric in _BYTES:
        sizes = results.distribution(case_id, metric)
        if sized:
            cells.append(span(sizes.values[0], sizes.values[-1]) if sizes.values.size else "-")
        record[f"{metric}_p50_b"] = sizes.quantile(0.5)
    record |= {"method": method, "evidence": evidence}
    record |= {name: one for name, one in results.cases[case_id].items() if name in settings}
    table.add([*cells, method, evidence], record)


def _scenario_cells(
    results: Results, case_id: str, finest: float, record: dict[str, Value]
) -> list[str]:
    """The quantiles of all connections of a trial together."""
    metric = metrics.whole_of_scenario()
    if not results.has_metric(case_id, metric):
        return ["-", "-"]
    times = results.distribution(case_id, metric)
    cells = []
    for p in (0.50, 0.95):
        value, interval = times.quantile(p), stats.quantile_interval(times, p)
        cells.append(ms(value, interval, finest))
        name = f"{metric}_p{p * 100:.0f}"
        record |= {f"{name}_ns": value, f"{name}_low_ns": interval.low}
        record |= {f"{name}_high_ns": interval.high}
    return cells


def normal_mean(times: Distribution) -> Interval:
    """The interval of the mean of completed connections."""
    if times.completed < _NORMAL_FROM:
        import numpy as np

        # The seed is fixed: the same data give the same table.
        return stats.mean_interval(times, np.random.default_rng(0))
    mean = times.mean()
    variance = float(times.weights @ (times.values - mean) ** 2 / times.completed)
    half = 1.959964 * math.sqrt(variance / times.completed)
    return Interval(mean - half, mean + half)


def overview_table(comparison: Comparison) -> Table:
    """One row a case: how far off each figure is, in percent of the measured one."""
    table = Table(
        f"{comparison.study}: predicted against measured, {_judged(comparison)}",
        [
            Column("case", number=False),
            Column("verdict", number=False),
            *(Column(_name(statistic)) for statistic in STATISTICS),
            Column("W1 in ms"),
            Column("bytes", number=False),
            Column("n"),
            Column("failed"),
        ],
    )
    for case in comparison.cases:
        rows = {row.statistic: row for row in case.rows if row.metric == case.metric}
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
                str(case.verdict or (_NO_STATEMENT if case.no_statement else "not judged")),
                *(_relative(rows[one]) if one in rows else "-" for one in STATISTICS),
                ms(case.wasserstein.value, case.wasserstein.interval),
                exact.get(bytes_verdict, "undecided"),
                count(case.n_measured),
                count(case.failed_measured),
            ],
            record
            | {
                "wasserstein_ns": case.wasserstein.value,
                "bytes_verdict": str(bytes_verdict) if bytes_verdict else None,
                "n_predicted": case.n_predicted,
                "n_measured": case.n_measured,
                "failed_predicted": case.failed_predicted,
                "failed_measured": case.failed_measured,
            },
        )
    predicted = sorted({case.n_predicted for case in comparison.cases})
    table.notes.append(
        "Predicted minus measured in percent of measured, with the 95 % interval; W1 is the "
        "Wasserstein-1 distance; n and failed are measured connections, beside "
        f"{span(predicted[0], predicted[-1])} predicted."
    )
    table.notes[:0] = comparison.interrupted
    # Beside the verdicts, not only in the machine's table: they may be the contention's.
    table.notes += [f"Warning from the measurement: {one}." for one in comparison.warnings]
    return table


def _judged(comparison: Comparison) -> str:
    return _names(case.metric for case in comparison.cases)


def _names(names: Iterable[str]) -> str:
    """Each once."""
    return ", ".join(dict.fromkeys(names))


def _relative(row: Row) -> str:
    if not row.measured or not math.isfinite(row.measured):
        return "-"
    low, high = row.interval.low / row.measured, row.interval.high / row.measured
    half = max(row.relative - low, high - row.relative)
    if not math.isfinite(half):
        return f"{percent(row.relative)} (open)"
    ends = f"{percent(low, half)} to {percent(high, half)}".replace(" %", "")
    return f"{percent(row.relative, half)} ({ends})"


def _name(statistic: str) -> str:
    return statistic if statistic == "mean" else statistic.upper()


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
        about = "about" if math.isfinite(row.interval.half_width) else "at least"
        remark = f"needs {about} {count(_roughly(row.trials_needed))} trials"
        if row.on_edge and math.isfinite(row.interval.half_width):
            remark = "at a jump of the distribution, which trials move slowly"
    table.add(
        [
            case.label,
            _name(row.statistic),
            _as_exact_as(row.predicted, row),
            _as_exact_as(row.measured, row),
            "-" if math.isnan(row.difference) else signed_ms_with(row.difference, row.interval),
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
            "predicted_ns": row.predicted,
            "measured_ns": row.measured,
            "difference_ns": row.difference,
            "low_ns": row.interval.low,
            "high_ns": row.interval.high,
            "relative": row.relative,
            "gate": row.gate,
            "gate_ns": row.width,
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


def _verdict(row: Row) -> str | None:
    if row.no_statement:
        return _NO_STATEMENT
    return None if row.verdict is None else str(row.verdict)


def _roughly(trials: int) -> int:
    """Two digits are as much as an extrapolation is worth."""
    return int(float(f"{trials:.1e}"))


def _as_exact_as(value: float, row: Row) -> str:
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


def distance_table(comparison: Comparison) -> Table:
    """How far apart the whole distributions are, beside what chance alone does."""
    table = Table(
        f"{comparison.study}: distance of the distributions",
        [
            Column("case", number=False),
            Column("n measured"),
            Column("failed"),
            Column("Wasserstein-1 in ms (95 % interval)"),
            Column("by chance below"),
            Column("largest CDF gap"),
            Column("by chance below"),
        ],
    )
    table.notes.append(
        "A distance is never negative, so noise alone makes it positive: `by chance below` is "
        "what a perfect prediction stays below in 95 % of such runs. Not judged."
    )
    for case in comparison.cases:
        distance, (gap, level) = case.wasserstein, case.kolmogorov
        table.add(
            [
                case.label,
                count(case.n_measured),
                count(case.failed_measured),
                ms_with(distance.value, distance.interval),
                ms(distance.chance),
                number(gap, 3),
                number(level, 3),
            ],
            {
                "case_id": case.case_id,
                "label": case.label,
                "wasserstein_ns": distance.value,
                "wasserstein_low_ns": distance.interval.low,
                "wasserstein_high_ns": distance.interval.high,
                "wasserstein_chance_ns": distance.chance,
                "ks": gap,
                "ks_chance": level,
            },
        )
    return table


def phase_table(comparison: Comparison) -> Table:
    """In which part of a connection the halves differ, and by how much after it: the mean of each,
    per case."""
    phases = list(dict.fromkeys(phase for case in comparison.cases for phase in case.phases))
    phases += dict.fromkeys(metric for case in comparison.cases for metric in case.later)
    table = Table(
        f"{comparison.study}: mean difference by phase, predicted - measured in ms (95 % interval)",
        [Column("case", number=False), *(Column(phase) for phase in phases)],
    )
    for case in comparison.cases:
        rows = [case.row("mean", phase) for phase in phases]
        record: dict[str, Value] = {"case_id": case.case_id, "label": case.label}
        for row in rows:
            if row is not None:
                record |= {f"{row.metric}_difference_ns": row.difference}
                record |= {f"{row.metric}_low_ns": row.interval.low}
                record |= {f"{row.metric}_high_ns": row.interval.high}
        cells = [
            "-" if row is None else signed_ms_with(row.difference, row.interval) for row in rows
        ]
        table.add([case.label, *cells], record)
    return table


def comparison_notes(comparison: Comparison) -> Iterable[str]:
    """What a reader of the comparison must know: the rule, the two errors, what is special."""
    yield comparison.rule
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
    if any(
        row.on_edge and row.verdict is not None for case in comparison.cases for row in case.rows
    ):
        yield (
            "Some quantiles lie where the distribution jumps (a timer's edge): there a small error "
            "of a probability moves the quantile far. See the CDF gaps."
        )
    for names, half in (
        (comparison.only_predicted, "predicted"),
        (comparison.only_measured, "measured"),
    ):
        if names:
            yield f"Only {half}, so not compared: {len(names)} cases ({'; '.join(names[:3])} ...)."
    yield f"Predicted by {comparison.predicted_run}, measured by {comparison.measured_run}."


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

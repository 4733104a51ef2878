# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of a study's results."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

from warifu.compare import stats
from warifu.compare.stats import Interval
from warifu.report.figures import (
    count,
    ms,
    ms_with,
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


def half_table(results: Results, limit: int | None = None) -> Table:
    """One half: n, median, mean with interval, P95, P99, bytes, method and evidence by case."""
    shown = list(results.cases)[:limit]
    several = any(results.concurrent(case_id) > 1 for case_id in shown)
    streams = any(map(results.is_stream, shown))
    sized = any(
        results.distribution(case_id, metric).values.size for case_id in shown for metric in _BYTES
    )
    table = Table(
        f"{results.study}: {results.half}, {names(map(results.whole, results.cases))} in ms",
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


def names(of: Iterable[str]) -> str:
    """Each once."""
    return ", ".join(dict.fromkeys(of))

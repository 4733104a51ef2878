# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables beside a comparison's verdicts: distributions, phases, null models, and how each cell
was measured."""

from __future__ import annotations

from collections import Counter

from warifu.compare.comparison import Comparison
from warifu.compare.stats import Interval
from warifu.report.accuracy import statistic_name
from warifu.report.figures import count, ms, ms_with, number, signed_ms_with
from warifu.report.table import Column, Table, Value
from warifu.results.parts import LEAST_PARTS


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


def null_table(comparison: Comparison) -> Table:
    """Our errors beside those of predictions that need no simulator."""
    table = Table(
        f"{comparison.study}: null models beside the prediction, errors in ms",
        [
            Column("case", number=False),
            Column("figure", number=False),
            Column("model", number=False),
            Column("it predicts"),
            Column("its error"),
            Column("our error"),
            Column("ours is", number=False),
        ],
    )
    beaten, all_of = Counter[str](), Counter[str]()
    for case in comparison.cases:
        for one in case.null_models:
            all_of[one.model] += 1
            beaten[one.model] += one.our_worst_ns < abs(one.error_ns)
            table.add(
                [
                    case.label,
                    statistic_name(one.statistic),
                    one.model,
                    ms(one.predicted_ns),
                    _signed_ms(one.error_ns),
                    _signed_ms(one.our_error_ns),
                    one.verdict,
                ],
                {
                    "case_id": case.case_id,
                    "label": case.label,
                    "statistic": one.statistic,
                    "model": one.model,
                    "model_ns": one.predicted_ns,
                    "model_error_ns": one.error_ns,
                    "our_error_ns": one.our_error_ns,
                    "our_worst_ns": one.our_worst_ns,
                    "times_nearer": one.times_nearer,
                    "verdict": one.verdict,
                },
            )
    if not all_of:
        table.notes.append("The prediction has no null models: run `warifu predict` again.")
        return table
    counts = (f"{beaten[model]} of {of} of {model}" for model, of in all_of.items())
    table.notes.append(
        "k is the number of round trips until the response without loss; computing is what the "
        "simulator's costs add up to. By more than the noise of the trials the prediction is "
        f"nearer than {' and '.join(counts)}."
    )
    return table


def _signed_ms(value_ns: float) -> str:
    return signed_ms_with(value_ns, Interval(value_ns, value_ns)).partition(" (")[0]


def conditions_table(comparison: Comparison) -> Table:
    """How each cell was measured, and what was replayed of it. Its rejected parts are attempts,
    of which a part may have several."""
    table = Table(
        f"{comparison.study}: how the cells were measured",
        [
            Column("case", number=False),
            Column("parts"),
            Column("sittings"),
            Column("rejected parts"),
            Column("latest start in ms"),
            Column("server busy"),
            Column("other work at most"),
            Column("computing"),
            Column("replayed"),
            Column("divergent"),
            Column("remark", number=False),
        ],
    )
    for case in comparison.cases:
        how = case.conditions
        late = how.start_late_ns
        table.add(
            [
                case.label,
                count(how.parts) if how.parts else "-",
                count(how.sittings) if how.parts else "-",
                count(how.rejected),
                "-" if late is None else ms(late),
                _share(how.server_busy),
                _share(how.others),
                "-" if case.speed is None else f"x {number(case.speed.mean, 2)}",
                count(case.replayed) if case.replayed else "-",
                count(case.divergent) if case.replayed else "-",
                case.not_judged,
            ],
            {
                "case_id": case.case_id,
                "label": case.label,
                "parts": how.parts,
                "sittings": how.sittings,
                "rejected_parts": how.rejected,
                "start_late_ns": late,
                "server_busy": how.server_busy,
                "others": how.others,
                "others_max": how.others_max,
                "machine_speed": None if case.speed is None else case.speed.mean,
                "replayed": case.replayed,
                "divergent": case.divergent,
                "not_judged": case.not_judged or None,
            },
        )
    few = [case for case in comparison.cases if 0 < case.conditions.parts < LEAST_PARTS]
    table.notes.append(
        "Parts lie minutes apart, and how they differ gives the intervals"
        + (
            f", but not in {len(few)} of {len(comparison.cases)} cases, which have fewer than "
            f"{LEAST_PARTS}: there trials count as independent, and intervals are too narrow where "
            "the machine drifts"
            if few
            else ""
        )
        + ". Rejected parts were rejected before their results were seen, and measured again. "
        "Divergent connections, in which one half sent a segment with content that the other did "
        "not, are among the replayed; connections that failed are not."
    )
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{number(value * 100.0, 1)} %"

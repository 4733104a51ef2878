# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The answer to a question of one case: how long it takes, and which part of it costs most."""

from __future__ import annotations

import math

from warifu.answer import amounts
from warifu.answer.samples import Samples
from warifu.answer.words import STAGES, listed
from warifu.compare import boards, stats
from warifu.compare.require import FIRST_RECORD_BYTES
from warifu.compare.stats import Interval
from warifu.results import PREDICTED

#: Stages that are named, the longest first, and the least share of one.
_NAMED, _LEAST = 3, 0.01


def sentences(samples: Samples, case_id: str) -> list[str]:
    """Time, stages, bytes."""
    sample, main = samples.of(case_id), samples.results
    if not sample.times.values.size:
        return ["No connection succeeded, so there is no time to tell."]

    def shown(p: float) -> str:
        value = sample.times.quantile(p)
        return amounts.time(value, _half(value, stats.quantile_interval(sample.times, p)), finest)

    finest = sample.finest
    what = "A sample" if main.is_stream(case_id) else "A connection"
    if main.cases[case_id].get("protocol") in {"coap", "dds"} and what == "A connection":
        what = "An exchange"
    tail = f"and {shown(0.99)} at P99"
    if math.isinf(sample.times.quantile(0.99)):
        tail = "and has no P99, since more than 1 % fail"
    found = [f"{what} takes {shown(0.50)} (median{_by_board(samples, case_id)}), {tail}."]
    if math.isinf(sample.times.quantile(0.50)):
        found = [f"{what} has no median time, since half of them or more fail."]
    if sample.failed > 0.0:
        found.append(f"{sample.failed * 100:.2g} % of them fail.")
    stages = main.stages(case_id)
    whole = sum(stages.values())
    ordered = sorted(stages.items(), key=lambda item: -item[1])
    named = [
        f"{STAGES.get(stage, stage)} {amounts.time(value, 0.0, finest)} ({value / whole:.0%})"
        for stage, value in ordered[:_NAMED]
        if whole and value >= _LEAST * whole
    ]
    if named:
        found.append(f"Most of its mean is {listed(named)}.".replace("%)", " %)"))
    if not math.isnan(sample.up):
        on_link = ""
        if sample.on_link:
            body = main.cases[case_id].get("response_body")
            # What comes after the first record of a response is not counted.
            cut = isinstance(body, int) and body > FIRST_RECORD_BYTES and main.half == PREDICTED
            until = " until the response's first byte" * cut
            on_link = (
                f"{amounts.size(sample.size.mean())} go over the link{until}, headers and all; "
            )
        found.append(
            f"{on_link}the programs send {amounts.size(sample.up)} up and "
            f"{amounts.size(sample.down)} down."
        )
    return found


def _by_board(samples: Samples, case_id: str) -> str:
    """`; 90 to 2100 ms by the board`, where that tells."""
    on_boards, sample = samples.results.on_boards(case_id), samples.of(case_id)
    if on_boards is None:
        return ""
    median = sample.times.quantile(0.50)
    low, high = boards.median_range(on_boards, median)
    if high - low < amounts.BY_BOARD_FROM * median:
        return ""
    half = amounts.half_of_band(low, high)
    ends = [amounts.time(end, half, sample.finest) for end in (low, high)]
    return f"; {amounts.span(*ends)} {amounts.BY_BOARD}"


def _half(value: float, interval: Interval) -> float:
    return max(interval.high - value, value - interval.low)

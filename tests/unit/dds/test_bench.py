# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `bench/dds.py` makes of its figures: ratios, intervals, and verdicts of every kind."""

from __future__ import annotations

import math
import random
import sys

import pytest

from support.paths import ROOT
from warifu.compare.gates import Verdict

sys.path.insert(0, str(ROOT / "bench"))

import dds_overhead as bench
from dds_overhead import AEGIS, BUILTIN, GATES, OURS, PLAIN, SIZES, Gate


def rounds(
    ours: float, *, noise: float = 0.0, count: int = 12
) -> list[dict[tuple[str, int], float]]:
    """Plain text takes 10 us, the builtin plugin 10 us more, ours that times a ratio; a whole round
    is up to 5 us slower than another."""
    rng = random.Random(1)
    made = []
    for _ in range(count):
        base = 10 + 5 * rng.random()
        each = {PLAIN: 0.0, BUILTIN: 10.0, OURS: 10 * ours, AEGIS: 10 * ours}
        made.append(
            {
                (stack, size): base + over + (rng.gauss(0, noise) if noise else 0.0)
                for stack, over in each.items()
                for size in SIZES
            }
        )
    return made


@pytest.mark.parametrize(
    ("ours", "noise", "verdict"),
    [
        (0.5, 0.1, Verdict.PASS),
        (0.69, 0.0, Verdict.PASS),
        (0.71, 0.0, Verdict.FAIL),
        (1.3, 0.1, Verdict.FAIL),
        (0.7, 1.0, Verdict.UNDECIDED),
        (0.5, 8.0, Verdict.UNDECIDED),
    ],
)
def test_a_gate_is_judged_by_the_whole_interval(
    ours: float, noise: float, verdict: Verdict
) -> None:
    (judged,) = bench.judge(rounds(ours, noise=noise), [Gate(OURS, 64, 0.70)])
    assert judged.verdict is verdict, judged
    assert judged.ratio.interval.low <= judged.ratio.value <= judged.ratio.interval.high


def test_what_slows_a_whole_round_cancels_out() -> None:
    found = bench.ratio(rounds(0.6), OURS, 1024)
    assert found.value == pytest.approx(0.6)
    assert found.interval == pytest.approx((0.6, 0.6))
    assert found.rounds == 12


@pytest.mark.parametrize("count", range(bench.FEWEST_ROUNDS))
def test_few_rounds_decide_nothing(count: int) -> None:
    judged = bench.judge(rounds(0.1, count=count))
    assert {one.verdict for one in judged} == {Verdict.UNDECIDED}
    assert bench.overall(judged) is Verdict.UNDECIDED


def test_rounds_that_lack_a_figure_count_for_the_others() -> None:
    made = rounds(0.6)
    del made[0][PLAIN, 64], made[1][BUILTIN, 64], made[2][OURS, 64]
    assert bench.ratio(made, OURS, 64).rounds == 9
    assert bench.ratio(made, AEGIS, 64).rounds == 10
    assert bench.ratio(made, OURS, 1024).rounds == 12


def test_a_builtin_plugin_that_costs_nothing_decides_nothing() -> None:
    made = rounds(0.6)
    for one in made:
        one[BUILTIN, 64] = one[PLAIN, 64]
    (judged,) = bench.judge(made, [Gate(OURS, 64, 0.70)])
    assert judged.ratio.value == math.inf
    assert judged.verdict is Verdict.UNDECIDED


def test_intervals_hold_the_true_ratio_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(100):
        rng = random.Random(seed)
        made = []
        for _ in range(12):
            base = rng.uniform(10, 15)
            each = {PLAIN: 0.0, BUILTIN: 10.0, OURS: 7.0}
            made.append({(name, 64): base + us + rng.gauss(0, 1) for name, us in each.items()})
        interval = bench.ratio(made, OURS, 64).interval
        held += interval.low <= 0.7 <= interval.high
    assert held >= 88


def test_one_gate_that_fails_fails_all() -> None:
    holding = bench.judge(rounds(0.6))
    assert bench.overall(holding) is Verdict.PASS
    slow = rounds(0.6)
    for one in slow:
        one[AEGIS, 65_536] = one[PLAIN, 65_536] + 8
    assert bench.overall(bench.judge(slow)) is Verdict.FAIL
    assert bench.overall([]) is Verdict.UNDECIDED


def test_rounds_that_would_decide_are_estimated() -> None:
    assert bench.rounds_needed(bench.judge(rounds(0.6))) == 0
    assert bench.rounds_needed(bench.judge(rounds(0.6, count=3))) == bench.FEWEST_ROUNDS
    undecided = bench.judge(rounds(0.66, noise=1.0), [Gate(OURS, 64, 0.70)])
    needed = bench.rounds_needed(undecided)
    assert 12 < needed < 10_000
    more = bench.judge(rounds(0.66, noise=1.0, count=4 * needed), [Gate(OURS, 64, 0.70)])
    assert bench.overall(more) is not Verdict.UNDECIDED


def test_the_gates_are_the_issues() -> None:
    asked = {(gate.stack, gate.size, gate.most) for gate in GATES}
    assert (OURS, 64, 0.70) in asked
    assert {(OURS, size, 1.02) for size in SIZES} < asked
    assert {(AEGIS, size, 0.75) for size in (65_536, 1_048_576)} < asked


def test_sizes_are_named_as_people_do() -> None:
    names = ["64 B", "1 KB", "16 KB", "64 KB", "1 MB"]
    assert [bench.size_name(size) for size in SIZES] == names

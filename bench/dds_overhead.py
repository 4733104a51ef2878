# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What security adds to latency, from rounds in which every stack has run: ratios of overheads with
their intervals, and the verdict on each gate. No process, no clock: `dds.py` measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warifu.compare.gates import Verdict
from warifu.compare.stats import Interval

PLAIN, BUILTIN, OURS, AEGIS = "plain", "builtin AES-256-GCM", "ours AES-256-GCM", "ours AEGIS-128L"
SIZES = (64, 1024, 16_384, 65_536, 1_048_576)
"""Bytes of a sample."""

FEWEST_ROUNDS = 6
"""With five, all lie on one side of the median in 2 * 0.5^5 = 6 % of cases: no interval of the
median at 95 % exists."""
REPLICATES = 10_000
_SEED = 13
_LEVEL = 0.95

Round = Mapping[tuple[str, int], float]
"""Median one-way latency in us of each stack and size that one round has a figure for."""


@dataclass(frozen=True)
class Gate:
    """The overhead of one stack over that of Cyclone's builtin plugin, and what it may be."""

    stack: str
    size: int
    most: float


GATES = (
    Gate(OURS, 64, 0.70),
    *(Gate(OURS, size, 1.02) for size in SIZES),
    *(Gate(AEGIS, size, 0.75) for size in (65_536, 1_048_576)),
)
"""Issue 13: at 64 B at most 0.70, never slower, AEGIS-128L at least 25 % less at 64 KB and 1 MB."""


@dataclass(frozen=True)
class Ratio:
    """Of two overheads, with its interval at 95 %; infinite where there is no overhead to divide
    by."""

    value: float
    interval: Interval
    rounds: int


@dataclass(frozen=True)
class Judged:
    """A gate with what was found."""

    gate: Gate
    ratio: Ratio
    verdict: Verdict


def overheads(rounds: Sequence[Round], stack: str, size: int) -> list[float]:
    """Secured less plain, us, for each round that has both."""
    return [
        one[stack, size] - one[PLAIN, size]
        for one in rounds
        if (stack, size) in one and (PLAIN, size) in one
    ]


def ratio(rounds: Sequence[Round], stack: str, size: int, *, over: str = BUILTIN) -> Ratio:
    """The median overhead of one stack over that of another, in the rounds that have both and plain
    text. The interval is the percentile bootstrap's over rounds: a resample takes a round's three
    figures together, so that what slowed a whole round slows both overheads."""
    needed = {(stack, size), (over, size), (PLAIN, size)}
    whole = [one for one in rounds if needed <= one.keys()]
    if not whole:
        return Ratio(math.nan, Interval(-math.inf, math.inf), 0)
    above = np.array(overheads(whole, stack, size))
    below = np.array(overheads(whole, over, size))
    value = float(_divide(np.median(above), np.median(below)))
    if len(whole) < FEWEST_ROUNDS:
        return Ratio(value, Interval(-math.inf, math.inf), len(whole))
    picks = np.random.default_rng(_SEED).integers(len(whole), size=(REPLICATES, len(whole)))
    replicates = _divide(np.median(above[picks], axis=1), np.median(below[picks], axis=1))
    # No interpolation: between a finite ratio and infinity there is nothing.
    tail = (1 - _LEVEL) / 2
    low = float(np.quantile(replicates, tail, method="lower"))
    high = float(np.quantile(replicates, 1 - tail, method="higher"))
    return Ratio(value, Interval(low, high), len(whole))


def judge(rounds: Sequence[Round], gates: Sequence[Gate] = GATES) -> list[Judged]:
    """Each gate holds if the whole interval lies within it, fails if all of it lies beyond, and is
    undecided otherwise."""
    judged = []
    for gate in gates:
        found = ratio(rounds, gate.stack, gate.size)
        if found.interval.high <= gate.most:
            verdict = Verdict.PASS
        elif gate.most < found.interval.low < math.inf:
            verdict = Verdict.FAIL
        else:
            verdict = Verdict.UNDECIDED
        judged.append(Judged(gate, found, verdict))
    return judged


def overall(judged: Sequence[Judged]) -> Verdict:
    """Fails if one gate does, holds if all do."""
    verdicts = {one.verdict for one in judged}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.UNDECIDED


def rounds_needed(judged: Sequence[Judged]) -> int:
    """About how many would decide all gates if figures stay as they are: an interval's width goes
    with the root of the rounds. At least those that any interval wants; 0 if all are decided."""
    needed = 0
    for one in judged:
        if one.verdict is not Verdict.UNDECIDED:
            continue
        value, interval = one.ratio.value, one.ratio.interval
        side = interval.high - value if value <= one.gate.most else value - interval.low
        distance = abs(value - one.gate.most)
        times = (side / distance) ** 2 if distance > 0 else math.inf
        wanted = math.ceil(one.ratio.rounds * times) if math.isfinite(times) else 0
        needed = max(needed, wanted, FEWEST_ROUNDS)
    return needed


def size_name(size: int) -> str:
    """As the issue names it: 64 B, 1 KB of 1,024 B, 1 MB of 1,048,576 B."""
    for unit, bytes_each in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= bytes_each and size % bytes_each == 0:
            return f"{size // bytes_each} {unit}"
    return f"{size} B"


def _divide(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Infinite where the other costs nothing or less: then nothing can be said to be cheaper."""
    above, below = np.asarray(above, float), np.asarray(below, float)
    return np.divide(above, below, out=np.full(above.shape, np.inf), where=below > 0)

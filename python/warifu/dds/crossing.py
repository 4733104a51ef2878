# SPDX-License-Identifier: Apache-2.0 OR MIT
"""At which payloads a change pays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warifu.dds.advice import Verdict

#: Payloads that are tried first, B: each double of the one before.
SIZES = tuple(16 << step for step in range(19))
#: A bound is known when the next payload that differs is at most this much longer.
_FINE = 1.1


@dataclass(frozen=True)
class Stretch:
    """Payloads with the same verdict, both ends included, B."""

    first: int
    last: int
    verdict: Verdict


def stretches(judge: Callable[[int], Verdict], sizes: Sequence[int] = SIZES) -> list[Stretch]:
    """What ``judge`` says of payloads from the first to the last of ``sizes``, each bound narrowed
    down to a tenth. What changes and changes back between two that are tried is not seen."""
    tried = {size: judge(size) for size in sizes}
    for low, high in itertools.pairwise(sizes):
        _narrow(judge, tried, low, high)
    found: list[Stretch] = []
    for size, verdict in sorted(tried.items()):
        if found and found[-1].verdict is verdict:
            found[-1] = Stretch(found[-1].first, size, verdict)
        else:
            found.append(Stretch(size, size, verdict))
    return found


def _narrow(
    judge: Callable[[int], Verdict], tried: dict[int, Verdict], low: int, high: int
) -> None:
    """Tries more between two payloads that differ: in both halves, for there may be a third verdict
    between two."""
    if tried[low] is tried[high] or high <= low * _FINE or high - low <= 1:
        return
    middle = (low + high) // 2
    tried[middle] = judge(middle)
    _narrow(judge, tried, low, middle)
    _narrow(judge, tried, middle, high)


def sentence(name: str, found: Sequence[Stretch]) -> str:
    """One line that says where the change pays, and where that is open."""
    if len(found) == 1:
        span = f"at every payload from {size(found[0].first)} to {size(found[0].last)}"
        match found[0].verdict:
            case Verdict.SAVES:
                return f"{name} pays {span}."
            case Verdict.LITTLE:
                return f"{name} does not pay at any payload from " + span.split(" from ")[1] + "."
        return f"{name} is undecided {span}."
    paying = [_span(of, found) for of in found if of.verdict is Verdict.SAVES]
    open_ = [_span(of, found) for of in found if of.verdict is Verdict.UNDECIDED]
    said = f"pays {' and '.join(paying)}" if paying else "does not pay for certain at any payload"
    return f"{name} {said}{'; undecided ' + ' and '.join(open_) if open_ else ''}."


def _span(of: Stretch, found: Sequence[Stretch]) -> str:
    if of is found[-1]:
        return f"from {size(of.first)} on"
    if of is found[0]:
        return f"up to {size(of.last)}"
    if of.first == of.last:
        return f"at {size(of.first)}"
    return f"from {size(of.first)} to {size(of.last)}"


def size(length: int) -> str:
    """`16 B`, `1.5 KiB`, `1 MiB`: to three digits."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if length >= scale:
            return f"{length / scale:.3g} {unit}"
    return f"{length} B"

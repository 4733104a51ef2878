# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The parts that a cell was measured in, as the measured half's manifest has them.

A part is one go of the lab's programs over one link; the parts of all cells are interleaved, so
that those of a cell lie minutes apart. Parts that were rejected before their results were seen are
in `rejections`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What others may take beside a part that is to be judged, a share of all processors; a part may
#: say otherwise.
OTHERS_MAX = 0.05
#: Fewer parts say nothing of how parts differ: none are cut for that, and trials then count as
#: independent.
LEAST_PARTS = 5
#: Share of the time for which the server may be busy with connections that are one case each: a
#: step in twenty finds its processor busy and waits for about half a millisecond, some 0.02 ms a
#: step on average.
SERVER_BUSY_MAX = 0.05
#: Beyond the bound a part is accepted still, since pauses vary by chance and processors in speed.
SERVER_BUSY_TOLERANCE = 0.005
#: Above this a part is rejected, and a case not judged.
SERVER_BUSY_ALLOWED = SERVER_BUSY_MAX + SERVER_BUSY_TOLERANCE
#: In fewer trials most of what the server did is what came before them, such as the connections
#: that sessions are taken from.
LEAST_PACED = 60


@dataclass(frozen=True)
class Part:
    """Consecutive trials of one cell, measured in one go."""

    first_trial: int
    trials: int
    #: Shares of all processors' time that others took, programs and the hypervisor together, and
    #: that they may take; None where it was not recorded.
    others: float | None
    others_max: float
    #: Which run of `warifu measure` it is of, from 0 on.
    sitting: int
    #: The share of the time for which the server was busy; None where it was not recorded.
    server_busy: float | None
    #: By how much the latest trial began after its time, ns; None where it was not recorded.
    start_late_ns: float | None
    #: Whether trials came one after the other, so that none met another.
    alone: bool
    #: When it began, seconds since 1970; None where it was not recorded. A part that was rejected
    #: is measured again after all others.
    began: float | None = None

    @property
    def is_paced(self) -> bool:
        """Whether how busy the server was says how often a trial met another."""
        return not self.alone and self.trials >= LEAST_PACED


def parts_of(manifest: Mapping[str, Any], case_id: str) -> list[Part]:
    """The parts of a case in the order of their trials; none where the manifest lists none."""
    cell = (manifest.get("cells") or {}).get(case_id)
    records = cell.get("parts") if isinstance(cell, dict) else None
    found = [_part(one) for one in records or [] if isinstance(one, dict)]
    return sorted(found, key=lambda part: part.first_trial)


def rejected_parts(manifest: Mapping[str, Any], case_id: str) -> int:
    """How many parts of a case were rejected unseen, and measured again."""
    rejections = manifest.get("rejections") or []
    return sum(isinstance(one, dict) and one.get("case_id") == case_id for one in rejections)


def part_of_each(parts: Sequence[Part], trials: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The index of the part that each trial is of; None unless every trial is of one."""
    if not parts:
        return None
    firsts = np.array([part.first_trial for part in parts], dtype=np.int64)
    ends = firsts + np.array([part.trials for part in parts], dtype=np.int64)
    of = np.searchsorted(firsts, trials, side="right") - 1
    whole = bool((of >= 0).all()) and bool((trials < ends[np.maximum(of, 0)]).all())
    return of.astype(np.int64) if whole else None


def _part(record: dict[str, Any]) -> Part:
    shares = record.get("processor_shares")
    others = None
    if isinstance(shares, dict):
        others = _number(shares.get("others")) or 0.0
        others += _number(shares.get("stolen")) or 0.0
    busy = record.get("busy")
    return Part(
        first_trial=int(_number(record.get("first_trial")) or 0),
        trials=int(_number(record.get("trials")) or 0),
        others=others,
        others_max=_number(record.get("others_max")) or OTHERS_MAX,
        sitting=int(_number(record.get("sitting")) or 0),
        server_busy=_number(busy.get("server")) if isinstance(busy, dict) else None,
        start_late_ns=_number(record.get("start_late_ns")),
        alone=record.get("alone") is True,
        began=_number(record.get("began")),
    )


def _number(value: object) -> float | None:
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]

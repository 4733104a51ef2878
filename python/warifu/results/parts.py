# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The parts that a cell was measured in, as the measured half's manifest has them.

A part is one go of the lab's programs over one link; the parts of all cells are interleaved, so
that those of a cell lie minutes apart. Attempts at a part that were rejected before their results
were seen are in `rejections`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warifu.printable import clipped
from warifu.results.manifest import not_usable

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


#: Trials of a cell, and more than any part has.
MOST_TRIALS = 2**31 - 1
#: Thirty years in ns: no instant and no time is later.
_MOST = 1e18
#: A server of several threads takes more than one processor.
_MOST_BUSY = 64.0


@dataclass(frozen=True)
class Ticks:
    """Where a kernel's ticks lie on its monotonic clock."""

    length_ns: int
    #: Of some tick, and when that began.
    jiffies: int
    began_ns: int


@dataclass(frozen=True)
class Part:
    """Consecutive trials of one cell, measured in one go."""

    first_trial: int
    trials: int
    #: Shares of all processors' time that others took, programs and the hypervisor together, and
    #: that they may take; None where it was not recorded, as in no version that measures now.
    others: float | None
    others_max: float
    #: Which run of `warifu measure` it is of: a number that all parts of one share.
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
    #: What its record says of its packets (`warifu.results.packets`); None where none are kept.
    packets: Any = None
    #: The kernel's ticks; None where they were not recorded.
    ticks: Ticks | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether it says what other work took, and how busy a server was at which trials met."""
        return self.others is not None and (self.server_busy is not None or not self.is_paced)

    @property
    def is_paced(self) -> bool:
        """Whether how busy the server was says how often a trial met another."""
        return not self.alone and self.trials >= LEAST_PACED


def parts_of(manifest: Mapping[str, Any], case_id: str, path: Path) -> list[Part]:
    """The parts of a case in the order of their trials; none where the manifest, which is that of
    the folder ``path``, lists none. Raises ResultsDamaged for what is no part."""
    found = [
        _part(one, f"cells.{clipped(case_id)}.parts[{place}]", path)
        for place, one in enumerate(records_of(manifest, case_id))
    ]
    return sorted(found, key=lambda part: part.first_trial)


def records_of(manifest: Mapping[str, Any], case_id: str) -> list[dict[str, Any]]:
    """What a manifest says of each part of a case."""
    cell = (manifest.get("cells") or {}).get(case_id)
    records = cell.get("parts") if isinstance(cell, dict) else None
    return [one for one in records or [] if isinstance(one, dict)]


def rejected_parts(manifest: Mapping[str, Any], case_id: str) -> int:
    """How many attempts at parts of a case were rejected unseen; each was made again, so that a
    part may have several."""
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


def _part(record: dict[str, Any], key: str, path: Path) -> Part:
    def number(of: Mapping[str, Any], name: str, most: float) -> float | None:
        """A number from 0 on; None where there is none."""
        value = of.get(name)
        if value is None:
            return None
        if type(value) in (int, float) and 0 <= value <= most:
            return float(value)
        said = f"{key}.{name} is {clipped(str(value))}"
        raise not_usable(path, f"{said}: expected a number from 0 to {most:g}")

    def count(name: str) -> int:
        value = record.get(name)
        if type(value) is int and 0 <= value <= MOST_TRIALS:
            return value
        said = f"{key}.{name} is {clipped(str(value))}"
        raise not_usable(path, f"{said}: expected a whole number from 0 to {MOST_TRIALS:,}")

    def table(name: str) -> dict[str, Any] | None:
        value = record.get(name)
        if isinstance(value, dict | None):
            return value
        raise not_usable(path, f"{key}.{name} is {clipped(str(value))}: expected a table")

    def ticks() -> Ticks | None:
        of = table("ticks")
        if of is None:
            return None
        values = [of.get(name) for name in ("length_ns", "jiffies", "began_ns")]
        if all(type(one) is int and 0 <= one <= _MOST for one in values):
            return Ticks(*(int(one or 0) for one in values))
        raise not_usable(path, f"{key}.ticks is {clipped(str(of))}: expected whole numbers of each")

    shares, busy = table("processor_shares"), table("busy")
    others = None
    if shares is not None:
        each = [number(shares, name, 1.0) for name in ("others", "stolen")]
        known = [one for one in each if one is not None]
        others = sum(known) if len(known) == len(each) else None
    others_max = number(record, "others_max", OTHERS_MAX)
    return Part(
        first_trial=count("first_trial"),
        trials=count("trials"),
        others=others,
        others_max=OTHERS_MAX if others_max is None else others_max,
        sitting=int(number(record, "sitting", _MOST) or 0),
        server_busy=None if busy is None else number(busy, "server", _MOST_BUSY),
        start_late_ns=number(record, "start_late_ns", _MOST),
        alone=record.get("alone") is True,
        began=number(record, "began", _MOST),
        packets=record.get("packets"),
        ticks=ticks(),
    )

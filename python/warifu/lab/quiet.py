# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How much of the processors others take while a part runs."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warifu.lab import awake
from warifu.results import parts

OTHERS_MAX = parts.OTHERS_MAX
"""Share of all processors' time that other programs and the hypervisor may take during a run that
is to be judged. On two processors it is a tenth of one: a step in ten that meets the other work
takes up to twice its time."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Shares:
    """Shares of all processors' time."""

    others: float
    """Programs that are not the lab's."""
    stolen: float
    """The hypervisor."""

    @property
    def taken(self) -> float:
        """Both together."""
        return self.others + self.stolen

    def record(self) -> dict[str, float]:
        """For the manifest."""
        return {"others": round(self.others, 4), "stolen": round(self.stolen, 4)}


class Watch:
    """Watches from its making until `shares` is asked."""

    def __init__(self, pids: Sequence[int]) -> None:
        """`pids` are those of the lab's programs that outlive the watch, beside the one that keeps
        processors awake; ended children count by themselves."""
        self._pids = [*pids, *awake.pids()]
        self._all, self._own = _processors(), self._spent()

    def shares(self) -> Shares:
        """What others took since the beginning."""
        total, busy, stolen = (
            now - before for now, before in zip(_processors(), self._all, strict=True)
        )
        own = self._spent() - self._own
        if total <= 0:
            return Shares(0.0, 0.0)
        return Shares(max(0.0, busy - own) / total, stolen / total)

    def _spent(self) -> float:
        """Processor time of the lab, s."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = time.process_time() + children.ru_utime + children.ru_stime
        return own + sum(map(_of_process, self._pids))


def _processors() -> tuple[float, float, float]:
    """All processors since boot, s: in all, in programs (not in interrupts, which are nearly all
    the lab's packets), and taken by the hypervisor (proc_stat(5))."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    ticks = [int(word) for word in words]
    user, nice, system, *_, stolen = ticks
    return (
        sum(ticks) / _TICKS_A_SECOND,
        (user + nice + system) / _TICKS_A_SECOND,
        stolen / _TICKS_A_SECOND,
    )


def _of_process(pid: int) -> float:
    """Processor time of a process with all its threads, s (proc_pid_stat(5), fields 14, 15)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the kernel's ticks lie on its monotonic clock.

A timer of TCP runs at a tick, and whether it does before or after a packet comes is chance where
both are near. Who replays a connection must know the ticks as well as the fates of its packets.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from warifu.results.parts import Ticks

_TIMER_LIST = Path("/proc/timer_list")
"""The one place where the kernel tells its jiffies (kernel/time/timer_list.c); root's."""
_JIFFIES = re.compile(r"^jiffies: (\d+)$", re.MULTILINE)
_COARSE = 6
"""CLOCK_MONOTONIC_COARSE (clock_gettime(2)): the time of the tick at hand."""
_HZ = (100, 250, 300, 1_000)
"""CONFIG_HZ as kernels are built with."""
_APART_S = 0.05
"""Between the two ticks that are looked at: five at least."""
_TRIES = 20
_TOLERANCE = 0.01
"""Of a tick's length: each of the two is seen some microseconds late."""


def read() -> Ticks | None:
    """None where the kernel does not tell: its list of timers is root's, and not in every kernel.
    Takes a twentieth of a second."""
    first = _tick()
    time.sleep(_APART_S)
    second = _tick()
    return None if first is None or second is None else between(first, second)


def between(first: tuple[int, int], second: tuple[int, int]) -> Ticks | None:
    """The ticks by two of them, each its jiffies and when it began, ns; None where they are of no
    kernel: one of the two was read while it began."""
    jiffies, ns = (later - earlier for earlier, later in zip(first, second, strict=True))
    if jiffies <= 0:
        return None
    for hz in _HZ:
        length_ns = round(1e9 / hz)
        if abs(ns / jiffies - length_ns) <= _TOLERANCE * length_ns:
            return Ticks(length_ns, *second)
    return None


def _tick() -> tuple[int, int] | None:
    """The jiffies of a tick, and when it began, ns."""
    for _ in range(_TRIES):
        began_ns = time.clock_gettime_ns(_COARSE)
        try:
            jiffies = {int(one) for one in _JIFFIES.findall(_TIMER_LIST.read_text("ascii"))}
        except (OSError, ValueError):
            return None
        # Both of the same tick: none has begun meanwhile.
        if len(jiffies) == 1 and time.clock_gettime_ns(_COARSE) == began_ns:
            return jiffies.pop(), began_ns
    return None

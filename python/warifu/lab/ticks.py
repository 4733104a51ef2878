# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the kernel's ticks lie on its monotonic clock.

A timer of TCP runs at a tick, and whether it does before or after a packet comes is chance where
both are near. Who replays a connection must know the ticks as well as the fates of its packets.

They are read from the timer that makes them, not from CLOCK_MONOTONIC_COARSE: that stands where
the clock was brought forward last, up to a tick before the jiffies (kernel/time/timekeeping.c).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from warifu.results.parts import Ticks

_TIMER_LIST = Path("/proc/timer_list")
"""The one place where the kernel tells its jiffies (kernel/time/timer_list.c); root's."""
_NOW = re.compile(r"^now at (\d+) nsecs$", re.MULTILINE)
_JIFFIES = re.compile(r"^jiffies: (\d+)$", re.MULTILINE)
_EXPIRES = re.compile(
    r"<\w+>, tick_(?:nohz_handler|sched_timer), [^\n]*\n # expires at (\d+)-", re.ASCII
)
"""The timer of each processor's ticks, by its function of newer and of older kernels
(kernel/time/tick-sched.c). It runs at a tick, also where the processor idles and leaves some
out."""
_HZ = (100, 250, 300, 1_000)
"""CONFIG_HZ: what a kernel can be built with (kernel/Kconfig.hz)."""
_APART_S = 0.05
"""Between the two times that the kernel is asked: five ticks at least."""
_TRIES = 20
_EDGE = 0.1
"""Of a tick's length: nearer to where a tick begins, its jiffies may not be counted yet."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the kernel told of its ticks at once; times on CLOCK_MONOTONIC, ns."""

    now_ns: int
    """When it was asked."""
    until_ns: int
    """When it had answered."""
    jiffies: int
    expires_ns: tuple[int, ...]
    """When each processor's tick comes next, or one after it."""


def read() -> Ticks | None:
    """None where the kernel does not tell: its list of timers is root's, and not in every kernel.
    Takes a twentieth of a second, a second at most."""
    for _ in range(_TRIES):
        first = _look()
        if first is None:
            return None
        time.sleep(_APART_S)
        second = _look()
        if second is not None and (ticks := between(first, second)) is not None:
            return ticks
    return None


def between(first: Look, second: Look) -> Ticks | None:
    """The ticks by two looks; None where they fit no kernel, or a tick began while one was
    taken."""
    counted = second.jiffies - first.jiffies
    for hz in _HZ:
        # TICK_NSEC (include/vdso/jiffies.h).
        length_ns = (10**9 + hz // 2) // hz
        began, last = _began(first, length_ns), _began(second, length_ns)
        if began is None or last is None:
            continue
        if last - began == counted * length_ns > 0:
            return Ticks(length_ns, second.jiffies, last)
    return None


def _began(look: Look, length_ns: int) -> int | None:
    """When the tick at hand began, were ticks so long; None where that is not certain."""
    # Whole ticks before the expiry. With `skew_tick=1` each processor has ticks of its own.
    began = {look.now_ns - (look.now_ns - expires) % length_ns for expires in look.expires_ns}
    if len(began) != 1:
        return None
    edge = _EDGE * length_ns
    (at,) = began
    inside = at + edge <= look.now_ns <= look.until_ns <= at + length_ns - edge
    return at if inside else None


def _look() -> Look | None:
    """None where the kernel tells nothing, or not in this form."""
    try:
        text = _TIMER_LIST.read_text("ascii")
    except (OSError, ValueError):
        return None
    until_ns = time.monotonic_ns()
    now = _NOW.search(text)
    jiffies = {int(one) for one in _JIFFIES.findall(text)}
    expires = tuple(int(one) for one in _EXPIRES.findall(text))
    if now is None or not jiffies or not expires:
        return None
    # Told for each processor: where they differ, a tick began meanwhile, as `until_ns` says, too.
    return Look(int(now[1]), until_ns, max(jiffies), expires)

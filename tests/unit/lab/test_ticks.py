# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the kernel's ticks lie."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from warifu.lab import ticks
from warifu.lab.ticks import Look
from warifu.results.parts import Ticks

JIFFIES = 4_298_010_161
LENGTHS = [(100, 10_000_000), (250, 4_000_000), (300, 3_333_333), (1_000, 1_000_000)]


def looks(length_ns: int, counted: int = 12, into: float = 0.4) -> tuple[Look, Look]:
    """Two, so many ticks apart, and so far into a tick. The second finds a processor asleep."""
    began_ns = 3_117_890 * length_ns
    now_ns = began_ns + int(into * length_ns)
    first = Look(now_ns, now_ns + 60_000, JIFFIES, (began_ns + length_ns,) * 2)
    now_ns += counted * length_ns
    expires = began_ns + (counted + 1) * length_ns
    asleep = expires + 7 * length_ns
    return first, Look(now_ns, now_ns + 60_000, JIFFIES + counted, (expires, asleep))


@pytest.mark.parametrize(("hz", "length_ns"), LENGTHS)
def test_ticks_by_two_looks(hz: int, length_ns: int) -> None:
    counted = hz // 20
    first, second = looks(length_ns, counted)
    began_ns = (3_117_890 + counted) * length_ns
    assert ticks.between(first, second) == Ticks(length_ns, JIFFIES + counted, began_ns)


@pytest.mark.parametrize(
    "changed",
    [
        # A tick had just begun, or began before everything was told.
        {"now_ns": 12_471_608_100_000, "until_ns": 12_471_608_160_000},
        {"until_ns": 12_471_612_000_010},
        {"jiffies": JIFFIES + 11},
        {"jiffies": JIFFIES},
        # Processors have ticks of their own (`skew_tick=1`).
        {"expires_ns": (12_471_612_000_000, 12_471_613_000_000)},
        {"expires_ns": ()},
    ],
)
def test_where_looks_do_not_say_which_tick_it_was(changed: dict[str, int]) -> None:
    first, second = looks(4_000_000)
    assert ticks.between(first, second) is not None
    assert ticks.between(first, replace(second, **changed)) is None


LIST = """Timer List Version: v0.10
HRTIMER_MAX_CLOCK_BASES: 8
now at {now} nsecs

cpu: 0
 clock 0:
active timers:
 #0: <00000000845e31e2>, {function}, S:01
 # expires at {expires}-{expires} nsecs [in 666524 to 666524 nsecs]
 #1: <00000000dbee4a89>, timerfd_tmrproc, S:01
 # expires at {other}-{other} nsecs [in 1666524 to 1666524 nsecs]
  .last_jiffies   : 4297902483
jiffies: {jiffies}

cpu: 1
active timers:
 #0: <00000000f140b243>, hrtimer_wakeup, S:01
 # expires at {other}-{other} nsecs [in 1666524 to 1666524 nsecs]
jiffies: {jiffies}
"""


@pytest.mark.parametrize(
    "function", ["tick_nohz_handler", "tick_sched_timer", "tick_sched_timer, S:01, swapper/0/1"]
)
def test_the_kernels_list_of_timers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = tmp_path / "timer_list"
    monkeypatch.setattr(ticks, "_TIMER_LIST", path)
    first, second = looks(4_000_000)
    waiting = [first, second]

    def tell(at: Look) -> None:
        expires = at.expires_ns[0]
        text = LIST.format(
            now=at.now_ns, function=function, expires=expires, other=expires + 5, jiffies=at.jiffies
        )
        path.write_text(text)
        monkeypatch.setattr(time, "monotonic_ns", lambda: at.until_ns)

    tell(waiting.pop(0))
    monkeypatch.setattr(time, "sleep", lambda _: tell(waiting.pop(0)))
    assert ticks.read() == Ticks(4_000_000, JIFFIES + 12, 3_117_902 * 4_000_000)


@pytest.mark.parametrize("text", ["", "now at 7 nsecs\n", "jiffies: -3\n", "\xff"])
def test_a_kernel_that_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "timer_list").write_text(text, "latin-1")
    monkeypatch.setattr(ticks, "_TIMER_LIST", tmp_path / "timer_list")
    assert ticks.read() is None
    monkeypatch.setattr(ticks, "_TIMER_LIST", tmp_path / "absent")
    assert ticks.read() is None


def test_ticks_of_this_kernel() -> None:
    """times(2) counts in jiffies, a hundred a second: where it goes on a tick has just begun."""
    found = ticks.read()
    if found is None:
        # Nor to anybody: the list is root's, and containers hide it.
        assert not os.access(ticks._TIMER_LIST, os.R_OK) or not ticks._TIMER_LIST.read_text()
        return
    into = []
    for _ in range(30):
        before = os.times().elapsed
        while os.times().elapsed == before:
            pass
        into.append((time.monotonic_ns() - found.began_ns) % found.length_ns)
    # Some are seen later, where another program had the processor.
    assert sum(one < found.length_ns / 8 for one in into) >= 10, into
    later = ticks.read()
    assert later is not None
    counted = later.jiffies - found.jiffies
    assert later.began_ns - found.began_ns == counted * found.length_ns > 0

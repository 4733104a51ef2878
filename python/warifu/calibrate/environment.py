# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a calibration depends on: when any of it changes, the profile is stale."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import statistics
import time
from collections.abc import Callable

from warifu import tools
from warifu.calibrate import build
from warifu.lab import awake
from warifu.lab.errors import LabError
from warifu.lab.kernel import processor_name

#: A virtual machine's processor may be twice as fast at another hour. Predictions for links without
#: delay are then off by as much, so that a profile is kept within this ratio only.
PACE_BOUND = 1.15

#: How often the speed is measured until it is within that, and the pause in between, s: a
#: neighbour takes the processor for a moment, a machine that has changed stays so.
PACE_ATTEMPTS, PACE_PAUSE_S = 5, 1.0


def machine() -> dict[str, str]:
    """`kernel`, `openssl`, `nginx`, `processor`, `build` and, of a virtual machine, that the lab
    keeps its processors awake if it can (`idle`); missing tools are left out."""
    ask: dict[str, Callable[[], str]] = {
        "kernel": lambda: os.uname().release,
        "openssl": lambda: _number(tools.version("openssl")),
        "nginx": lambda: _number(tools.version("nginx")),
        "processor": processor_name,
        "build": build.profile,
    }
    found = {}
    for key, answer in ask.items():
        with contextlib.suppress(tools.ToolMissing):
            found[key] = answer()
    with contextlib.suppress(tools.ToolMissing, LabError):
        if awake.is_wanted():
            found["idle"] = "kept awake"
    return found


def differences(then: dict[str, str]) -> list[str]:
    """How this machine differs from what a record says."""
    now = machine()
    return [
        f"{key} was {then.get(key, 'unknown')}, is {now.get(key, 'unknown')}"
        for key in {**now, **then}
        if then.get(key) != now.get(key)
    ]


def pace_ns() -> int:
    """How long a fixed piece of work takes now, ns: the median of many, 0.1 s in all."""
    work = bytes(256 * 1024)
    times = []
    for _ in range(81):
        start = time.perf_counter_ns()
        hashlib.sha256(work).digest()
        times.append(time.perf_counter_ns() - start)
    return round(statistics.median(times))


def drift(then_ns: int | None) -> list[str]:
    """How far this machine's speed is from that of a calibration, where that is on record."""
    if not then_ns:
        return []
    ratio = 1.0
    for attempt in range(PACE_ATTEMPTS):
        if attempt:
            time.sleep(PACE_PAUSE_S)
        ratio = then_ns / pace_ns()
        if 1 / PACE_BOUND <= ratio <= PACE_BOUND:
            return []
    return [f"this machine runs at {ratio:.0%} of the speed that it was calibrated at"]


def _number(text: str) -> str:
    found = re.search(r"\d+\.\d+\.\d+\w*", text)
    return found.group(0) if found else text

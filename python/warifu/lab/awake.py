# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keeps the processors of a virtual machine from being given back to its host while the lab runs.

A virtual processor with nothing to do halts, and comes back when its host has time: on a busy host
one packet in fifty was more than half a millisecond late, and one in a thousand where something
ran meanwhile. That wait is the host's, of neither end of a connection. So something runs at the
lowest priority wherever nothing else does (`warifu-link awake`); on a machine of its own nothing is
done.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from warifu import tools
from warifu.lab.errors import LabError
from warifu.lab.processes import Process

#: Where the kernel's groups for the processor are, by the versions of its interface (cgroups(7)).
_GROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
_NAME = "warifu-awake-"
_SIGNS = (Path("/sys/hypervisor/type"), Path("/proc/device-tree/hypervisor"))
#: The program that runs now, and how many want it to.
_running: list[Process] = []
_wanted = 0


def is_virtual() -> bool:
    """Whether this is a virtual machine: its processor says so (x86 CPUID 1, ECX bit 31), or the
    kernel knows the hypervisor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return "hypervisor" in line.split()
    return any(sign.exists() for sign in _SIGNS)


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Until the end of the block, where this is a virtual machine; one within another adds nothing.
    ``folder`` is for the program's messages.

    Raises LabError if the program cannot do it.
    """
    global _wanted
    if _wanted == 0 and is_virtual():
        _remove_groups()
        process = _begun(folder)
        if _gives_way(process.pid):
            _running.append(process)
        else:
            process.stop()
    _wanted += 1
    try:
        yield
    finally:
        _wanted -= 1
        if _wanted == 0:
            while _running:
                _running.pop().stop()
            _remove_groups()


def used() -> list[int]:
    """The processors that the lab uses: of the client, the server and the link. Where there are
    two, the link runs where there is nothing to do."""
    return sorted(os.sched_getaffinity(0))[:3]


def pids() -> list[int]:
    """Of the program, whose time is the lab's own."""
    return [process.pid for process in _running]


def are_kept() -> bool:
    """Whether processors are kept awake now."""
    return bool(_running)


def check() -> None:
    """Raises LabError if the program has ended: what is measured then is measured otherwise."""
    for process in _running:
        if process.exit_code() is not None:
            raise LabError(f"{process.name} ended during the run: {process.log_tail()}")


def _gives_way(pid: int) -> bool:
    """Whether the program gives way at once to whatever else is to run.

    With a group of its own for each session (sched_autogroup_enabled, sched(7)) its priority counts
    within its session alone, and others wait for the end of its slice: up to 4 ms, in one
    connection of five. So it is put into a group that is idle as a whole (cpu.idle).
    """
    for groups in _GROUPS:
        group = groups / f"{_NAME}{pid}"
        try:
            group.mkdir()
            (group / "cpu.idle").write_text("1")
            (group / "cgroup.procs").write_text(str(pid))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        return True
    try:
        return _AUTOGROUP.read_text().strip() == "0"
    except OSError:
        # The kernel has no such groups.
        return True


def _remove_groups() -> None:
    """Those of programs that have ended, of this run or of one that was killed."""
    for groups in _GROUPS:
        for group in groups.glob(f"{_NAME}*"):
            # One that still has a program in it stays.
            with contextlib.suppress(OSError):
                group.rmdir()


def _begun(folder: Path) -> Process:
    process = Process(
        "warifu-link awake",
        [
            tools.find("taskset"),
            "-c",
            ",".join(map(str, used())),
            tools.find("warifu-link"),
            "awake",
        ],
        log=folder / "awake.log",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    # It says so once it does, or ends.
    if not process.stdout.readline():
        words = process.log_tail()
        process.stop()
        raise LabError(f"processors cannot be kept awake: {words}")
    return process

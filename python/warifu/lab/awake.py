# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keeps the processors of a virtual machine from being given back to its host while the lab runs.

A virtual processor with nothing to do halts, and comes back when its host has time: on a busy host
one packet in fifty was more than half a millisecond late, and one in a thousand where something
ran meanwhile. That wait is the host's, of neither end of a connection. So something runs at the
lowest priority wherever nothing else does: `warifu-link awake`, which leaves a machine of its own
as it is, and one where others would wait for it (crates/lab/link/src/awake.rs).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.lab.errors import LabError
from warifu.lab.processes import Process

#: How long the program has to answer, s.
_CHECK_SECONDS = 10.0
#: The program that runs now, and how many want it to.
_running: list[Process] = []
_wanted = 0


def is_wanted() -> bool:
    """Whether this is a virtual machine, whose processors the lab keeps awake if it can. Raises
    ToolMissing without `warifu-link`, and LabError if it does not answer."""
    command = [str(tools.find("warifu-link")), "awake", "--check"]
    try:
        found = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECK_SECONDS,
            check=True,
            text=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"{' '.join(command)}: {error}") from None
    return _said(found.stdout).get("virtual_machine") is True


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Until the end of the block, where this is a virtual machine; one within another adds nothing.
    ``folder`` is for the program's messages.

    Raises LabError if the program cannot do it.
    """
    global _wanted
    if _wanted == 0:
        process = _begun(folder)
        if process is not None:
            _running.append(process)
    _wanted += 1
    try:
        yield
    finally:
        _wanted -= 1
        if _wanted == 0:
            while _running:
                _running.pop().stop()


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


def _begun(folder: Path) -> Process | None:
    """The program once it keeps processors awake; None where it leaves them as they are."""
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
        # It removes its group of the scheduler.
        death_signal="TERM",
    )
    try:
        try:
            line = process.line(time.monotonic() + _CHECK_SECONDS)
        except LabError as error:
            raise LabError(f"processors cannot be kept awake: {error}") from None
        said = _said(line.decode(errors="replace"))
        if said.get("event") == "ready":
            return process
        if said.get("event") != "not_kept":
            raise LabError(f"processors cannot be kept awake: {process.log_tail()}")
    except BaseException:
        process.stop()
        raise
    process.stop()
    return None


def _said(line: str) -> dict[str, Any]:
    """What the program says; nothing if it is no JSON object."""
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}

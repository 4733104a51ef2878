# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The latency probes of `dds/probes`, two at a time, each in a network namespace."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import ROOT
from support.succeeding import must

FOLDER = ROOT / "dds" / "probes"
INTERFACE = "dds0"
"""Of each end, in its namespace."""
MARK = b"xxxxxxxxxxxxxxxx"
"""What the probes fill their messages with, behind the time."""

GAVE_UP = 124
"""As timeout(1) has it."""


@dataclass(frozen=True)
class Pair:
    """What two ends did."""

    code: int
    out: str
    """Of the first, then of the second."""
    err: str

    @property
    def reports(self) -> dict[str, dict[str, Any]]:
        """By role. A command that wraps a probe passes its output on to stderr."""
        lines = [*self.err.splitlines(), *self.out.splitlines()]
        found = [json.loads(line) for line in lines if line.startswith('{"probe":')]
        return {report["role"]: report for report in found}


def build(folder: Path, name: str) -> Path:
    """Builds a probe; returns its path."""
    if shutil.which("make") is None:
        raise FileNotFoundError("make: `make setup` installs it")
    path = folder / name
    must("make", "-s", "-C", FOLDER, f"BUILD={folder}", path)
    return path


def run(
    first: list[str | Path],
    second: list[str | Path],
    *,
    capture: Path | None = None,
    snaplen: int | None = None,
    environment: dict[str, str] | None = None,
    seconds: float = 90,
) -> Pair:
    """Runs two ends to their end; the second is started first. A capture has `snaplen` bytes of
    each packet, or else whole ones. Ends that take longer than `seconds` are stopped: their code is
    `GAVE_UP`."""
    flags: list[str | Path] = []
    if capture is not None:
        flags = ["--capture", capture]
        if snaplen is not None:
            flags += ["--snaplen", str(snaplen)]
    process = subprocess.Popen(
        list(map(str, [FOLDER / "pair", *flags, *first, "--with", *second])),
        env=os.environ | (environment or {}), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as reason:
        # All of them, and not by SIGKILL: the script then removes its namespaces.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate()
        if not isinstance(reason, subprocess.TimeoutExpired):
            raise
        return Pair(GAVE_UP, out, f"{err}\nnot at its end after {seconds} s")
    return Pair(process.returncode, out, err)

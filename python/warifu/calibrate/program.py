# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a program of ours that takes one JSON request and prints what it timed."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from warifu import tools
from warifu.calibrate.errors import CalibrateError
from warifu.files import temporary_folder
from warifu.lab import interruption
from warifu.lab.processes import Process

_POLL_SECONDS = 0.2


def output_of(
    name: str,
    subcommand: str,
    request: Mapping[str, object],
    heard: Callable[[bytes], None] = lambda text: None,
) -> str:
    """What `name subcommand` prints for a request; `heard` gets it meanwhile, piece by piece.

    Nothing of it is left behind, also after Ctrl-C (`interruption.deferred`).

    Raises ToolMissing without the program, and CalibrateError with its last words if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="warifu-calibrate-", dir=temporary_folder()) as folder:
        output = Path(folder) / "output"
        with output.open("wb") as file:
            process = Process(
                name,
                [tools.find(name), subcommand],
                log=Path(folder) / "log",
                stdin=subprocess.PIPE,
                stdout=file,
            )
        try:
            # A program that ended before it read says why in its log.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request).encode())
                process.stdin.close()
            code = None
            with output.open("rb") as pieces:
                while code is None:
                    interruption.check()
                    code = process.wait(_POLL_SECONDS)
                    heard(pieces.read())
        finally:
            process.stop()
        if code:
            raise CalibrateError(_why(name, code, process.log_tail(1)))
        return output.read_text()


def _why(name: str, code: int, said: str) -> str:
    """Its own last words; a program that a signal ended has none of its own."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return (
                f"{name} was killed by {signal.Signals(-code).name}{said and f' ({said})'}: run "
                "the same command again; if that happens again, suspect a library that it loads"
            )
    return said.removeprefix(f"{name}: ") or f"{name} failed with exit code {code}"

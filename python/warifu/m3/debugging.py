# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs under a debugger. The connection is the caller's: there is none in this room."""

from __future__ import annotations

from pathlib import Path

from warifu import _core
from warifu.m3.running import Options, Output, naming, read_program


def debugger(
    program: Path | str, options: Options | None = None, output: Output | None = None
) -> _core.M3Debugger:
    """An ELF file that waits for gdb at reset. Raises as `run` does."""
    path, options = Path(program), options or Options()
    with naming(path):
        return _core.M3Debugger(read_program(path), options.request(), output)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs for a Cortex-M3, compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.paths import ROOT

CRATE = ROOT / "crates" / "m3"
PROGRAMS = CRATE / "test-programs"
#: For a freestanding program for mps2-an385.
BARE = ("-O2", "-ffreestanding", "-nostartfiles", "-T", "mps2-an385.ld", "start.c")


def compiled(out: Path, *arguments: str) -> Path:
    """Compiles and links files of the test programs' folder, unless `out` is there; its path."""
    if not out.exists():
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-g", "-Wall", "-Werror"]
        command += ["-I", str(CRATE / "include"), *arguments, "-o", str(out)]
        subprocess.run(command, cwd=PROGRAMS, check=True, timeout=60)
    return out

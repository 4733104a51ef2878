# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fixtures that compile programs for a Cortex-M3."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT

CRATE = ROOT / "crates" / "m3"
PROGRAMS = CRATE / "test-programs"

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles and links a program once per session; returns its path."""
    folder = tmp_path_factory.mktemp("programs")

    def run(name: str, *arguments: str) -> Path:
        out = folder / name
        if not out.exists():
            command = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-g", "-Wall", "-Werror"]
            command += ["-I", str(CRATE / "include"), *arguments, "-o", str(out)]
            subprocess.run(command, cwd=PROGRAMS, check=True, timeout=60)
        return out

    return run


@pytest.fixture(scope="session")
def bare(compiled: Compile) -> Compile:
    """The same for a freestanding program for mps2-an385."""

    def run(name: str, source: str, *arguments: str) -> Path:
        flags = ("-O2", "-ffreestanding", "-nostartfiles", "-T", "mps2-an385.ld", "start.c")
        return compiled(name, *flags, source, *arguments)

    return run


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(elsewhere: None) -> None:
    """Commands write to the current folder, which is the test's own."""

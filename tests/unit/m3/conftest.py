# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fixtures that compile programs for a Cortex-M3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support import m3_programs

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles and links a program once per session; returns its path."""
    folder = tmp_path_factory.mktemp("programs")

    def run(name: str, *arguments: str) -> Path:
        return m3_programs.compiled(folder / name, *arguments)

    return run


@pytest.fixture(scope="session")
def bare(compiled: Compile) -> Compile:
    """The same for a freestanding program for mps2-an385."""

    def run(name: str, source: str, *arguments: str) -> Path:
        return compiled(name, *m3_programs.BARE, source, *arguments)

    return run


@pytest.fixture
def code(bare: Compile) -> Path:
    """Prints a line and exits with 9."""
    return bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")


@pytest.fixture
def endless(bare: Compile) -> Path:
    """Runs until it is ended."""
    return bare("ENDLESS.elf", "command-line/ends.c", "-DEND=ENDLESS")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(elsewhere: None) -> None:
    """Commands write to the current folder, which is the test's own."""

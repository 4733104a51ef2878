# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs for a Cortex-M3, compiled when a test asks for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warifu import cli

CRATE = Path(__file__).resolve().parents[2] / "crates" / "m3"
PROGRAMS = CRATE / "test-programs"

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles and links, each program once; its path."""
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
    """The same for a program without a library, for mps2-an385."""

    def run(name: str, source: str, *arguments: str) -> Path:
        flags = ("-O2", "-ffreestanding", "-nostartfiles", "-T", "mps2-an385.ld", "start.c")
        return compiled(name, *flags, source, *arguments)

    return run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a folder of its own, and the shipped profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)
    yield


@pytest.fixture
def warifu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process; its exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warifu", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl built as its users build it, once per session."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu.reproduce import munacl_checks as checks

MUNACL = ROOT / "firmware" / "munacl"
PROFILES = ("fast", "small")

Build = Callable[..., Path]
Answers = Callable[[list[str]], list[str]]


def make(folder: Path, profile: str, name: str, *settings: str) -> Path:
    """Builds a file of a profile, or of another folder that make builds in; returns its path."""
    target = folder / profile / name
    command = ["make", "--silent", "-C", str(MUNACL), f"BUILD={folder}"]
    if profile in PROFILES:
        command.append(f"PROFILE={profile}")
    done = subprocess.run(
        [*command, *settings, str(target)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """As `make`, in one folder."""
    folder = tmp_path_factory.mktemp("munacl")

    def run(profile: str, name: str, *settings: str) -> Path:
        return make(folder, profile, name, *settings)

    return run


@pytest.fixture(scope="session")
def build_host(build: Build) -> Build:
    """Builds a program of a profile's C for this host; returns its path."""

    def run(profile: str, name: str) -> Path:
        return build(f"host/{profile}", name, f"PROFILE={profile}")

    return run


def listing(library: Path) -> str:
    """The library's disassembly with its symbols, as `checks.instructions` reads it."""
    command = ["arm-none-eabi-objdump", "-d", "-r", "-t", str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session", params=PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def answers(build: Build, profile: str) -> Answers:
    """Results of calls, by the program on the simulated chip."""
    program = build(profile, "answers.elf")

    def run(calls: list[str]) -> list[str]:
        return checks.answers(program, calls)

    return run

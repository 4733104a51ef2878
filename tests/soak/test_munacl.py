# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl with more secrets and iterations than `make test` has time for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT
from warifu import m3

MUNACL = ROOT / "firmware" / "munacl"


def build(folder: Path, profile: str, name: str, *settings: str) -> Path:
    target = folder / profile / name
    command = ["make", "--silent", "-C", str(MUNACL), f"BUILD={folder}", f"PROFILE={profile}"]
    subprocess.run([*command, *settings, str(target)], check=True, timeout=300)
    return target


@pytest.mark.parametrize("profile", ["fast", "small"])
def test_cycles_are_equal_for_a_thousand_secrets(tmp_path: Path, profile: str) -> None:
    program = build(tmp_path, profile, "cycles.elf", "ROUNDS=1000")
    run = m3.run(str(program), m3.Options(max_instructions=10**12))
    assert (run.code, run.output) == (0, b"34 calls, 1000 rounds\n")


@pytest.mark.parametrize("profile", ["fast", "small"])
def test_assembly_equals_its_twins_on_ten_thousand_inputs(tmp_path: Path, profile: str) -> None:
    program = build(tmp_path, profile, "twins.elf", "ROUNDS=10000")
    run = m3.run(str(program), m3.Options(max_instructions=10**12))
    assert (run.code, run.output) == (0, b"twins: equal\n")


@needs.program("clang")
@pytest.mark.parametrize("profile", ["fast", "small"])
def test_fuzzing_open_and_verify_finds_no_fault(tmp_path: Path, profile: str) -> None:
    program = build(tmp_path, f"host/{profile}", "fuzz", f"PROFILE={profile}")
    subprocess.run([program, "-max_total_time=60", "-max_len=300"], check=True, timeout=300)

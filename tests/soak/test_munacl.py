# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl with more secrets and iterations than `make test` has time for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import munacl_seeds, needs
from support.munacl_builds import make
from warifu import m3
from warifu.reproduce import munacl_checks as checks

#: Of fuzzing each profile.
SECONDS = 120


@pytest.mark.parametrize("profile", ["fast", "small"])
def test_cycles_are_equal_for_a_thousand_secrets(tmp_path: Path, profile: str) -> None:
    program = make(tmp_path, profile, "cycles.elf", "ROUNDS=1000")
    run = m3.run(str(program), m3.Options(max_instructions=10**12))
    assert (run.code, run.output) == (0, b"34 calls, 1000 rounds\n")


@pytest.mark.parametrize("profile", ["fast", "small"])
def test_assembly_equals_its_twins_on_ten_thousand_inputs(tmp_path: Path, profile: str) -> None:
    program = make(tmp_path, profile, "twins.elf", "ROUNDS=10000")
    found = checks.twins(program, m3.Options(max_instructions=10**12))
    assert found == checks.Check({"fast": "8 routines", "small": "3 routines"}[profile], ())


@needs.program("clang")
@pytest.mark.parametrize("profile", ["fast", "small"])
def test_fuzzing_open_and_verify_finds_no_fault(tmp_path: Path, profile: str) -> None:
    program = make(tmp_path, f"host/{profile}", "fuzz", f"PROFILE={profile}")
    found, seeds = tmp_path / "found", tmp_path / "seeds"
    found.mkdir()
    seeds.mkdir()
    munacl_seeds.write(seeds)
    options = [f"-max_total_time={SECONDS}", "-max_len=600", f"-artifact_prefix={found}/"]
    subprocess.run([program, *options, found, seeds], check=True, timeout=SECONDS + 300)

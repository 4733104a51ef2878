# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What munacl's time and addresses depend on: taint, cycles, instructions, twins, and stack."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from warifu import m3

Build = Callable[..., Path]
VARIABLE_TIME = {"umull", "umlal", "smull", "smlal", "udiv", "sdiv"}
CALLS = b"28 calls\n"


def test_secrets_reach_no_branch_address_or_long_multiplication(build: Build, profile: str) -> None:
    found = m3.taint(str(build(profile, "taint.elf")))
    assert found.run.output == CALLS
    assert [f"{leak.kind} in {leak.at.function}" for leak in found.leaks] == []


def test_calls_leave_no_secret_in_stack_and_registers(build: Build, profile: str) -> None:
    found = m3.taint(str(build(profile, "residue.elf")))
    assert found.run.output == CALLS
    assert [leak.at.function for leak in found.leaks] == []


def test_residue_of_a_call_that_forgets_nothing_is_found(build: Build, profile: str) -> None:
    # munacl_forget() that returns at once: most calls have something to forget.
    found = m3.taint(str(build(profile, "residue-kept.elf")))
    assert found.run.output == CALLS
    assert len({leak.at.function for leak in found.leaks}) >= 15


def test_cycles_are_equal_for_random_secrets(build: Build, profile: str) -> None:
    run = m3.run(str(build(profile, "cycles.elf", "ROUNDS=32")))
    assert (run.code, run.output) == (0, CALLS)


def test_assembly_equals_its_portable_twins(build: Build, profile: str) -> None:
    run = m3.run(str(build(profile, "twins.elf")))
    assert (run.code, run.output) == (0, b"twins: equal\n")


def instructions(objdump: list[str]) -> set[str]:
    text = subprocess.run(objdump, check=True, capture_output=True, text=True).stdout
    lines = [line.split("\t") for line in text.splitlines()]
    return {re.sub(r"\.[nw]$", "", line[2]) for line in lines if len(line) > 2}


def test_no_instruction_takes_time_by_its_operands(build: Build, profile: str) -> None:
    library = build(profile, f"libmunacl-{profile}.a")
    used = instructions(["arm-none-eabi-objdump", "-d", str(library)])
    assert {"mul", "adcs", "ldr"} <= used
    assert not used & VARIABLE_TIME


def test_stack_and_size_are_within_what_is_promised(build: Build, profile: str) -> None:
    program = build(profile, "bench.elf")
    run = m3.run(str(program))
    lines = run.output.decode().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert run.code == 0 and len(rows) == 29
    stacks = {name: int(stack) for name, _, _, stack in rows}
    assert stacks["crypto_scalarmult_curve25519"] <= 1024
    assert max(stacks.values()) <= 2048
    sections = subprocess.run(
        ["arm-none-eabi-size", "-A", str(program)], check=True, capture_output=True, text=True
    ).stdout
    size = int(
        next(line.split()[1] for line in sections.splitlines() if line.startswith(".munacl"))
    )
    assert size <= {"fast": 13 * 1024, "small": 8 * 1024}[profile]

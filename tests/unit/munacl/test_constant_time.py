# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What munacl's time and addresses depend on: taint, cycles, instructions, twins, and stack."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.munacl_builds import listing
from warifu import m3
from warifu.reproduce import munacl_checks as checks

Build = Callable[..., Path]
CALLS = "34 calls"


def test_secrets_reach_no_branch_address_or_long_multiplication(build: Build, profile: str) -> None:
    assert checks.taint(build(profile, "taint.elf")) == checks.Check(CALLS, ())


def test_calls_leave_no_secret_in_stack_and_registers(build: Build, profile: str) -> None:
    assert checks.residue(build(profile, "residue.elf")) == checks.Check(CALLS, ())


def test_residue_of_a_call_that_forgets_nothing_is_found(build: Build, profile: str) -> None:
    # munacl_forget() that returns at once: most calls have something to forget.
    found = checks.residue(build(profile, "residue-kept.elf"))
    assert found.cases == CALLS
    assert len(set(found.problems)) >= 15


def test_cycles_are_equal_for_random_secrets(build: Build, profile: str) -> None:
    found = checks.equal_cycles(build(profile, "cycles.elf", "ROUNDS=32"))
    assert found == checks.Check(f"{CALLS}, 32 rounds", ())


def test_interrupts_that_overwrite_the_stack_below_change_nothing(
    build: Build, profile: str
) -> None:
    run = m3.run(str(build(profile, "interrupts.elf")))
    assert (run.code, run.output) == (0, b"interrupts: equal\n")


def assembly(library: Path) -> set[str]:
    """The routines that C calls of the library's members that are assembly."""
    found, member = set(), ""
    for line in listing(library).splitlines():
        if line.endswith("file format elf32-littlearm"):
            member = line.partition(":")[0]
        fields = line.split()
        is_called = " g     F " in line and ".hidden" not in fields
        if member.endswith("armv7m.o") and is_called:
            found.add(fields[-1])
    return found


def test_every_routine_in_assembly_equals_its_portable_twin(build: Build, profile: str) -> None:
    names = assembly(build(profile, f"libmunacl-{profile}.a"))
    program = build(profile, "twins.elf")
    assert checks.twins(program) == checks.Check(f"{len(names)} routines", ())
    assert len(names) == {"fast": 8, "small": 3}[profile]
    *compared, last = m3.run(str(program)).output.decode().splitlines()
    assert (set(compared), last) == (names, "twins: equal")


def test_no_instruction_takes_time_by_its_operands(build: Build, profile: str) -> None:
    found = checks.instructions(listing(build(profile, f"libmunacl-{profile}.a")))
    assert found.problems == ()
    assert int(found.cases.split()[0].replace(",", "")) > 2000


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("cmp r0, #0\n it ne\n umullne r2, r3, r0, r1", "umullne"),
        ("cmp r0, #0\n ite eq\n udiveq r0, r0, r1\n addne r0, r1", "udiveq"),
        ("sdiv r0, r0, r1", "sdiv"),
        ("smlal r2, r3, r0, r1", "smlal"),
        ("bl __aeabi_lmul", "calls __aeabi_lmul"),
        ("bl __aeabi_uldivmod", "calls __aeabi_uldivmod"),
        ("bl __aeabi_idiv", "calls __aeabi_idiv"),
        ("bl __udivdi3", "calls __udivdi3"),
        ("mul r0, r0, r1\n bl multiply_divide", None),
    ],
)
def test_gate_finds_conditional_instructions_and_the_compilers_helpers(
    tmp_path: Path, code: str, problem: str | None
) -> None:
    source = f".syntax unified\n.thumb\n.global f\n.thumb_func\nf: {code}\n bx lr\n"
    (tmp_path / "f.s").write_text(source)
    assemble = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-c", str(tmp_path / "f.s")]
    subprocess.run([*assemble, "-o", str(tmp_path / "f.o")], check=True)
    found = checks.instructions(listing(tmp_path / "f.o"))
    assert found.problems == ((problem,) if problem else ())


def test_gate_that_reads_nothing_does_not_hold() -> None:
    assert checks.instructions("").problems == ("no instruction was found",)


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

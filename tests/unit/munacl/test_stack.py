# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl's stack and the wait that it adds to an interrupt, by call: the table of
docs/reference/munacl.md."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import munacl_latency
from support.munacl_builds import listing
from support.paths import ROOT
from warifu import m3

Build = Callable[..., Path]
MUNACL = ROOT / "firmware" / "munacl"
PAGE = (ROOT / "docs" / "reference" / "munacl.md").read_text()


def stacks(program: Path) -> dict[str, int]:
    run = m3.run(str(program))
    assert run.code == 0, run.output
    rows = [line.split() for line in run.output.decode().splitlines() if line[0] != "#"]
    return {name: int(stack) for name, _, _, stack in rows}


@pytest.fixture(scope="module")
def by_profile(build: Build) -> dict[str, dict[str, int]]:
    return {profile: stacks(build(profile, "stack.elf")) for profile in ("fast", "small")}


def test_every_public_function_is_in_the_table(by_profile: dict[str, dict[str, int]]) -> None:
    declared: set[str] = set()
    for header in ("munacl.h", "munacl_random.h"):
        text = (MUNACL / "include" / header).read_text()
        declared |= set(re.findall(r"^(?:int|size_t|void) (\w+)\(", text, re.MULTILINE))
    # The hook is the caller's.
    assert set(by_profile["fast"]) == declared - {"munacl_random_failed"}
    assert set(by_profile["small"]) == set(by_profile["fast"])


def test_table_of_the_page_is_what_is_measured(
    build: Build, by_profile: dict[str, dict[str, int]]
) -> None:
    listings = {
        profile: listing(build(profile, f"libmunacl-{profile}.a")) for profile in by_profile
    }
    expected = "\n".join(munacl_latency.table(by_profile, listings))
    assert expected in PAGE, f"docs/reference/munacl.md has another table than this:\n{expected}"


def test_most_stack_of_the_page_is_the_benchmarks(
    build: Build, by_profile: dict[str, dict[str, int]]
) -> None:
    (text,) = re.findall(
        r"at\s+most ([\d,]+) B for X25519,\s+([\d,]+) for boxes,\s+([\d,]+) for Ed25519\s+and "
        r"([\d,]+) for the random\s+generator",
        PAGE,
    )
    said = [int(number.replace(",", "")) for number in text]
    kinds = ("scalarmult", "box_", "sign_", "random")
    most = [
        max(size for every in by_profile.values() for name, size in every.items() if kind in name)
        for kind in kinds
    ]
    assert said == most
    # The benchmark of the paper's Table 3 has random numbers of its own, and other lengths.
    bench = {profile: stacks(build(profile, "bench.elf")) for profile in by_profile}
    for profile, rows in bench.items():
        for name, size in rows.items():
            assert abs(size - by_profile[profile][name]) <= 16, name


def test_no_function_masks_interrupts_or_runs_a_longer_instruction(
    build: Build, profile: str
) -> None:
    assert munacl_latency.masking(listing(build(profile, f"libmunacl-{profile}.a"))) == []
    # With what is linked of libc; BKPT is semihosting's.
    command = ["arm-none-eabi-objdump", "-d", str(build(profile, "stack.elf"))]
    linked = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert set(munacl_latency.masking(linked)) == {"bkpt"}
    every = munacl_latency.instructions(linked)
    assert len(every) > 2000
    assert max(munacl_latency.cycles(*one) for one in every) == 5


@pytest.mark.parametrize(
    ("code", "cycles", "masks"),
    [
        ("mul r0, r0, r1", 1, []),
        ("ldmia r0!, {r2-r9}", 2, []),
        ("pop {r4, pc}", 5, []),
        ("ldrd r0, r1, [r2]", 3, []),
        ("ldr pc, [sp], #4", 5, []),
        ("umlal r0, r1, r2, r3", 7, []),
        ("cpsid i", 1, ["cpsid"]),
        ("msr primask, r0", 1, ["msr"]),
        ("bl g", 4, []),
    ],
)
def test_longest_instruction_of_a_call_is_found_in_what_it_calls(
    tmp_path: Path, code: str, cycles: int, masks: list[str]
) -> None:
    # f calls the function with the code, which lies in another section.
    source = ".syntax unified\n.thumb\n"
    for name, body in (("f", "b inner"), ("inner", f"{code}\n nop"), ("g", "nop")):
        source += f'.section .text.{name}, "ax"\n.global {name}\n.thumb_func\n{name}: {body}\n'
    (tmp_path / "f.s").write_text(source)
    assemble = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-c", str(tmp_path / "f.s")]
    subprocess.run([*assemble, "-o", str(tmp_path / "f.o")], check=True)
    archive = ["arm-none-eabi-ar", "rcs", str(tmp_path / "f.a"), str(tmp_path / "f.o")]
    subprocess.run(archive, check=True)
    text = listing(tmp_path / "f.a")
    assert munacl_latency.longest(text)["inner"][0] == cycles
    assert munacl_latency.longest(text)["f"][0] == max(4, cycles)
    assert munacl_latency.masking(text) == masks

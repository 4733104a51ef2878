# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl at every level of optimisation: what compilers spill is wiped, and no secret is branched
on."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support import needs
from support.munacl_builds import listing
from support.paths import ROOT
from warifu.reproduce import munacl_checks as checks

MUNACL = ROOT / "firmware" / "munacl"
COMPILERS = {"gcc": "arm-none-eabi-gcc", "clang": "clang"}
LEVELS = [("gcc", level) for level in ("-Os", "-Oz", "-Og", "-O1", "-O2", "-O3")]
LEVELS += [("clang", level) for level in ("-Os", "-Oz", "-O1", "-O2", "-O3")]
#: What makes frames larger: for debuggers, for stacks that are watched, for chips with traps.
FRAMES = ("-fno-omit-frame-pointer", "-fstack-protector-all", "-mno-unaligned-access")
LEVELS += [("gcc", f"-Os {option}") for option in FRAMES]
#: What a system has for -fstack-protector.
CANARY = """
unsigned __stack_chk_guard = 0x5a5aa5a5;
void __stack_chk_fail(void) { for (;;) {} }
"""
LINK = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostartfiles", "-Wl,--gc-sections"]
#: Where compilers put functions into others most: all others held when they were tried once.
LINK_TIME = [("gcc", "-Os"), ("gcc", "-O2"), ("gcc", "-O3"), ("clang", "-Os"), ("clang", "-O3")]
MAP = ["-L", str(MUNACL / "boards"), "-T", str(MUNACL / "boards" / "generic.ld")]
LINK += MAP
#: What declassifies its verdicts, for the simulator to know.
VERDICTS = ("taint/src/secretbox/secretbox.o", "taint/src/random/random.o")


def make(
    profile: str,
    compiler: str,
    level: str,
    folder: Path,
    names: list[str],
    more: Sequence[str] = (),
) -> list[str]:
    targets = [str(folder / profile / name) for name in names]
    settings = [
        f"CC={COMPILERS[compiler]}",
        f"OPTIMISE_{profile}={level}",
        f"BUILD={folder}",
        *more,
    ]
    command = ["make", "--silent", "-C", str(MUNACL), f"PROFILE={profile}", *settings, *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return targets


@needs.program("clang")
@pytest.mark.parametrize(("compiler", "level"), LEVELS)
def test_library_of_each_level_keeps_secrets(
    profile: str, compiler: str, level: str, tmp_path: Path
) -> None:
    names = [*VERDICTS, "boards/start.o", f"libmunacl-{profile}.a"]
    parts = make(profile, compiler, level, tmp_path, names)
    assert checks.instructions(listing(Path(parts[-1]))).problems == ()
    for what, check in (("taint", checks.taint), ("residue", checks.residue)):
        (secrets,) = make(profile, compiler, level, tmp_path, [f"{what}/tests/secrets.o"])
        out, canary = tmp_path / f"{what}.elf", tmp_path / "canary.c"
        canary.write_text(CANARY)
        subprocess.run([*LINK, secrets, *parts, str(canary), "-o", str(out)], check=True)
        assert check(out) == checks.Check("34 calls", ()), what


def libraries() -> list[str]:
    """libc's and libgcc's files for the core, which clang's linker does not know."""
    ask = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"]
    options = ("-print-file-name=libc.a", "-print-libgcc-file-name")
    commands = ([*ask, option] for option in options)
    return [
        subprocess.run(one, check=True, capture_output=True, text=True).stdout.strip()
        for one in commands
    ]


@needs.program("ld.lld")
@needs.program("llvm-ar")
@pytest.mark.parametrize(("compiler", "level"), LINK_TIME)
def test_library_of_link_time_optimisation_keeps_secrets(
    profile: str, compiler: str, level: str, tmp_path: Path
) -> None:
    # The compiler optimises the test's program with the library.
    level += " -flto"
    names = [*VERDICTS, "boards/start.o", f"libmunacl-{profile}.a"]
    archiver = {"gcc": "arm-none-eabi-gcc-ar", "clang": "llvm-ar"}[compiler]
    settings = [f"AR={archiver}"]
    parts = make(profile, compiler, level, tmp_path, names, settings)
    for what, check in (("taint", checks.taint), ("residue", checks.residue)):
        program = [f"{what}/tests/secrets.o"]
        (secrets,) = make(profile, compiler, level, tmp_path, program, settings)
        out = tmp_path / f"{what}.elf"
        link = [*LINK, "-flto"] if compiler == "gcc" else ["ld.lld", "--gc-sections", *MAP]
        after = [] if compiler == "gcc" else libraries()
        subprocess.run([*link, secrets, *parts, *after, "-o", str(out)], check=True)
        assert check(out) == checks.Check("34 calls", ()), what
        assert checks.instructions(listing(out)).problems == ()


def test_library_without_optimisation_is_refused(profile: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="-O0 leaves secrets in memory"):
        make(profile, "gcc", "-O0", tmp_path, ["src/secretbox/secretbox.o"])

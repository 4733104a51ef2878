# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Chips: the built-in ones, those of files, their peripherals, and what `warifu m3 init` writes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import WarifuError, m3
from warifu.m3 import starting

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]

PROGRAMS = ROOT / "crates" / "m3" / "test-programs"
CHIPS = ROOT / "crates" / "m3" / "chips"

FAMILIES = {"stm32f1": "STM32F1", "stm32l1": "STM32L1", "stm32f2": "STM32F2", "lpc": "LPC1768",
            "sam3x": "SAM3X"}  # fmt: skip

BOARD = """\
name = "board"
source = "its schematic"
priority-bits = 3
vector-table = 0x00010000

[[memory]]
name = "boot.rom"
address = 0x00010000
bytes = "64 KiB"
writable = false
lines = { bytes = 8, code = 1, data = 0, prefetch = false }

[[memory]]
name = "work-ram"
address = 0x00030000
bytes = "16 KiB"
writable = true
"""


def build(folder: Path, chip: str, *sources: str) -> Path:
    """Builds a program with the linker script and start-up code of `warifu m3 init`, from sources
    and flags."""
    starting.init(folder, chip)
    script = next(folder.glob("*.ld"))
    flags = ["-mcpu=cortex-m3", "-mthumb", "-O2", "-g", "-Wall", "-Werror", "-nostartfiles"]
    command = ["arm-none-eabi-gcc", *flags, "--specs=rdimon.specs", "-T", script.name, "start.c"]
    subprocess.run([*command, *sources, "-o", "program.elf"], cwd=folder, check=True, timeout=60)
    return folder / "program.elf"


@pytest.mark.parametrize("chip", m3.CHIPS)
def test_folder_of_init_builds_and_runs(warifu: Run, tmp_path: Path, chip: str) -> None:
    folder = tmp_path / "hello"
    code, out, err = warifu("m3", "init", folder, "--chip", chip)
    assert (code, out) == (0, "")
    assert sorted(line.split("/")[-1] for line in err.splitlines()) == sorted(
        [f"{chip}.ld", "start.c", "main.c", "Makefile"]
    )
    subprocess.run(["make", "-s", "-C", folder, "program.elf"], check=True, timeout=60)
    run = m3.run(folder / "program.elf", m3.Options(chip=chip))
    assert (run.stop, run.code, run.output) == ("exit", 0, b"hello, 42\n")
    script = (folder / f"{chip}.ld").read_text()
    assert script.startswith(f"/* {chip}: {m3.chip(chip).source} */\n")
    # Variables are in RAM, so that wait states of the flash change nothing but cycles.
    memory = m3.chip(chip).memories[0].name
    slow = m3.run(folder / "program.elf", m3.Options(chip=chip, wait_states={memory: 3}))
    assert (slow.output, slow.kind) == (run.output, "assumed")
    assert slow.instructions == run.instructions and slow.cycles.low > run.cycles.low


def test_makefile_of_init_runs_the_program(tmp_path: Path) -> None:
    starting.init(tmp_path / "hello", "lpc1768")
    stand_in = tmp_path / "warifu"
    stand_in.write_text('#!/bin/sh\necho "$@"\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    command = ["make", "-s", "-C", str(tmp_path / "hello"), "run"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "m3 run program.elf --chip lpc1768\n"


def test_init_replaces_nothing(warifu: Run, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 7; }\n")
    code, _, err = warifu("m3", "init", tmp_path)
    assert (code, err) == (2, f"warifu: {tmp_path}/main.c: is there already: name another folder\n")
    assert [path.name for path in tmp_path.iterdir()] == ["main.c"]


@pytest.mark.parametrize("chip", m3.CHIPS)
def test_memory_that_start_up_leaves_alone_lies_below_the_heap(tmp_path: Path, chip: str) -> None:
    elf = build(tmp_path / "noinit", chip, str(PROGRAMS / "chips/noinit.c"))
    run = m3.run(elf, m3.Options(chip=chip))
    assert (run.stop, run.code) == ("exit", 0), run.message
    names = subprocess.run(
        ["arm-none-eabi-nm", elf], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    at = {line.split()[2]: int(line.split()[0], 16) for line in names.splitlines()}
    if chip == "lpc1768":
        # Its boot ROM writes up to 0x100001ff, and the last 32 bytes when it programs flash.
        assert at["kept"] >= 0x10000200 and at["__StackTop"] == 0x10008000 - 32
    else:
        assert at["__bss_end__"] <= at["kept"] < at["__bss_end__"] + 16


@pytest.mark.parametrize("chip", [chip for chip in m3.CHIPS if chip != "mps2-an385"])
def test_clock_set_up_runs_through(tmp_path: Path, chip: str) -> None:
    family = next(name for start, name in FAMILIES.items() if chip.startswith(start))
    elf = build(tmp_path / "clock", chip, str(PROGRAMS / "chips/clock.c"), f"-D{family}")
    run = m3.run(elf, m3.Options(chip=chip))
    assert (run.stop, run.code) == ("exit", 0), run.message


# Size register and unique identifier, with ST's header or OpenOCD's source as in the chips' files.
SIGNATURES = {
    "stm32f103": (0x1FFFF7E0, 0x1FFFF7E8, 128),
    "stm32f103xc": (0x1FFFF7E0, 0x1FFFF7E8, 256),
    "stm32f103xd": (0x1FFFF7E0, 0x1FFFF7E8, 384),
    "stm32f103xe": (0x1FFFF7E0, 0x1FFFF7E8, 512),
    "stm32f103xg": (0x1FFFF7E0, 0x1FFFF7E8, 1024),
    "stm32l152xc": (0x1FF800CC, 0x1FF800D0, 256),
    "stm32l152xe": (0x1FF800CC, 0x1FF800D0, 512),
    "stm32f205xg": (0x1FFF7A22, 0x1FFF7A10, 1024),
}


@pytest.mark.parametrize("chip", [chip for chip in m3.CHIPS if chip.startswith("stm32")])
def test_signature_gives_the_size_of_the_flash(tmp_path: Path, chip: str) -> None:
    size, identifier, kib = SIGNATURES[chip]
    flags = (f"-DSIZE={size:#x}", f"-DIDENTIFIER={identifier:#x}", f"-DKIB={kib}")
    elf = build(tmp_path / "signature", chip, str(PROGRAMS / "chips/signature.c"), *flags)
    run = m3.run(elf, m3.Options(chip=chip))
    assert (run.stop, run.code) == ("exit", 0), run.message
    flash = next(one for one in m3.chip(chip).memories if one.name == "flash")
    assert flash.bytes == kib << 10


def test_memories_of_mps2_are_at_their_mirrors(bare: Compile) -> None:
    run = m3.run(bare("mirrors.elf", "chips/mirrors.c"))
    assert (run.stop, run.code) == ("exit", 0), run.message


def test_other_peripherals_fault(tmp_path: Path) -> None:
    elf = build(tmp_path / "clock", "stm32f103", str(PROGRAMS / "chips/clock.c"), "-DSTM32F2")
    run = m3.run(elf, m3.Options(chip="stm32f103"))
    assert (run.stop, "0x40023c00" in run.message) == ("fault", True), run.message


def test_output_of_uart_is_console(warifu: Run, bare: Compile) -> None:
    elf = bare("uart.elf", "chips/uart.c")
    code, out, _ = warifu("m3", "run", elf)
    assert (code, out) == (0, "from the UART\n")
    assert m3.run(elf).output == b"from the UART\n"


def test_program_at_the_alias_runs(tmp_path: Path) -> None:
    """An STM32 has its flash at 0 as well, and programs may be linked there."""
    text = (CHIPS / "stm32f103.toml").read_text()
    folder = tmp_path / "boot"
    starting.init(folder, "stm32f103")
    script = folder / "stm32f103.ld"
    script.write_text(script.read_text().replace("ORIGIN = 0x08000000", "ORIGIN = 0x00000000"))
    subprocess.run(["make", "-s", "-C", folder, "program.elf"], check=True, timeout=60)
    elf = folder / "program.elf"
    run = m3.run(elf, m3.Options(chip="stm32f103"))
    assert (run.code, run.output) == (0, b"hello, 42\n"), run.message
    flash = next(one for one in m3.size(elf, "stm32f103").regions if one.name == "flash")
    assert flash.used > 1000
    without = tmp_path / "without.toml"
    before, _, after = text.partition("[[alias]]")
    without.write_text(before + after[after.index("[[peripheral]]") :])
    with pytest.raises(WarifuError, match="lies outside the memories of stm32f103"):
        m3.run(elf, m3.Options(chip=str(without)))


def test_chip_of_a_file(warifu: Run, tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(BOARD)
    assert [one.name for one in m3.chip(str(file)).memories] == ["boot.rom", "work-ram"]
    elf = build(tmp_path / "own", str(file), "main.c")
    assert (tmp_path / "own" / "chip.toml").read_text() == BOARD
    code, out, _ = warifu("m3", "run", elf, "--chip", file, "--out", tmp_path / "results")
    assert (code, out) == (0, "hello, 42\n")
    manifest = json.loads((tmp_path / "results" / "manifest.json").read_text())
    assert '"board@' in json.dumps(manifest)
    for verb in (("profile",), ("size",)):
        assert warifu("m3", *verb, elf, "--chip", file)[0] == 0
    waits = m3.run(elf, m3.Options(str(file), wait_states={"boot.rom": 2}))
    plain = m3.run(elf, m3.Options(str(file), wait_states={"boot.rom": 2}, plain_wait_states=True))
    none = m3.run(elf, m3.Options(str(file)))
    assert none.cycles.high < waits.cycles.high < plain.cycles.high


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("priority-bits = 3", "priority-bits = 0"), "priority-bits is 0: expected 1 to 8"),
        (("writable = true", "writable = true\nwait = 1"), "line 18: unknown key `wait`"),
        (("0x00030000", "0x0001fffc"), "memory work-ram and memory boot.rom overlap: change"),
        (('"16 KiB"', '"512 MiB"'), "all memories have more than 268435456 bytes"),
        ((BOARD, "\0" * 10), "line 1: "),
        ((BOARD, "[" * 100_000), "line 1: "),
        ((BOARD, "a = 1\n" * 200_000), "is longer than 1,048,576 bytes"),
    ],
)
def test_invalid_chip_file(
    warifu: Run, bare: Compile, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    file = tmp_path / "board.toml"
    file.write_text(BOARD.replace(*change))
    elf = bare("calls.elf", "profile/calls.c")
    for verb in (("run", elf), ("profile", elf), ("taint", elf), ("size", elf), ("init", "new")):
        code, out, err = warifu("m3", *verb, "--chip", file)
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        assert err.startswith(f"warifu: {file}: ") and words in err, err
    assert not Path("new").exists()


@pytest.mark.parametrize("name", ["-x", "..", "_x"])
def test_init_refuses_a_chip_whose_linker_script_would_begin_with_a_sign(
    warifu: Run, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "board.toml"
    file.write_text(re.sub(r'^name = ".*"', f'name = "{name}"', BOARD, count=1, flags=re.M))
    code, out, err = warifu("m3", "init", "new", "--chip", file)
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith(f"warifu: {file}: ")
    assert "letter or digit" in err
    assert not Path("new").exists()


def test_chip_file_that_cannot_be_read(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    pipe, text, folder = (tmp_path / name for name in ("p.toml", "t.toml", "f.toml"))
    os.mkfifo(pipe)
    text.write_bytes(b"\xff\xfe")
    folder.mkdir()
    for path, code, words in (
        (pipe, 2, "is a pipe, not a file"),
        (text, 2, "is not UTF-8 text"),
        (folder, 3, "s a directory"),
        (tmp_path / "none.toml", 3, "No such file"),
    ):
        got, _, err = warifu("m3", "run", elf, "--chip", path)
        assert (got, len(err.splitlines()), words in err) == (code, 1, True), err
    code, _, err = warifu("m3", "run", elf, "--chip", "stm32f104")
    assert (code, "expected lpc1768, stm32f103, " in err) == (2, True)


def test_chips_command_lists_each_with_its_source(warifu: Run) -> None:
    code, out, _ = warifu("m3", "chips", "--format", "json")
    rows = {row["chip"]: row for row in json.loads(out)["tables"][0]["rows"]}
    assert (code, tuple(rows)) == (0, m3.CHIPS)
    assert rows["stm32f103xg"]["memories"].startswith("flash 1024 KiB at 0x08000000; sram 96 KiB")
    assert all(row["source"] for row in rows.values())


def test_list_of_chips_is_as_wide_as_a_terminal(warifu: Run) -> None:
    code, out, _ = warifu("m3", "chips")
    assert code == 0 and max(map(len, out.splitlines())) <= 80, out


def test_source_of_a_chip_is_printable_in_its_linker_script() -> None:
    known = dataclasses.replace(m3.chip("stm32f103"), source="a\x1b[2J\u202eb */ c\nd")
    script = starting.linker_script(known)
    assert script.startswith(r"/* stm32f103: a\x1b[2J\u202eb * / c\nd */" + "\n")

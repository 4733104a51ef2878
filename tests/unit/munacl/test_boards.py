# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What boards ask of munacl's programs: vectors, memory that start-up leaves alone, registers."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import m3

Build = Callable[..., Path]
BOARDS = ("lpc1768", "stm32f103", "mps2_an385")
#: What UM10360's registers are, by address.
REGISTERS = {
    0x400FC080: "PLL0CON",
    0x400FC08C: "PLL0FEED",
    0x400FC1A8: "PCLKSEL0",
    0x4000C000: "DLL",
    0x4000C004: "DLM",
    0x4000C00C: "LCR",
    0x4000C028: "FDR",
}


def symbols(program: Path) -> dict[str, int]:
    text = subprocess.run(
        ["arm-none-eabi-nm", str(program)], check=True, capture_output=True, text=True
    ).stdout
    return {name: int(value, 16) for value, _, name in map(str.split, text.splitlines())}


def vectors(program: Path) -> tuple[int, ...]:
    out = program.with_suffix(".vectors")
    copy = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".vectors", str(program), str(out)]
    subprocess.run(copy, check=True)
    return struct.unpack("<8I", out.read_bytes()[:32])


@pytest.mark.parametrize("name", ["bench", "bench-ram", "capture"])
def test_lpc1768_vectors_have_the_sum_its_boot_rom_asks_for(build: Build, name: str) -> None:
    # UM10360 section 32.3.1.1: the first eight words add up to 0.
    words = vectors(build("fast", f"{name}-lpc1768.elf"))
    assert words[0] == 0x10007FE0 and all(word & 1 for word in words[1:7])
    assert sum(words) % 2**32 == 0


@pytest.mark.parametrize("board", BOARDS[1:])
def test_vector_7_of_other_boards_is_reserved(build: Build, board: str) -> None:
    assert vectors(build("fast", f"capture-{board}.elf"))[7] == 0


@pytest.mark.parametrize("board", BOARDS)
def test_captured_cells_are_where_nothing_writes_before_them(build: Build, board: str) -> None:
    found = symbols(build("fast", f"capture-{board}.elf"))
    cells, end = found["cells"], found["cells"] + 4096
    assert found["__bss_end"] <= cells and end <= found["__stack_top"] - 1024
    if board == "lpc1768":
        # UM10360 section 32.3.2.7: its loader has the first 512 bytes, flash functions the last 32.
        assert cells >= 0x10000200
        assert found["__stack_top"] == 0x10008000 - 32


def written(program: Path, chip: Path, trace: Path) -> list[tuple[str, int]]:
    """Values written to the registers named above, in the order of the program."""
    done = m3.trace(str(program), trace, m3.Part(since="main"), m3.Options(chip=str(chip)))
    assert done.run.code == 0 and not done.cut
    stores = re.findall(r"\[([0-9a-f]{8})\]=([0-9a-f]+)", trace.read_text())
    found = [(int(at, 16), int(value, 16)) for at, value in stores]
    return [(REGISTERS[at], value) for at, value in found if at in REGISTERS]


def test_lpc1768_clocks_and_uart_follow_manual_and_errata(build: Build, tmp_path: Path) -> None:
    # The simulator's chip has no UART: registers that keep what is written, ready to send.
    chip = (ROOT / "crates" / "m3" / "chips" / "lpc1768.toml").read_text()
    uart = '\n[[peripheral]]\nname = "uart0"\naddress = 0x4000c000\nbytes = "16 KiB"\n'
    uart += 'writes = "kept"\n\n[[peripheral.register]]\nname = "LSR"\noffset = 0x14\n'
    (tmp_path / "board.toml").write_text(chip + uart + 'reads = 0x20\nwrites = "ignored"\n')
    program = build("fast", "board-lpc1768.elf")
    found = written(program, tmp_path / "board.toml", tmp_path / "trace.txt")
    feed = [("PLL0FEED", 0xAA), ("PLL0FEED", 0x55)]
    pll = [one for one in found if one[0].startswith("PLL0")]
    # Section 4.5.13: disconnected, off, set, on, connected, each with a feed of its own.
    off = [("PLL0CON", 0), *feed, ("PLL0CON", 0), *feed]
    assert pll == [*off, *feed, ("PLL0CON", 1), *feed, ("PLL0CON", 3), *feed]
    # The errata sheet's PCLKSELx.1: not after PLL0 is connected; UART0 has a fourth of 96 MHz.
    assert "PCLKSEL0" not in dict(found)
    uart0 = [value for name, value in found if name == "DLL"]
    assert uart0[0] == 13 and ("DLM", 0) in found and ("FDR", 0x10) in found
    assert abs(96e6 / 4 / 16 / uart0[0] / 115200 - 1) < 0.002

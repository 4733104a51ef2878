# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The example of random numbers, from reset to the first bytes, on memory as a chip has it."""

from __future__ import annotations

import hashlib
import random
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.munacl import salsa20
from support.paths import ROOT
from warifu import m3

Build = Callable[..., Path]
CELLS = 1600
ERASED = b"\xff" * 96
POWER_UP = random.Random(1).randbytes(CELLS)
BOARDS = ("lpc1768", "stm32f103")
#: What LPC1768's boot ROM does for command 58: result 0 and the words 0x11, 0x22, 0x33, 0x44.
BOOT_ROM = (0x1FFF1FF0, "00220a6011224a6022228a603322ca6044220a617047")
NUMBER = {
    "lpc1768": b"".join(value.to_bytes(4, "little") for value in (0x11, 0x22, 0x33, 0x44)),
    "stm32f103": bytes(12),
}


def derive(which: int, hashes: bytes, seed: bytes) -> bytes:
    assert (len(hashes), len(seed)) == (128, 32)
    return hashlib.sha512(bytes([which]) + hashes + seed).digest()[:32]


def boot(memory: bytes | None, record: bytes, number: bytes) -> tuple[bytes, bytes]:
    """The first bytes and the record after a boot, by munacl_random.h's description."""
    seed, digest = record[:32], record[32:64]
    cells = bytes(64)
    if memory is not None:
        cells = hashlib.sha512(memory).digest()
        digest = derive(0, cells + bytes(64), bytes(32))
    hashes = cells + hashlib.sha512(number).digest()
    first = derive(1, hashes, seed)
    key = derive(3, hashlib.sha512(first).digest() + bytes(64), bytes(32))
    after = derive(2, hashes, seed)
    return salsa20(key, bytes(8), 64)[32:], after + digest + derive(4, digest + bytes(96), after)


def preset(program: Path, contents: dict[int, bytes], out: Path) -> Path:
    """The program with contents of memory that it leaves alone: a part that has none in the file is
    given them, or one is added."""
    elf = bytearray(program.read_bytes())
    (table,) = struct.unpack_from("<I", elf, 28)
    size, count = struct.unpack_from("<HH", elf, 42)
    headers = [list(struct.unpack_from("<8I", elf, table + size * index)) for index in range(count)]
    for address, data in contents.items():
        for header in headers:
            _, _, start, _, in_file, in_memory, _, _ = header
            if start <= address and address + len(data) <= start + in_memory:
                if in_file != in_memory:
                    header[1], header[4], header[7] = len(elf), in_memory, 1
                    elf += bytes(in_memory)
                at = header[1] + address - start
                elf[at : at + len(data)] = data
                break
        else:
            headers.append([1, len(elf), address, address, len(data), len(data), 5, 1])
            elf += data
    struct.pack_into("<I", elf, 28, len(elf))
    struct.pack_into("<H", elf, 44, len(headers))
    out.write_bytes(elf + b"".join(struct.pack("<8I", *header) for header in headers))
    return out


def chip_file(board: str, is_power_up: bool) -> str:
    """The chip with its register of the reset's cause."""
    text = (ROOT / "crates" / "m3" / "chips" / f"{board}.toml").read_text()
    if board == "stm32f103":
        assert "reads = 0x0c000000" in text
        return text if is_power_up else text.replace("0x0c000000", "0x14000000")
    bits = 1 if is_power_up else 4
    cause = f'\n[[peripheral.register]]\nname = "RSID"\noffset = 0x180\nreads = {bits}\n'
    rom = '\n[[memory]]\nname = "boot-rom"\naddress = 0x1fff0000\nbytes = "16 KiB"\n'
    return text + cause + rom + "writable = false\n"


@dataclass
class Chip:
    """A board's memory, by what the example has in it."""

    board: str
    program: Path
    folder: Path

    def address(self, symbol: str) -> int:
        names = subprocess.run(
            ["arm-none-eabi-nm", str(self.program)], check=True, capture_output=True, text=True
        ).stdout
        (line,) = [line for line in names.splitlines() if line.split()[2] == symbol]
        return int(line.split()[0], 16)

    def start(self, is_power_up: bool, cells: bytes, record: bytes) -> tuple[int, str, bytes]:
        """Exit code, what is printed, and the record afterwards."""
        kept = self.address("kept")
        contents = {self.address("cells"): cells, kept: record}
        if self.board == "lpc1768":
            contents[BOOT_ROM[0]] = bytes.fromhex(BOOT_ROM[1])
        program = preset(self.program, contents, self.folder / "preset.elf")
        chip = self.folder / "chip.toml"
        chip.write_text(chip_file(self.board, is_power_up))
        trace = self.folder / "trace.txt"
        part = m3.Part(call="example_store")
        done = m3.trace(str(program), trace, part, m3.Options(chip=str(chip))).run
        after = bytearray(record)
        for at, value in re.findall(r"\[([0-9a-f]{8})\]=([0-9a-f]+)", trace.read_text()):
            offset = int(at, 16) - kept
            if 0 <= offset < len(after):
                word = bytes.fromhex(value)[::-1]
                after[offset : offset + len(word)] = word
        return done.code or 0, done.output.decode(), bytes(after)

    def expect(self, is_power_up: bool, cells: bytes, record: bytes) -> bytes:
        """A boot that gives numbers; returns the record that it leaves."""
        memory = cells if is_power_up else None
        numbers, after = boot(memory, record, NUMBER[self.board])
        found = self.start(is_power_up, cells, record)
        assert found == (0, f"{numbers.hex()}\n", after)
        return after


@pytest.fixture(params=BOARDS)
def chip(request: pytest.FixtureRequest, build: Build, tmp_path: Path) -> Chip:
    board = str(request.param)
    return Chip(board, build("fast", f"random-{board}.elf"), tmp_path)


def test_power_ups_and_warm_resets_give_numbers_and_keep_a_record(chip: Chip) -> None:
    record = chip.expect(is_power_up=True, cells=POWER_UP, record=ERASED)
    # Wiped memory at a warm reset, twice; then a power-up with other memory.
    again = chip.expect(is_power_up=False, cells=bytes(CELLS), record=record)
    third = chip.expect(is_power_up=False, cells=bytes(CELLS), record=again)
    other = random.Random(2).randbytes(CELLS)
    fourth = chip.expect(is_power_up=True, cells=other, record=third)
    assert len({record, again, third, fourth}) == 4


def test_memory_retained_over_a_power_up_is_refused(chip: Chip) -> None:
    _, record = boot(POWER_UP, ERASED, NUMBER[chip.board])
    code, output, after = chip.start(is_power_up=True, cells=POWER_UP, record=record)
    assert (code, output, after) == (46, "no random numbers, reason 6\n", record)


@pytest.mark.parametrize(
    "record", [ERASED, bytes(96), POWER_UP[:96]], ids=["erased", "zeros", "chance"]
)
def test_warm_reset_without_a_record_is_refused(chip: Chip, record: bytes) -> None:
    code, output, after = chip.start(is_power_up=False, cells=bytes(CELLS), record=record)
    assert (code, output, after) == (47, "no random numbers, reason 7\n", record)


def test_memory_that_start_up_has_cleared_is_refused(chip: Chip) -> None:
    code, output, _ = chip.start(is_power_up=True, cells=bytes(CELLS), record=ERASED)
    assert (code, output) == (43, "no random numbers, reason 3\n")


def test_power_up_whose_record_was_lost_gives_other_numbers(chip: Chip) -> None:
    first = chip.start(is_power_up=True, cells=POWER_UP, record=ERASED)
    lost = chip.start(is_power_up=True, cells=POWER_UP, record=POWER_UP[:96])
    assert first[0] == lost[0] == 0
    assert first[1] != lost[1]


def test_board_that_cannot_tell_power_up_has_no_numbers(build: Build) -> None:
    done = m3.run(str(build("fast", "random-mps2_an385.elf")))
    assert (done.code, done.output) == (47, b"no random numbers, reason 7\n")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu cells capture`: what a board's memory came up with, one file for each power-up.

The board prints (firmware/munacl/bench/capture.c) `# munacl cells board=NAME bytes=N power_up=1`,
lines of 64 hexadecimal digits, and `# end rows=N crc32=N`: the CRC-32 of the first line and those
with digits, with a line feed behind each.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.serial import AFTER_ROWS, NO_BOARD, PortGone, Printed, opened, wait_for
from warifu.files import CAPTURE_BYTES, replacing

_HEAD = re.compile(r"# munacl cells board=([\w.-]{1,64}) bytes=(\d{1,7}) power_up=([01])")
_ROW = re.compile(r"(?:[0-9a-f]{2}){1,64}")
_END = re.compile(r"# end rows=(\d{1,7}) crc32=(\d{1,10})")
CAPTURE = Printed("capture", "capture-BOARD.elf", _HEAD, re.compile(f"{_ROW.pattern}|{AFTER_ROWS}"))
"""What the board prints."""
_NUMBER = re.compile(r".*-(\d+)\.bin")


@dataclass(frozen=True)
class Capture:
    """Memory after a reset."""

    board: str
    is_power_up: bool
    memory: bytes


def captures(
    port: Path,
    baud: int,
    folder: Path,
    count: int,
    *,
    silence_s: float,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Waits for `count` power-ups and writes a file of each. Those after another kind of reset are
    left out: they hold what the program before them wrote. A port that goes with the board's power
    is waited for. Raises CalibrateError or OSError; what was written stays."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(match[1]) for one in folder.iterdir() if (match := _NUMBER.fullmatch(one.name))]
    number = max(numbers, default=0)
    written: list[Path] = []
    with closing(_power_ups(port, baud, silence_s, progress)) as found:
        for one in islice(found, count):
            number += 1
            path = folder / f"{one.board}-{number:04d}.bin"
            with replacing(path) as file:
                file.write(one.memory)
            written.append(path)
            progress(f"{len(written)} of {count}: {path.name}")
    return written


def _power_ups(
    port: Path, baud: int, silence_s: float, progress: Callable[[str], None]
) -> Generator[Capture, None, None]:
    """Captures after power-ups, without end. A board that has its power by the port takes the port
    with it, which is opened again when it is back. Raises CalibrateError."""
    progress(f"{port}: switch the board off and on")
    while True:
        try:
            with opened(port, baud) as line:
                while True:
                    head = line.begin(CAPTURE, silence_s)
                    if head[1] == NO_BOARD:
                        raise CalibrateError(
                            f"{port}: the program says board={NO_BOARD}: it runs in a simulator or "
                            "under a debugger: switch the board on without one"
                        )
                    _refuse(head, str(port))
                    found = read(head, line.lines(CAPTURE, silence_s), str(port))
                    if found.is_power_up:
                        yield found
                        continue
                    progress(
                        f"{found.board}: a reset that was no power-up, left out: take its power "
                        "away for some seconds"
                    )
        except PortGone:
            progress(f"{port}: the board has no power, or was unplugged; waiting for its port")
            wait_for(port, silence_s)
            progress(f"{port}: is back")


def _refuse(head: re.Match[str], port: str) -> None:
    """Raises CalibrateError for a first line whose capture could not be used: files are named by
    the board, and `-x` is an option to other programs, `.x` hidden."""
    if head[1][0] in "-._":
        raise CalibrateError(
            f"{port}: the program says board={head[1]}: expected a letter or digit first, since "
            "captures are named by it: change its munacl_board_name"
        )
    if not 1 <= int(head[2]) <= CAPTURE_BYTES:
        raise CalibrateError(
            f"{port}: the program says bytes={head[2]}: expected 1 to {CAPTURE_BYTES:,}: "
            "change its CAPTURE_BYTES"
        )


def read(head: re.Match[str], lines: Iterator[str], port: str) -> Capture:
    """The capture that a first line begins. Raises CalibrateError if it is damaged."""
    memory, rows, crc = bytearray(), 0, zlib.crc32(f"{head[0]}\n".encode())
    for text in lines:
        end = _END.fullmatch(text)
        if end is not None:
            break
        if _ROW.fullmatch(text) is None or len(memory) > int(head[2]):
            raise CalibrateError(
                f"{port}: line {rows + 1} of the capture is {text[:70]!r}: expected hexadecimal "
                "digits: the line is disturbed; this capture is lost"
            )
        memory += bytes.fromhex(text)
        rows += 1
        crc = zlib.crc32(f"{text}\n".encode(), crc)
    else:
        raise CalibrateError(f"{port}: the capture has no end")
    if (int(end[1]), int(end[2]), int(head[2])) != (rows, crc, len(memory)):
        raise CalibrateError(
            f"{port}: the capture is incomplete or was changed on the line: {len(memory)} of "
            f"{head[2]} bytes came; start again, what was written before stays"
        )
    return Capture(head[1], head[3] == "1", bytes(memory))

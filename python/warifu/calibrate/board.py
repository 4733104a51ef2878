# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate board`: cycles that a benchmark on a board counted, read over a serial line.

The benchmark prints (firmware/munacl/bench/bench.c):

    # munacl bench board=mbed-lpc1768 hz=96000000 profile=fast
    crypto_scalarmult_curve25519 0 1775383 712
    # end rows=1 crc32=2943348181

Rows are `name bytes cycles [stack]`; the CRC-32 is that of the first line and the rows, with a line
feed behind each. The board waits for a character after a run and begins again.
"""

from __future__ import annotations

import datetime
import re
import secrets
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.serial import AFTER_ROWS, NO_BOARD, Printed, SerialPort, opened
from warifu.m3.observations import About, Row, write_rows

#: The method and evidence of each row: a board's own counter, on a board.
METHOD = "measured"
#: What the results folder says that it holds.
HALF = "board"
_HEAD = re.compile(r"# munacl bench board=(\S{1,64}) hz=(\d{1,10}) profile=(\S{1,32})")
_ROW = re.compile(r"(\w{1,128}) (\d{1,10}) (\d{1,10})(?: (\d{1,10}))?")
_END = re.compile(r"# end rows=(\d{1,6}) crc32=(\d{1,10})")
_MOST_ROWS = 10_000
_RUN = Printed(
    "run of the benchmark",
    "bench-BOARD.elf",
    _HEAD,
    re.compile(f"{_ROW.pattern}|{AFTER_ROWS}"),
)


@dataclass(frozen=True)
class Call:
    """A call that the board timed."""

    name: str
    bytes: int
    cycles: int
    stack: int | None


@dataclass(frozen=True)
class Measured:
    """A run of the benchmark on a board."""

    board: str
    """What the program says it was built for; with `named`, what its user calls it."""
    hz: int
    profile: str
    calls: tuple[Call, ...]
    port: str
    run_id: str

    def named(self, board: str | None) -> Measured:
        """With the user's name for the board, if there is one."""
        return self if board is None else replace(self, board=board)


def measure(
    port: Path,
    baud: int,
    *,
    silence_s: float,
    begin: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Asks the board for a run, unless `begin` is false, and reads it. Raises CalibrateError."""
    with opened(port, baud) as line:
        if begin:
            line.send(b"\r")
        return _read(line, silence_s, str(port), progress)


def _read(
    line: SerialPort, silence_s: float, port: str, progress: Callable[[str], None]
) -> Measured:
    head = line.begin(_RUN, silence_s)
    board, hz, profile = head[1], int(head[2]), head[3]
    if board == NO_BOARD:
        raise CalibrateError(
            f"{port}: the benchmark says board={NO_BOARD}: it runs in a simulator or under a "
            "debugger, and its cycles are not a board's: let it run on the board by itself; "
            "`warifu m3 run` and `warifu calibrate m3` have simulated ones"
        )
    progress(f"{board} at {hz / 1e6:g} MHz, {profile}")
    calls: list[Call] = []
    crc = zlib.crc32(f"{head[0]}\n".encode())
    for number, text in enumerate(line.lines(_RUN, silence_s), start=1):
        end = _END.fullmatch(text)
        if end is not None:
            if (int(end[1]), int(end[2])) != (len(calls), crc):
                raise CalibrateError(
                    f"{port}: the run is incomplete or was changed on the line: {len(calls)} rows "
                    f"with CRC-32 {crc} came, {end[1]} with {end[2]} were sent: try again"
                )
            break
        if number > _MOST_ROWS:
            raise CalibrateError(
                f"{port}: the run has more than {_MOST_ROWS:,} rows: flash {_RUN.program} of "
                "firmware/munacl"
            )
        row = _ROW.fullmatch(text)
        if row is None:
            raise CalibrateError(
                f"{port}: line {number} of the run is {text[:80]!r}: expected `name bytes cycles "
                "stack`: try again; if it stays, the line is disturbed or the program another one"
            )
        crc = zlib.crc32(f"{text}\n".encode(), crc)
        calls.append(Call(row[1], int(row[2]), int(row[3]), int(row[4]) if row[4] else None))
    if not calls:
        raise CalibrateError(f"{port}: the board timed no call")
    if not any(one.cycles for one in calls):
        raise CalibrateError(
            f"{port}: all cycles are 0: the chip has no cycle counter (DWT), or it is locked"
        )
    return Measured(board, hz, profile, tuple(calls), port, _new_run_id())


def write(measured: Measured, folder: Path) -> None:
    """Writes the run as a results folder (warifu.Results). Raises ResultsError or OSError."""
    choices = {
        "board": measured.board,
        "clock_hz": str(measured.hz),
        "profile": measured.profile,
    }
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    about = About(
        f"munacl-{measured.board}", choices, HALF, METHOD, METHOD, measured.run_id, started
    )
    rows: list[Row] = []
    seen: Counter[str] = Counter()
    for call in measured.calls:
        stage = f"{call.name}/{call.bytes}"
        trial = seen[stage]
        seen[stage] += 1
        rows.append(("board.cycles", stage, trial, float(call.cycles)))
        if call.stack is not None:
            rows.append(("board.stack", stage, trial, float(call.stack)))
    write_rows(folder, about, rows)


def _new_run_id() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"board-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

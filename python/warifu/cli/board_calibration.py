# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate board`: cycles from a board's serial line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NOTHING_WRITTEN, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named

if TYPE_CHECKING:
    from warifu.calibrate.board import Measured
    from warifu.report.table import Table


def board(
    port: Annotated[
        Path, typer.Option("--port", help="The board's serial port, such as /dev/ttyACM0.")
    ],
    baud: Annotated[int, typer.Option("--baud", help="Its rate.")] = 115200,
    name: Annotated[
        str | None,
        typer.Option("--board", help="The board's name and revision; by default the program's."),
    ] = None,
    silence: Annotated[
        float,
        typer.Option("--silence", min=0.1, help="Give up after so many seconds without a byte."),
    ] = 30.0,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the board's reset instead of asking for a run.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", parser=named, metavar="PATH", help="Also write a results folder."
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Read the cycles that a benchmark on a board counted (firmware/munacl, bench-BOARD.elf).

    The board prints them on its UART, with a checksum. Their method is *measured*.

    Examples:

      make -C firmware/munacl boards

      warifu calibrate board --port /dev/ttyACM0 --board "mbed LPC1768 rev. C"
    """
    from warifu.calibrate import board as boards

    with when_interrupted(NOTHING_WRITTEN):
        found = boards.measure(
            port, baud, silence_s=silence, begin=not wait, progress=screen.say
        ).named(name)
    if out is not None:
        boards.write(found, out)
        screen.say(f"wrote {out}: {screen.counted(len(found.calls), 'call')}, run {found.run_id}")
    screen.show([_table(found)], form)
    return OK


def _table(found: Measured) -> Table:
    from warifu.report.table import Column, Table

    title = f"{found.board} at {found.hz / 1e6:g} MHz, {found.profile}"
    heads = ("bytes", "cycles", "ms", "stack, B")
    table = Table(title, [Column("call", number=False), *map(Column, heads)])
    for call in found.calls:
        ms = call.cycles / found.hz * 1e3 if found.hz else None
        table.add(
            [call.name, f"{call.bytes:,}", f"{call.cycles:,}", "" if ms is None else f"{ms:.3f}",
             "" if call.stack is None else f"{call.stack:,}"],
            {"call": call.name, "bytes": call.bytes, "cycles": call.cycles, "ms": ms,
             "stack_bytes": call.stack, "method": "measured", "board": found.board,
             "clock_hz": found.hz, "profile": found.profile},
        )  # fmt: skip
    table.notes.append(f"Kind: measured, on {found.board}. Run {found.run_id}.")
    if not found.hz:
        table.notes.append("The program does not say its clock rate: no times.")
    return table

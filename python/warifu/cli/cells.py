# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu cells`: entropy of a chip's memory at power-up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NOTHING_WRITTEN, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption

if TYPE_CHECKING:
    from warifu.entropy import Cells
    from warifu.report.table import Table

#: A folder of captures is read whole.
_MOST_FILES = 10_000
#: Of all captures together: the estimators look at 250,000 bytes, the shares at all, each bit of
#: which takes two bytes of memory.
_MOST_TOTAL = 32 << 20

cells_app = typer.Typer(
    help="Entropy of a chip's memory at power-up (docs/reference/munacl.md).", no_args_is_help=True
)


@cells_app.callback()
def _cells() -> None:
    """Groups its subcommands."""


@cells_app.command("capture")
def capture(
    port: Annotated[Path, typer.Option("--port", help="The board's serial port.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="Folder of captures.")],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Power-ups to wait for.")] = 1,
    baud: Annotated[int, typer.Option("--baud", help="The port's rate.")] = 115200,
    silence: Annotated[
        float,
        typer.Option("--silence", min=0.1, help="Give up after so many seconds without a byte."),
    ] = 600.0,
) -> int:
    """Read a board's memory after each power-up (firmware/munacl, capture-BOARD.elf).

    Switch the board off for some seconds and on again, for each capture; a switched USB hub can do
    that by itself. Files of the same chip belong in a folder of their own.
    """
    from warifu.calibrate import capture as board

    with when_interrupted("interrupted; the captures that were written stay"):
        written = board.captures(port, baud, out, count, silence_s=silence, progress=screen.say)
    captures = screen.counted(len(written), "capture")
    screen.say(f"wrote {captures} to {out}, the last one {written[-1].name}")
    return OK


@cells_app.command("estimate")
def estimate(
    folder: Annotated[Path, typer.Argument(help="Captures of one chip, *.bin.")],
    form: FormatOption = Format.TABLE,
) -> int:
    """Estimate the entropy of a memory cell at power-up, from captures of one chip.

    The estimators are those of NIST SP 800-90B section 6.3, on the bits that differ from what each
    cell has most often, in the order of cells and of captures. Their least one is
    `millibits_per_cell` of munacl_random_source. Repeat it at the lowest and the highest
    temperature, and with several chips: the least of all is the parameter.
    """
    from warifu._core import WarifuError
    from warifu.entropy import estimate_cells

    paths = sorted(folder.glob("*.bin"))
    if not folder.is_dir() or not paths:
        raise WarifuError(f"{folder}: no captures (*.bin): make them with `warifu cells capture`")
    if len(paths) > _MOST_FILES:
        raise WarifuError(
            f"{folder}: {len(paths):,} captures: expected at most {_MOST_FILES:,}, and one chip's: "
            "move the others to a folder of their own"
        )
    with when_interrupted(NOTHING_WRITTEN):
        captures = _read(folder, paths)
        try:
            screen.say(
                f"{len(captures)} captures of {len(captures[0]):,} B, judged by ten estimators in "
                "two orders of their bits"
            )
            with screen.progress("estimates") as report:
                found = estimate_cells(captures, progress=report)
        except ValueError as error:
            raise WarifuError(f"{folder}: {error}") from None
    screen.show([_table(found, folder)], form)
    return OK


def _read(folder: Path, paths: list[Path]) -> list[bytes]:
    """Captures. Raises FileRefused, WarifuError and OSError."""
    from warifu._core import WarifuError
    from warifu.files import CAPTURE_BYTES, read_bytes

    captures, total = [], 0
    for path in paths:
        captures.append(read_bytes(path, CAPTURE_BYTES))
        total += len(captures[-1])
        if total > _MOST_TOTAL:
            raise WarifuError(
                f"{folder}: captures of more than {_MOST_TOTAL:,} bytes in all, the most that is "
                "read: take some of them away"
            )
    return captures


def _table(found: Cells, folder: Path) -> Table:
    from warifu.entropy.cells import ASKED_SAMPLES, USED_SAMPLES
    from warifu.report.table import Column, Table

    bits = found.captures * found.cells
    enough = bits >= ASKED_SAMPLES
    title = (
        f"at most {found.millibits} thousandths of a bit a cell"
        if enough
        else ("too few captures for a figure")
    )
    table = Table(
        f"{folder}: {title}",
        [Column("estimate", number=False), Column("order of cells"), Column("order of captures")],
    )
    for name, cells in found.by_cells.items():
        captures = found.by_captures[name]
        table.add(
            [name, f"{cells:.4f}", f"{captures:.4f}"],
            {"estimate": name, "by_cells": cells, "by_captures": captures},
        )
    table.add(
        ["mean over cells", f"{found.average:.4f}", ""],
        {"estimate": "mean over cells", "by_cells": found.average, "by_captures": None},
    )
    table.notes.append(
        f"{found.captures} captures of {found.cells:,} cells: {found.ones:.1%} come up as 1, "
        f"{found.changing:.2%} differ from what their cell has most often, "
        f"{found.unstable:.1%} of the cells ever do."
    )
    if bits > USED_SAMPLES:
        table.notes.append(
            f"Estimators look at the first {USED_SAMPLES:,} of {bits:,} bits in each order; the "
            "mean over cells is of all."
        )
    if enough:
        table.notes.append(
            f"millibits_per_cell = {found.millibits}, for this chip at this temperature alone."
        )
    else:
        missing = -(-ASKED_SAMPLES // found.cells) - found.captures
        table.notes.append(
            f"No millibits_per_cell: {bits:,} bits are fewer than the {ASKED_SAMPLES:,} that NIST "
            f"SP 800-90B section 3.1.1 asks for. Make {screen.counted(missing, 'more capture')} of "
            "this memory."
        )
    return table

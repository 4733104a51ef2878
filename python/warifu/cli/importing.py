# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu import`: a device profile from a benchmark's output."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NO_PROFILE, OK, when_interrupted
from warifu.cli.screen import named
from warifu.devices.figures import Code

if TYPE_CHECKING:
    from warifu.devices.making import Machine

Library = Annotated[
    str | None,
    typer.Option(
        "--library",
        help="The TLS library whose recipes hold: mbedtls-3.6, wolfssl-5, openssl-3.",
        show_default=False,
    ),
]
Core = Annotated[
    str | None,
    typer.Option("--core", help="The core: cortex-m4, rv32imc, ...", show_default=False),
]
Clock = Annotated[
    str | None, typer.Option("--clock", help="Its clock, such as 64MHz.", show_default=False)
]
CodeOption = Annotated[
    Code | None,
    typer.Option("--code", help="What public-key arithmetic is written in.", show_default=False),
]
Ram = Annotated[str | None, typer.Option("--ram", help="Such as 256KiB.", show_default=False)]
Flash = Annotated[str | None, typer.Option("--flash", help="Such as 1MiB.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a profile of that name.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Print the profile; write nothing.")]


def import_output(
    file: Annotated[
        Path,
        typer.Argument(
            parser=named, metavar="FILE", help="The output; - reads it.", show_default=False
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="The device's name; the file's by default.", show_default=False
        ),
    ] = None,
    library: Library = None,
    core: Core = None,
    clock: Clock = None,
    code: CodeOption = None,
    ram: Ram = None,
    flash: Flash = None,
    run: Annotated[
        int | None,
        typer.Option("--run", min=1, help="Which, in a file of several runs.", show_default=False),
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> int:
    """Make a device profile from a benchmark's output, so that `predict` answers for that board.

    It knows wolfCrypt's benchmark, Mbed TLS's, openssl speed (with -mr too), BearSSL's testspeed,
    the tables of pqm4 and pqm3, and CSV with the head primitive,value,unit, by their content. What
    the output lacks is scaled from other devices and marked as assumed, with a band.

    Examples:

      warifu import serial.log --name my-board --core cortex-m4 --clock 64MHz

      openssl speed ecdsap256 ecdhp256 rsa2048 | warifu import - --name gateway --clock 1.2GHz
    """
    from warifu.cli import device_files
    from warifu.devices import making
    from warifu.devices.recognise import recognise

    about = machine(library, core, clock, code, ram, flash)
    with when_interrupted(NO_PROFILE):
        chosen = making.checked_name(name or _name(file))
        if not (force or dry_run):
            device_files.refuse_taken(chosen)
        content, shown = _content(file)
        output = recognise(content, shown, clock_hz=about.clock_hz, run=run)
        about = replace(about, library=device_files.library(library, output.library))
        made = making.from_output(
            chosen,
            output,
            about,
            device_files.corpus(),
            shown,
            datetime.date.today().isoformat(),
        )
        written = device_files.write(made, dry_run)
    with device_files.while_somebody_reads():
        if library is None:
            device_files.say_stand_in(output.library, about.library)
        device_files.say_recognised(output)
        device_files.say_left_out(output.left_out)
        if made.draft.core is None:
            screen.warn("no core is known: bands are wide: add --core, such as --core cortex-m4")
        device_files.say_added(made)
        if written is not None:
            device_files.say_written(written, made.name)
    return OK


def machine(
    library: str | None,
    core: str | None,
    clock: str | None,
    code: Code | None,
    ram: str | None,
    flash: str | None,
) -> Machine:
    """What the options say of a device. Raises typer.BadParameter."""
    from warifu.devices import cores, quantities
    from warifu.devices.making import Machine

    def checked(option: str, text: str | None, read: Callable[[str], int]) -> int | None:
        if text is None:
            return None
        try:
            return read(text)
        except quantities.NotUnderstood as error:
            raise typer.BadParameter(f"{option} {text}: {error}") from None

    checked("--ram", ram, quantities.size)
    checked("--flash", flash, quantities.size)
    known = core and cores.named(core)
    if known and cores.family(known) is None:
        raise typer.BadParameter(f"--core {core}: expected one of {', '.join(cores.KNOWN)}")
    return Machine(
        library,
        known or None,
        checked("--clock", clock, quantities.clock_hz),
        code,
        quantities.spaced(ram) if ram else None,
        quantities.spaced(flash) if flash else None,
    )


def _content(file: Path) -> tuple[bytes, str]:
    from warifu import files
    from warifu.devices.errors import DeviceError
    from warifu.devices.text import MOST_BYTES
    from warifu.printable import printable

    if str(file) == "-":
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise DeviceError(f"standard input: is longer than {MOST_BYTES:,} bytes: cut it")
        return content, "standard input"
    return files.read_bytes(file, MOST_BYTES), printable(file.name)


def _name(file: Path) -> str:
    from warifu.devices.making import name_of

    found = "" if str(file) == "-" else name_of(file.stem)
    if not found:
        raise typer.BadParameter("--name is missing: name the device, such as --name my-board")
    return found

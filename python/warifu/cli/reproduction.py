# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu reproduce`: the source papers beside what this project gives."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu import identity
from warifu.cli import reproduction_dds, screen
from warifu.cli.errors import FAILED, OK
from warifu.cli.formats import Format
from warifu.cli.m3 import options_of
from warifu.cli.screen import FormatOption

if TYPE_CHECKING:
    from warifu.reproduce.munacl_checks import Checked

reproduce_app = typer.Typer(
    help="Tables and claims of the source papers, published and here.", no_args_is_help=True
)


class Part(StrEnum):
    """What to print."""

    ALL = "all"
    TABLE2 = "table2"
    TABLE3 = "table3"
    GAINS = "gains"
    ROTATIONS = "rotations"
    STATISTICS = "statistics"


@reproduce_app.callback()
def _reproduce(context: typer.Context) -> None:
    """Only network namespaces need root, and a library's Makefile is anybody's code."""
    if context.invoked_subcommand not in ("sros2-aead", "dds-offload"):
        identity.become_caller()


for name, command in (
    ("sros2-aead", reproduction_dds.sros2_aead),
    ("dds-offload", reproduction_dds.dds_offload),
):
    reproduce_app.command(name, epilog=reproduction_dds.EPILOG)(command)


@reproduce_app.command("munacl")
def munacl(
    firmware: Annotated[
        Path,
        typer.Option("--firmware", metavar="PATH", help="The library's sources, built there."),
    ] = Path("firmware/munacl"),
    part: Annotated[Part, typer.Option("--part", help="Which tables.")] = Part.ALL,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors",
            metavar="PATH",
            help="Published vectors; unless given, the folder vectors beside firmware.",
        ),
    ] = None,
    wait_states: Annotated[
        list[str] | None,
        typer.Option(
            "--wait-states",
            metavar="MEMORY=CYCLES",
            help="Also Table 3 on an LPC1768 whose memory waits, such as flash=4. Repeatable.",
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """The paper on a NaCl for the Cortex-M3 beside firmware/munacl on the simulated chip.

    Taint, what calls leave behind, equal cycles, disassembly and published vectors are run here,
    for both profiles; the verdicts follow from them. Exit code 1 if one of these checks fails.

    Cycles are emulated: simulated at zero wait states, where the paper's are a board's. With
    MUNACL_PEERS, folders with sources of Monocypher and BearSSL, these are columns of Table 3.
    """
    from warifu._core import WarifuError
    from warifu.cli import munacl_peers
    from warifu.reproduce import munacl as paper
    from warifu.reproduce import munacl_claims

    waits = dict(options_of(paper.CHIP, 10**10, wait_states, False, None, "").wait_states)
    if not (firmware / "Makefile").is_file():
        raise WarifuError(
            f"--firmware {firmware}: has no Makefile: run it in the project's folder, or name "
            "firmware/munacl of a checkout"
        )
    _compilers_or_raise()
    others = munacl_peers.find(os.environ.get("MUNACL_PEERS", ""))
    for profile in paper.PROFILES:
        _make(firmware, f"PROFILE={profile}", "programs")
    peers = munacl_peers.link(others, firmware / "build")
    if peers:
        _make(firmware, "peers")
    version = [_cross("gcc"), "--version"]
    compiler = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    programs = paper.Programs(firmware / "build", peers)
    first = compiler.splitlines()[0]
    holds = True
    if part is Part.TABLE2:
        tables = [paper.table2(programs)]
    elif part is Part.TABLE3:
        tables = [paper.table3(programs, first)]
    elif part is Part.GAINS:
        tables = [paper.gains(paper.table3(programs, first))]
    elif part is Part.ROTATIONS:
        tables = [paper.rotations(programs)]
    elif part is Part.STATISTICS:
        tables = [paper.statistics(programs)]
    else:
        checked = _checked(firmware, vectors or firmware.resolve().parents[1] / "vectors")
        third = paper.table3(programs, first)
        tables = [
            third,
            paper.gains(third),
            paper.table2(programs),
            paper.rotations(programs),
            paper.statistics(programs),
            paper.checked_table(checked),
            munacl_claims.claims(programs, third, checked),
            paper.unpromised(),
        ]
        holds = checked.holds
    if waits:
        tables.append(paper.waiting(programs, waits))
    screen.show(tables, form)
    return OK if holds else FAILED


def _checked(firmware: Path, vectors: Path) -> Checked:
    """Every check of the library, in both profiles. Raises WarifuError and OSError."""
    from warifu.reproduce import munacl as paper
    from warifu.reproduce import munacl_checks as checks

    listings = {}
    for profile in paper.PROFILES:
        _make(firmware, f"PROFILE={profile}", "all", "checks")
        library = firmware / "build" / profile / f"libmunacl-{profile}.a"
        command = [_cross("objdump"), "-d", "-r", "-t", str(library)]
        listings[profile] = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    return checks.check_all(firmware / "build", listings, vectors, screen.say)


def _cross(tool: str) -> str:
    """A tool of the compiler's, as the Makefile names them."""
    return f"{os.environ.get('CROSS', 'arm-none-eabi-')}{tool}"


def _compilers_or_raise() -> None:
    """Raises ToolMissing where the library cannot be built."""
    from warifu.tools import Tool, ToolMissing

    for name, packages in (
        ("make", "make"),
        (_cross("gcc"), "gcc-arm-none-eabi libnewlib-arm-none-eabi"),
    ):
        if shutil.which(name) is None:
            raise ToolMissing(Tool(name, "builds munacl", f"`apt-get install {packages}`"))


def _make(firmware: Path, *words: str) -> None:
    """Builds targets. Raises WarifuError with the first error."""
    from warifu._core import WarifuError
    from warifu.tools import make_environment

    make = ["make", "-r", "--silent", "-C", str(firmware), "BUILD=build", *words]
    environment = make_environment()
    # Two commands at once would write one another's objects.
    folder = os.open(firmware, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        done = subprocess.run(make, capture_output=True, text=True, check=False, env=environment)
    finally:
        os.close(folder)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        first = next((line for line in lines if ": error: " in line or "***" in line), lines[-1])
        raise WarifuError(f"{' '.join(make)} failed: {first}")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3`: programs on the Cortex-M3 in software."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from warifu.cli import screen
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption

if TYPE_CHECKING:
    from warifu.m3 import Options, Run

#: What ended a run that did not end itself; outside what programs usually return, and below
#: the shell's own codes.
STOPPED = {
    "unknown-semihosting": 117,
    "reset": 118,
    "asleep": 119,
    "breakpoint": 120,
    "stack-overflow": 121,
    "fault": 122,
    "exception-entry": 122,
    "lockup": 122,
    "instruction-limit": 124,
}

_EPILOG = """Exit codes: the program's own; 124 the instruction limit; 122 a fault (undefined
instruction, wild jump, an access to nothing); 121 stack overflow; 120 BKPT; 119 asleep for ever; 118
a reset; 117 an unknown semihosting call; 2 no ELF file for this chip; 3 a file cannot be read."""

m3_app = typer.Typer(
    help="""A Cortex-M3 in software: runs ELF files, counts cycles as the chip does, and shows
    where they go.

    A program ends by semihosting's SYS_EXIT and prints through its console, as one linked with
    --specs=rdimon.specs does. Cycles are a band: two readings of the chip's published rules; the
    high end is what is judged. Every figure is emulated.

    Begin with:

      arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -O2 --specs=rdimon.specs hello.c -o hello.elf

      warifu m3 run hello.elf --mhz 100""",
    no_args_is_help=True,
)

Elf = Annotated[Path, typer.Argument(metavar="ELF", help="A linked program.", show_default=False)]
Chip = Annotated[
    str, typer.Option("--chip", help="Whose memories: lpc1768, stm32f103 or mps2-an385.")
]
Most = Annotated[
    int,
    typer.Option("--max-instructions", min=1, help="Then it is taken for an endless loop."),
]
Waits = Annotated[
    list[str] | None,
    typer.Option(
        "--wait-states",
        metavar="MEMORY=CYCLES",
        help="Each access to a memory waits: flash=2. Assumed, until a board confirms it. "
        "Repeatable.",
    ),
]
Deliver = Annotated[
    bool,
    typer.Option("--deliver-faults", help="Faults go to the program's handlers, as on the chip."),
]
Input = Annotated[
    Path | None,
    typer.Option("--input", help="What the program reads from its console; - for stdin."),
]
Arguments = Annotated[str, typer.Option("--args", help="The program's command line.")]
Mhz = Annotated[
    float | None, typer.Option("--mhz", min=0.001, help="The clock rate, to tell times as well.")
]


@m3_app.command(epilog=_EPILOG)
def run(
    elf: Elf,
    chip: Chip = "mps2-an385",
    max_instructions: Most = 10_000_000_000,
    wait_states: Waits = None,
    deliver_faults: Deliver = False,
    input_file: Input = None,
    arguments: Arguments = "",
    mhz: Mhz = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Run a program: its output to stdout as it comes, what it took to stderr.

    Marks (WARIFU_MARK of crates/warifu-m3/include/warifu_m3.h) cut the run into sections.

    Examples:

      warifu m3 run program.elf

      warifu m3 run program.elf --chip lpc1768 --wait-states flash=4 --mhz 100

      echo hello | warifu m3 run program.elf --input - --args "-v fast"
    """
    from warifu import m3
    from warifu.cli import m3_tables

    options = _options(
        chip, max_instructions, wait_states, deliver_faults, input_file, arguments
    )
    done = m3.run(elf, options, _to(sys.stdout))
    screen.show(m3_tables.run(done, mhz), form, sys.stderr)
    return ended(done)


def _options(
    chip: str,
    max_instructions: int,
    wait_states: list[str] | None,
    deliver_faults: bool,
    input_file: Path | None,
    arguments: str,
) -> Options:
    from warifu.m3 import CHIPS, Options

    if chip not in CHIPS:
        raise typer.BadParameter(f"--chip {chip}: choose {', '.join(CHIPS)}")
    text = b""
    if input_file is not None:
        text = sys.stdin.buffer.read() if str(input_file) == "-" else input_file.read_bytes()
    waits = dict(map(_wait_states, wait_states or []))
    return Options(chip, max_instructions, waits, deliver_faults, input=text, arguments=arguments)


def _to(stream: TextIO) -> Callable[[bytes], object]:
    """Hands what a program prints, which may be no text, to a stream as it comes."""

    def take(printed: bytes) -> None:
        stream.flush()
        stream.buffer.write(printed)
        stream.buffer.flush()

    return take


def ended(done: Run) -> int:
    """The exit code of a run; what ended it, if not the program, is said in one line."""
    if done.code is not None:
        # As exit() does; and a failure stays one.
        return done.code & 0xFF or (1 if done.code else 0)
    screen.say(f"warifu: {done.program}: {done.message}")
    return STOPPED[done.stop]


def _wait_states(text: str) -> tuple[str, int]:
    memory, _, cycles = text.partition("=")
    if not memory or not cycles.isdecimal() or int(cycles) > _MOST_WAIT_STATES:
        raise typer.BadParameter(
            f"--wait-states {text}: expected MEMORY=CYCLES such as flash=2, "
            f"at most {_MOST_WAIT_STATES}"
        )
    return memory, int(cycles)


#: More than any memory needs, few enough that no sum of cycles overflows.
_MOST_WAIT_STATES = 1000

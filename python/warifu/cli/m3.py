# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3`: programs on the simulated Cortex-M3."""

from __future__ import annotations

import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import FAILED, NOTHING_WRITTEN, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.m3_files import console_input, refuse_inputs, shown_on, where, writer_to
from warifu.cli.screen import FormatOption, counted, named

if TYPE_CHECKING:
    from warifu.m3 import Options, Part, Profile, Run, Trace

#: Exit codes by stop reason: above those that programs usually return, and below the shell's own.
STOPPED = {
    "unknown-semihosting": 117,
    "unmapped-semihosting": 122,
    "reset": 118,
    "asleep": 119,
    "breakpoint": 120,
    "stack-overflow": 121,
    "fault": 122,
    "exception-entry": 122,
    "lockup": 122,
    "instruction-limit": 124,
    # 128 + SIGKILL, as shells have it.
    "killed": 137,
}

_STOPS = """124 the instruction limit; 122 a fault (undefined instruction, wild jump, access to an
unmapped address, also by a semihosting call); 121 stack overflow; 120 BKPT; 119 asleep forever;
118 a reset; 117 an unsupported semihosting call; 2 not an ELF file for this chip; 3 a file that
cannot be read."""

_EPILOG = f"Exit codes: the program's own; {_STOPS}"

_TAINT_EPILOG = f"""Exit codes: 1 if there is a leak; otherwise 0 if the program exited, with any
code; {_STOPS}"""


class By(StrEnum):
    """The rows of a profile."""

    FUNCTION = "function"
    LINE = "line"
    CALL = "call"


m3_app = typer.Typer(
    help="""A Cortex-M3 simulator: runs ELF files, counts cycles, and shows where they go.

    Programs print and exit by semihosting, as those linked with --specs=rdimon.specs do. Cycles are
    a band, from two readings of the chip's published rules; comparisons use the high end. Every
    figure is emulated.

    Begin with:

      arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -O2 --specs=rdimon.specs hello.c -o hello.elf

      warifu m3 run hello.elf --mhz 100""",
    no_args_is_help=True,
)

Elf = Annotated[Path, typer.Argument(metavar="ELF", help="A linked program.", show_default=False)]
Chip = Annotated[
    str,
    typer.Option(
        "--chip", metavar="NAME|FILE.toml", help="The chip: `warifu m3 chips` lists them."
    ),
]
Most = Annotated[
    int,
    typer.Option("--max-instructions", min=1, help="Stop the run at this limit."),
]
Waits = Annotated[
    list[str] | None,
    typer.Option(
        "--wait-states",
        metavar="MEMORY=CYCLES",
        help="Wait states of a memory, such as flash=2; their effect is assumed. Repeatable.",
    ),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain-wait-states",
        help="Wait for each code word and data access, also where the chip's flash reads lines.",
    ),
]
AnyCore = Annotated[
    bool,
    typer.Option(
        "--any-core",
        help="Run a program for another core too, by a Cortex-M3's instructions and timing.",
    ),
]
Deliver = Annotated[
    bool,
    typer.Option("--deliver-faults", help="Deliver faults to the program's handlers."),
]
Input = Annotated[
    Path | None,
    typer.Option("--input", help="The program's console input, a file; - for stdin."),
]
Arguments = Annotated[str, typer.Option("--args", help="The program's command line.")]
Top = Annotated[int, typer.Option("--top", min=1, help="Rows of each table at most.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        parser=named,
        metavar="PATH",
        help="Write the figures as observations to a folder.",
        show_default=False,
    ),
]


def finite(value: float | None) -> float | None:
    """Rejects infinity and NaN, which pass Typer's range check."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a clock rate: expected MHz, such as 100")
    return value


Mhz = Annotated[
    float | None,
    typer.Option(
        "--mhz", min=0.001, callback=finite, help="The clock rate in MHz, to show times as well."
    ),
]


_GDB = "Debugger"
_TRACE = "Trace"
Gdb = Annotated[
    int | None,
    typer.Option(
        "--gdb",
        metavar="PORT",
        min=0,
        max=65535,
        help="Wait for gdb on this port of 127.0.0.1; 0 takes a free one.",
        rich_help_panel=_GDB,
        show_default=False,
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        parser=named,
        help="Write a line an instruction to a file: cycle, address, what it did; - for stdout.",
        rich_help_panel=_TRACE,
        show_default=False,
    ),
]
TraceFrom = Annotated[
    str | None,
    typer.Option(
        "--trace-from",
        metavar="PLACE",
        help="Begin at each arrival at a symbol, main+0x1c, or 0x08000100.",
        rich_help_panel=_TRACE,
        show_default=False,
    ),
]
TraceTo = Annotated[
    str | None,
    typer.Option(
        "--trace-to",
        metavar="PLACE",
        help="End at the arrival there.",
        rich_help_panel=_TRACE,
        show_default=False,
    ),
]
TraceCall = Annotated[
    str | None,
    typer.Option(
        "--trace-call",
        metavar="FUNCTION",
        help="Trace each call of it, with what it calls.",
        rich_help_panel=_TRACE,
        show_default=False,
    ),
]
TraceLimit = Annotated[
    int | None,
    typer.Option(
        "--trace-limit",
        metavar="N",
        min=1,
        max=2**64 - 1,
        help="Instructions traced at most; default: 1,000,000, some 90 MB.",
        rich_help_panel=_TRACE,
        show_default=False,
    ),
]


@m3_app.command(epilog=_EPILOG)
def run(
    elf: Elf,
    chip: Chip = "mps2-an385",
    max_instructions: Most = 10_000_000_000,
    wait_states: Waits = None,
    plain: Plain = False,
    any_core: AnyCore = False,
    deliver_faults: Deliver = False,
    input_file: Input = None,
    arguments: Arguments = "",
    mhz: Mhz = None,
    out: Out = None,
    form: FormatOption = Format.TABLE,
    gdb: Gdb = None,
    trace: TraceFile = None,
    trace_from: TraceFrom = None,
    trace_to: TraceTo = None,
    trace_call: TraceCall = None,
    trace_limit: TraceLimit = None,
) -> int:
    """Run a program: its output goes to stdout, the cycle counts to stderr.

    Marks (WARIFU_MARK of crates/m3/include/warifu_m3.h) divide the run into sections.

    Examples:

      warifu m3 run program.elf

      warifu m3 run program.elf --chip lpc1768 --wait-states flash=4 --mhz 100

      echo hello | warifu m3 run program.elf --input - --args "-v fast"

      warifu m3 run program.elf --trace trace.txt --trace-call main

      warifu m3 run program.elf --gdb 3333    # elsewhere:
      gdb-multiarch program.elf -ex "target remote :3333" -ex "break main" -ex continue
    """
    from warifu import m3
    from warifu.cli import m3_tables

    part = _part(trace, trace_from, trace_to, trace_call, trace_limit)
    refuse_inputs(elf, chip, input_file, {"--trace": trace, "--out": out})
    if gdb is not None:
        _refuse_with_gdb({"--trace": trace, "--out": out})
    options = options_of(
        chip, max_instructions, wait_states, deliver_faults, input_file, arguments, plain=plain,
        any_core=any_core,
    )  # fmt: skip
    if gdb is not None:
        from warifu.cli import gdb_server

        with when_interrupted("interrupted; the program was ended"):
            done = gdb_server.debug(elf, options, gdb, writer_to(sys.stdout))
    elif trace is not None:
        to_stdout = str(trace) == "-"
        with when_interrupted(f"interrupted; {where(trace)} has the trace so far"):
            # What the program prints must not get into a trace on stdout.
            traced = m3.trace(
                elf, sys.stdout.buffer if to_stdout else trace, part, options,
                writer_to(sys.stderr if to_stdout else sys.stdout),
            )  # fmt: skip
        done = traced.run
        _say_traced(trace, traced, part)
    else:
        with when_interrupted(NOTHING_WRITTEN):
            done = m3.run(elf, options, writer_to(sys.stdout))
    screen.show(m3_tables.run(done, mhz), form, sys.stderr)
    _keep(done, None, out)
    return ended(done)


@m3_app.command(epilog=_EPILOG)
def profile(
    elf: Elf,
    chip: Chip = "mps2-an385",
    by: Annotated[
        By, typer.Option("--by", help="Cycles by function, by line (gcc -g), or by call.")
    ] = By.FUNCTION,
    top: Top = 20,
    flame_graph: Annotated[
        Path | None,
        typer.Option(
            "--flame-graph",
            metavar="FILE",
            parser=named,
            help="Write a flame graph (SVG) to a file.",
            show_default=False,
        ),
    ] = None,
    folded: Annotated[
        Path | None,
        typer.Option(
            "--folded",
            metavar="FILE",
            parser=named,
            help="Write folded stacks to a file, for other tools.",
            show_default=False,
        ),
    ] = None,
    max_instructions: Most = 10_000_000_000,
    wait_states: Waits = None,
    plain: Plain = False,
    any_core: AnyCore = False,
    deliver_faults: Deliver = False,
    input_file: Input = None,
    arguments: Arguments = "",
    mhz: Mhz = None,
    out: Out = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Show where a program spends its cycles, how deep its stack is, and its use of newlib's heap.

    The program's output goes to stderr. Marks (WARIFU_MARK) divide the run into sections, each with
    its cycles, stack and heap.

    Examples:

      warifu m3 profile program.elf --flame-graph program.svg

      warifu m3 profile program.elf --by line --top 50 --format csv > lines.csv
    """
    from warifu import m3
    from warifu.cli import m3_tables
    from warifu.files import replace_text

    refuse_inputs(
        elf, chip, input_file, {"--flame-graph": flame_graph, "--folded": folded, "--out": out}
    )
    options = options_of(
        chip, max_instructions, wait_states, deliver_faults, input_file, arguments, plain=plain,
        any_core=any_core,
    )  # fmt: skip
    with when_interrupted(NOTHING_WRITTEN):
        seen = m3.profile(elf, options, shown_on(sys.stderr))
    screen.show(m3_tables.profile(seen, by.value, top, mhz), form)
    for note in seen.notes:
        screen.warn(note)
    for path, text in ((flame_graph, seen.flame_graph), (folded, seen.folded)):
        if path is not None:
            replace_text(path, text)
            screen.say(f"wrote {path}")
    _keep(seen.run, seen, out)
    return ended(seen.run)


@m3_app.command(epilog=_TAINT_EPILOG)
def taint(
    elf: Elf,
    chip: Chip = "mps2-an385",
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="NAME[:BYTES]",
            help="A secret variable, in addition to those that the program poisons. Repeatable.",
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            "--from",
            help="The function at whose start it becomes secret, after start-up code.",
        ),
    ] = "main",
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, help="Show the N most frequent leaks; default: all, by address."
        ),
    ] = None,
    allow: Annotated[
        Path | None,
        typer.Option(
            "--allow",
            metavar="FILE",
            help="Leaks that are known: lines `FUNCTION KIND` or `FUNCTION+OFFSET`.",
            show_default=False,
        ),
    ] = None,
    forbid_output: Annotated[
        bool,
        typer.Option("--forbid-output", help="Secret bytes that are output are leaks as well."),
    ] = False,
    max_instructions: Most = 10_000_000_000,
    wait_states: Waits = None,
    plain: Plain = False,
    any_core: AnyCore = False,
    deliver_faults: Deliver = False,
    input_file: Input = None,
    arguments: Arguments = "",
    form: FormatOption = Format.TABLE,
) -> int:
    """Show where secrets leak: branches, addresses, IT conditions, long multiplications and
    divisions that depend on them.

    Secrets are marked by WARIFU_POISON of crates/m3/include/warifu_m3.h in the program, or named
    with --secret. The program's output goes to stderr.

    Examples:

      warifu m3 taint program.elf

      warifu m3 taint program.elf --secret key --secret seed:32 --from crypto_sign

      warifu m3 taint program.elf --allow known-leaks.txt
    """
    from warifu import WarifuError, m3
    from warifu.cli import m3_tables

    options = options_of(
        chip, max_instructions, wait_states, deliver_faults, input_file, arguments, plain=plain,
        any_core=any_core,
    )  # fmt: skip
    known = None if allow is None else m3.AllowList.read(allow)
    with when_interrupted(NOTHING_WRITTEN):
        found = m3.taint(elf, [*map(_secret, secret or [])], since, options, shown_on(sys.stderr))
    judged = (*found.leaks, *(found.outputs if forbid_output else ()))
    leaks = judged if known is None else known.others(judged)
    screen.show([m3_tables.leaks(found, leaks, top)], form)
    code = ended(found.run)
    if found.run.code:
        screen.say(f"{elf}: the program's own exit code is {code}")
    # A run that was cut short has not shown which entries are still needed.
    complete = found.run.code is not None and found.poisoned
    stale = known.stale((*found.leaks, *found.outputs)) if known and complete else ()
    for entry in stale:
        screen.say(
            f"warifu: {allow}: line {entry.line}: {entry} allows nothing in this run: remove it, "
            "or run what it is about"
        )
    if leaks:
        return FAILED
    if found.run.code is None:
        return code
    if not found.poisoned:
        since_when = f"; {since} was never reached" if secret else ""
        raise WarifuError(
            f"{elf}: nothing was secret in this run{since_when}: mark secrets with WARIFU_POISON "
            "(compiled without -DWARIFU_M3=0), or name variables with --secret"
        )
    return FAILED if stale else OK


@m3_app.command()
def size(
    elf: Elf, chip: Chip = "mps2-an385", top: Top = 20, form: FormatOption = Format.TABLE
) -> int:
    """Show a program's use of flash and RAM: by section, by symbol, and by memory of the chip.

    Example:

      warifu m3 size program.elf --chip stm32f103
    """
    from warifu import m3
    from warifu.cli import m3_tables

    screen.show(m3_tables.sizes(elf.name, m3.size(elf, _known(chip)), chip, top), form)
    return OK


@m3_app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or existing folder.")],
    chip: Chip = "mps2-an385",
) -> int:
    """Write a linker script for a chip, start-up code, an example and a Makefile.

    Example:

      warifu m3 init hello --chip stm32f103

      make -C hello run
    """
    from warifu.m3.starting import init as write

    for path in write(folder, _known(chip)):
        screen.say(f"wrote {path}")
    return OK


@m3_app.command()
def chips(form: FormatOption = Format.TABLE) -> int:
    """List the built-in chips: memories, and where their maps come from.

    A chip that is not here is described by a file: docs/reference/m3.md has its keys.
    """
    from warifu import m3
    from warifu.cli import m3_tables

    screen.show([m3_tables.chips([m3.chip(name) for name in m3.CHIPS])], form)
    return OK


def _part(
    trace: Path | None, since: str | None, until: str | None, call: str | None, limit: int | None
) -> Part:
    """Which part of a run is traced, from the flags."""
    from warifu.m3 import Part

    given = {
        "--trace-from": since,
        "--trace-to": until,
        "--trace-call": call,
        "--trace-limit": limit,
    }
    names = [name for name, value in given.items() if value is not None]
    if trace is None and names:
        raise typer.BadParameter(f"{names[0]} has no effect without --trace FILE: give both")
    if call is not None and (since is not None or until is not None):
        raise typer.BadParameter("--trace-call excludes --trace-from and --trace-to: give either")
    return Part(since, until, call) if limit is None else Part(since, until, call, limit)


def _refuse_with_gdb(given: dict[str, Path | None]) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                f"--gdb does not go with {name}: a debugger may change what the program does"
            )


def _say_traced(file: Path, traced: Trace, part: Part) -> None:
    screen.say(f"wrote {where(file)}: {counted(traced.lines, 'instruction')}")
    if traced.cut:
        screen.warn(f"the trace ends at --trace-limit {part.limit}: raise it, or trace a part")
    elif not traced.lines:
        screen.warn("nothing was traced: the run did not come to where the trace begins")


def _keep(done: Run, seen: Profile | None, out: Path | None) -> None:
    """Writes the figures as observations to `out`, if given."""
    if out is None:
        return
    from warifu import provenance
    from warifu.m3 import observations

    observations.write(out, done, seen, provenance.new_run_id("emulated"), provenance.now())
    screen.say(f"results: {out}")


def _known(chip: str) -> str:
    from warifu.m3 import CHIPS

    if chip not in CHIPS and not chip.endswith(".toml"):
        raise typer.BadParameter(f"--chip {chip}: expected {', '.join(CHIPS)}, or FILE.toml")
    return chip


def options_of(
    chip: str,
    max_instructions: int,
    wait_states: list[str] | None,
    deliver_faults: bool,
    input_file: Path | None,
    arguments: str,
    *,
    plain: bool = False,
    any_core: bool = False,
) -> Options:
    """The options of a run from the flags."""
    from warifu.m3 import Options

    text = b""
    if input_file is not None:
        text = console_input(input_file)
    waits: dict[str, int] = {}
    for memory, cycles in map(_wait_states, wait_states or []):
        if memory in waits:
            raise typer.BadParameter(f"--wait-states {memory}: given twice: give it once")
        waits[memory] = cycles
    try:
        return Options(
            _known(chip), max_instructions, waits, plain, deliver_faults, input=text,
            arguments=arguments, any_core=any_core,
        )  # fmt: skip
    except ValueError as error:
        # The other flags were checked when they were parsed: this is about --args.
        raise typer.BadParameter(f"--{str(error).replace('arguments', 'args', 1)}") from None


def ended(done: Run) -> int:
    """The exit code of a run; prints one line if the program did not exit, and one if it was built
    for another core."""
    if done.other_core is not None:
        say_other_core(done.program, done.other_core)
    if done.code is not None:
        # The low byte, as with exit(), but never 0 for a failure.
        return done.code & 0xFF or (1 if done.code else 0)
    screen.say(f"warifu: {done.program}: {done.message}")
    return STOPPED[done.stop]


def say_other_core(program: Path, core: str) -> None:
    """Warns of a program for another core, which was run with --any-core."""
    screen.warn(
        f"{program} was built for {core}; its instructions and its timing here are a Cortex-M3's: "
        "compile it with -mcpu=cortex-m3 for figures of that core"
    )


def _secret(text: str) -> tuple[str, int | None]:
    name, colon, size = text.partition(":")
    known = not colon or (size.isdecimal() and len(size) <= _DIGITS and int(size) > 0)
    if not name or not known:
        raise typer.BadParameter(f"--secret {text}: expected NAME or NAME:BYTES")
    return name, int(size) if colon else None


def _wait_states(text: str) -> tuple[str, int]:
    from warifu.m3.running import MAX_WAIT_STATES

    memory, _, cycles = text.partition("=")
    known = cycles.isdecimal() and len(cycles) <= _DIGITS and int(cycles) <= MAX_WAIT_STATES
    if not memory or not known:
        raise typer.BadParameter(
            f"--wait-states {text}: expected MEMORY=CYCLES such as flash=2, "
            f"at most {MAX_WAIT_STATES}"
        )
    return memory, int(cycles)


#: Digits of a size or of wait states at most.
_DIGITS = 9

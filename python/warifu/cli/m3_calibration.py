# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate m3`: a benchmark on the simulated Cortex-M3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NO_PROFILE, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.m3 import (
    AnyCore,
    Arguments,
    Chip,
    Elf,
    Input,
    Most,
    Plain,
    Waits,
    finite,
    options_of,
    say_other_core,
)
from warifu.cli.screen import FormatOption, named

if TYPE_CHECKING:
    from warifu.calibrate.m3 import Outcome
    from warifu.report.table import Table


def m3(
    elf: Elf,
    mhz: Annotated[
        float, typer.Option("--mhz", min=0.001, callback=finite, help="The chip's clock rate.")
    ],
    when: Annotated[
        list[str] | None,
        typer.Option(
            "--when",
            metavar="KEY=WORD",
            help="A choice of the timed stack: tls=1.3, group=x25519, ... Repeatable.",
        ),
    ] = None,
    chip: Chip = "mps2-an385",
    max_instructions: Most = 10_000_000_000,
    wait_states: Waits = None,
    plain: Plain = False,
    any_core: AnyCore = False,
    input_file: Input = None,
    arguments: Arguments = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named,
            metavar="PATH",
            help="The profile's file; default: devices/ELF.toml in $WARIFU_PROFILES or profiles/.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Run a benchmark on the simulated Cortex-M3 and write a device profile from it.

    The benchmark prints `name bytes cycles` for each call that it timed; names are those of
    operations in device profiles (client.send.ClientHello). docs/reference/m3.md has an example in
    C. It is run by both readings of the cycle rules; the profile uses the high one.

    Examples:

      warifu calibrate m3 bench.elf --mhz 100 --when tls=1.3 --when group=x25519

      warifu predict --device bench --server xeon-2-5-ghz-vm --link lte-m --stack https/tls1.3
      --group x25519 --authentication server
    """
    from warifu import study
    from warifu.calibrate.m3 import calibrate_m3, condition

    try:
        choices = condition(when or [])
    except ValueError as error:
        raise typer.BadParameter(f"--when {error}") from None
    options = options_of(
        chip, max_instructions, wait_states, False, input_file, arguments, plain=plain,
        any_core=any_core,
    )  # fmt: skip
    others = list(study.profile_texts(study.profile_folders()))
    with when_interrupted(NO_PROFILE):
        outcome = calibrate_m3(
            elf, mhz, options=options, when=choices, out=out, folder=study.own_folder("devices"),
            others=others,
        )  # fmt: skip
    screen.say(
        f"wrote {outcome.path}: {screen.counted(len(outcome.costs), 'cost')}, run {outcome.run_id}"
    )
    if outcome.other_core is not None:
        say_other_core(elf, outcome.other_core)
    if outcome.taken:
        screen.warn(
            f"costs depend on choices that no --when names: taken as {', '.join(outcome.taken)}; "
            "name them if the benchmark's stack has others"
        )
    if outcome.assumed:
        screen.warn(
            f"{', '.join(outcome.assumed)} count as zero: the benchmark did not time them, so "
            "predictions are a best case"
        )
    if outcome.missing:
        screen.warn(
            f"a prediction for {outcome.stack} lacks {', '.join(outcome.missing)}: add them to the "
            "benchmark"
        )
    screen.show([_costs(outcome, mhz)], form)
    return OK


def _costs(outcome: Outcome, mhz: float) -> Table:
    from warifu.cli import m3_tables
    from warifu.report.table import Column, Table

    heads = ("calls", "sizes", "cycles per call", "cycles per byte", "ms per call", "max error")
    table = Table(f"costs at {mhz:g} MHz", [Column("operation", number=False), *map(Column, heads)])
    for one in outcome.costs:
        milliseconds = one.call[0] / mhz / 1e3, one.call[1] / mhz / 1e3
        table.add(
            [one.name, f"{one.calls:,}", f"{one.sizes:,}", _band(*one.call, 0),
             _band(*one.per_byte, 2), _band(*milliseconds, 3), f"{one.off:.1%}"],
            {"operation": one.name, "calls": one.calls, "sizes": one.sizes,
             "call_cycles_low": one.call[0], "call_cycles_high": one.call[1],
             "byte_cycles_low": one.per_byte[0], "byte_cycles_high": one.per_byte[1],
             "off": one.off},
        )  # fmt: skip
    table.notes.append(f"Kind: {outcome.kind}. Run {outcome.run_id}.")
    if outcome.other_core is not None:
        table.notes.append(m3_tables.other_core(outcome.other_core))
    table.notes.append(
        "Low and high are two readings of the chip's rules; the profile uses the high one. Max "
        "error: the largest deviation of a call from the fit."
    )
    return table


def _band(low: float, high: float, digits: int) -> str:
    ends = f"{low:,.{digits}f}", f"{high:,.{digits}f}"
    return ends[1] if ends[0] == ends[1] else " to ".join(ends)

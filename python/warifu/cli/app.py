# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The verbs of the command line."""

from __future__ import annotations

import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from warifu import identity
from warifu.cli import (
    agent,
    board_calibration,
    importing,
    m3_calibration,
    screen,
    token_calibration,
)
from warifu.cli import devices as device_list
from warifu.cli.card import card_app
from warifu.cli.cells import cells_app
from warifu.cli.choices import Choices, with_choices
from warifu.cli.dds import dds_app
from warifu.cli.errors import ENVIRONMENT, FAILED, OK
from warifu.cli.formats import Format, Plan
from warifu.cli.group import Group
from warifu.cli.init import init_app
from warifu.cli.m3 import m3_app
from warifu.cli.reproduction import reproduce_app
from warifu.cli.screen import WIDTH, FormatOption, named
from warifu.printable import printable

_EPILOG = """Exit codes: 0 ok; 1 a requirement or a gate failed, or every connection did; 2 a
mistake in the command line, a study or a profile, or damaged results; 3 this machine lacks
something, or the folder of results is taken; 130 interrupted."""

app = typer.Typer(
    name="warifu",
    cls=Group,
    help="""Predict what securing an IoT connection costs, measure the same on real software, and
    see how far apart the two are.

    A question needs no file:

      warifu predict --device this-host --key-store iot-safe-sakomoto --link lte-m
      --stack https/tls1.3

    A study asks many at once:

      warifu init meter.toml && warifu run meter.toml""",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: rich would take `[require]` for markup, and takes a tenth of a second to load.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version() -> None:
    from warifu import _core, provenance

    commit, dirty = provenance.version()
    where = f" ({commit[:12]}{', changed' if dirty else ''})" if commit else ""
    print(f"warifu {_core.__version__}{where}")


def _version_flag(wanted: bool) -> None:
    if wanted:
        _print_version()
        raise typer.Exit


#: What needs root, with sudo; every other command becomes the user who called it.
_OF_ROOT = {"measure", "run", "doctor", "calibrate", "card", "reproduce"}


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_version_flag, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    if context.invoked_subcommand not in _OF_ROOT:
        identity.become_caller()


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        parser=named,
        metavar="PATH",
        help="Folder of the study's results; results/STUDY by default.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Workers; all cores by default.", show_default=False),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="CASE",
        help="The case that others are held against: its number from 1, or part of its label; "
        "the first by default.",
        show_default=False,
    ),
]
Results = Annotated[
    Path,
    typer.Argument(
        metavar="STUDY_OR_RESULTS",
        help="A study file or a folder of results.",
        show_default=False,
    ),
]


class Tier(StrEnum):
    """How a prediction treats chance."""

    EVENTS = "events"
    EXACT = "exact"
    AUTO = "auto"


@app.command(epilog=_EPILOG)
@with_choices
def predict(
    choices: Choices,
    out: Out = None,
    threads: Threads = None,
    keep_trials: Annotated[
        bool, typer.Option("--keep-trials", help="Store every trial, not distributions.")
    ] = False,
    tier: Annotated[
        Tier,
        typer.Option(
            "--tier",
            help="events: random trials. exact: patterns of losses by their probability, where "
            "losses and costs alone depend on chance; trials where nothing is lost. auto: exact "
            "where a case allows it.",
        ),
    ] = Tier.EVENTS,
    baseline: Baseline = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Simulate every case, and answer: which choice costs what, and which deadline is met.

    Exit code 1 if a bound of `[require]` or --require is missed, or not sure to be met.

    Examples:

      warifu predict studies/first-loop.toml

      warifu predict --link lte-m --stack https/tls1.2 --session resumed

      warifu predict --link nb-iot --vary stack.authentication=server,mutual
      --require 'https.establishment.p99 < 8 s'

      warifu predict studies/first-loop.toml --set link.rtt="80 ms" --format csv > 80ms.csv
    """
    from warifu import lock
    from warifu.cli import halves, verdicts

    if keep_trials and tier is not Tier.EVENTS:
        raise typer.BadParameter(
            "stores trials, which --tier exact has none of: drop one", param_hint="--keep-trials"
        )
    loaded = choices.load()
    if any(path == "trials" for path, _ in loaded.overrides):
        screen.warn(
            "trials has no effect on a prediction, it counts measured connections: use --set "
            "predict_trials=N"
        )
    place = halves.folder_of(loaded, out)
    with lock.held(place, "predict"):
        folder = halves.predict(loaded, place, threads, keep_trials, tier.value)
        answered = halves.show(folder, form, baseline)
        silent = verdicts.nothing_succeeded(folder)
    screen.say(f"results: {folder}")
    return FAILED if silent or answered.contradicted else OK


@app.command(epilog=_EPILOG)
@with_choices
def measure(
    choices: Choices,
    out: Out = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", min=1, help="Connections a case; as in the study by default."),
    ] = None,
    per_second: Annotated[
        float | None,
        typer.Option(
            "--connections-per-second",
            min=0.1,
            help="How often connections begin; at most 25, or 100 where packets are lost, and so "
            "seldom that the server is busy for under 5 % of the time. Over a link with a rate, "
            "ordered jitter or bursts of loss each waits for the one before.",
        ),
    ] = None,
    others_max: Annotated[
        float | None,
        typer.Option(
            "--others-max",
            min=0.0,
            max=100.0,
            help="Measure a part again beside which other work took more than so many per cent of "
            "the processors. By default it is put on record, and from 5 % on not judged.",
        ),
    ] = None,
    baseline: Baseline = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Run the same cases on real programs over the emulated link.

    Needs root and a quiet machine; `warifu doctor` lists what is missing. An interrupted
    measurement resumes where it stopped.

    Examples:

      sudo .venv/bin/warifu measure studies/first-loop.toml

      sudo .venv/bin/warifu measure --link loopback --rtt "60 ms" --stack https/tls1.3 --trials 500
    """
    from warifu import lab, lock
    from warifu.cli import halves, verdicts

    for option, value in (
        ("--connections-per-second", per_second),
        ("--others-max", others_max),
    ):
        # A range lets "nan" pass, and "inf" where it has no end.
        if value is not None and not math.isfinite(value):
            raise typer.BadParameter(f"{option} {value}: expected a number")
    loaded = choices.load(stand_in=False)
    place = halves.folder_of(loaded, out)
    with lock.held(place, "measure"):
        share = None if others_max is None else others_max / 100.0
        settings = lab.Settings(rate_per_second=per_second, others_bound=share)
        folder, summary = halves.measure(loaded, place, trials, settings)
        if not summary.measured:
            screen.warn("no case could be measured here; the reasons are above")
            return ENVIRONMENT
        answered = halves.show(folder, form, baseline)
        silent = verdicts.nothing_succeeded(folder)
    screen.say(f"results: {folder}")
    if summary.given_up:
        return ENVIRONMENT
    return FAILED if silent or answered.contradicted else OK


@app.command(epilog=_EPILOG)
def compare(
    results: Results,
    every: Annotated[
        bool, typer.Option("--all", help="Also figures that no gate judges, and distances.")
    ] = False,
    worst_first: Annotated[
        bool, typer.Option("--worst-first", help="Order by how badly a gate is missed.")
    ] = False,
    baseline: Baseline = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Join the two halves case by case, with the error, its interval and a verdict.

    Exit code 1 if a gate fails; an undecided one needs more trials and fails nothing.

    Examples:

      warifu compare results/first-loop

      warifu compare studies/first-loop.toml --format latex
    """
    from warifu.cli import verdicts

    folder, comparison = verdicts.compare_given(results)
    verdicts.show_comparison(folder, comparison, form, every, worst_first, baseline)
    return FAILED if str(comparison.verdict) == "fail" else OK


@app.command(epilog=_EPILOG)
@with_choices
def run(
    choices: Choices,
    out: Out = None,
    threads: Threads = None,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="Measured connections a case.")
    ] = None,
    measured: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Whether to measure as well.")
    ] = True,
    brief: Annotated[
        bool, typer.Option("--brief", help="The largest differences alone, in one sentence.")
    ] = False,
    baseline: Baseline = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Predict, measure, compare and report; exit code 0 only if `[require]` holds.

    A requirement holds if its whole 95 % interval is within the bound in every predicted case,
    and no measured case contradicts it. Where this machine cannot measure, it says so and goes
    on with the prediction.

    Examples:

      sudo .venv/bin/warifu run studies/first-loop.toml

      warifu run meter.toml --no-measure && echo the deadline is met
    """
    from warifu.cli import verdicts
    from warifu.cli.ending import Shown

    shown = Shown(form, baseline, brief)
    return verdicts.run(choices.load(), out, threads, trials, measured, shown)


@app.command(epilog=_EPILOG)
def report(
    results: Results,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named,
            metavar="PATH",
            help="The page; RESULTS/report.html by default.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Print the report's tables instead of a page."),
    ] = None,
    baseline: Baseline = None,
) -> int:
    """Write one self-contained HTML page from a folder of results.

    Examples:

      warifu report results/first-loop

      warifu report results/first-loop --format latex > tables.tex
    """
    from warifu.cli import verdicts

    verdicts.report(results, out, form, baseline)
    return OK


@app.command(epilog=_EPILOG)
@with_choices
def trace(
    choices: Choices,
    case: Annotated[
        str, typer.Option("--case", help="Number from 1, or part of a case's label.")
    ] = "1",
    request: Annotated[
        bool, typer.Option("--request", help="The HTTP request instead, as it is sent.")
    ] = False,
    costs: Annotated[
        bool,
        typer.Option(
            "--costs",
            help="What each operation costs: its own figure, or a recipe with its primitives; and "
            "all that a profile lacks.",
        ),
    ] = False,
    timeline: Annotated[
        bool,
        typer.Option(
            "--timeline",
            help="One predicted connection with its times, packets and losses: what `warifu "
            "predict` stored.",
        ),
    ] = False,
    quantile: Annotated[
        float,
        typer.Option("--quantile", help="Of --timeline: 0.5, a typical one, or 0.99, a slow one."),
    ] = 0.5,
) -> int:
    """Print what happens in one case, step by step, without time.

    Examples:

      warifu trace --stack https/tls1.3 --authentication mutual

      warifu trace studies/first-loop.toml --case "tls 1.2, session resumed"

      warifu trace studies/first-loop.toml --timeline --quantile 0.99

      warifu trace --device nrf52840 --server xeon-2-5-ghz-vm --stack https/tls1.3 --costs
    """
    from warifu import _core

    loaded = choices.load()
    index = _case_index([one.label for one in loaded.study.cases], case)
    if timeline:
        from warifu.cli import timelines

        sys.stdout.write(timelines.text(loaded, index, quantile))
    elif costs:
        from warifu.cli import operation_costs

        found = operation_costs.text(_core.operation_costs(loaded.study, index))
        sys.stdout.write(screen.fitted(printable(found, keep="\n"), sys.stdout))
    elif request:
        sys.stdout.write(printable(_core.request_text(loaded.study.cases[index]), keep="\r\n"))
    else:
        text = _core.trace_text(loaded.study, index).rstrip("\n")
        sys.stdout.write(printable(text, keep="\n") + "\n")
    return OK


@app.command(epilog=_EPILOG)
def doctor(
    pcsc: Annotated[
        bool, typer.Option("--pcsc", help="Check only the steps to a SIM in a card reader.")
    ] = False,
    reader: Annotated[
        str | None,
        typer.Option("--reader", help="The same, in the reader whose name contains this."),
    ] = None,
    modem: Annotated[
        Path | None,
        typer.Option("--modem", help="Check only the steps to a SIM behind this modem."),
    ] = None,
    baud: Annotated[
        int | None, typer.Option("--baud", help="The rate of the modem's line; 115200.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Check this machine: what is missing or wrong, each with a fix. Exit code 3 if any is missing.

    With --pcsc or --modem it checks each step to an IoT SAFE SIM, up to the first that fails.

    Examples:

      sudo .venv/bin/warifu doctor

      warifu doctor --pcsc

      warifu doctor --modem /dev/ttyUSB2
    """
    from warifu import doctor as room
    from warifu.report.table import Column, Table

    if baud is not None and modem is None:
        raise typer.BadParameter("--baud is the rate of a modem's line: add --modem LINE")
    if modem is not None and str(modem) == ".":
        raise typer.BadParameter("--modem: expected a line, such as /dev/ttyUSB2")
    a_card = pcsc or reader is not None or modem is not None
    if a_card:
        from warifu.doctor import card

        findings = [*card.of_reader(reader)] if pcsc or reader is not None else []
        findings += card.of_modem(modem, baud or 115200) if modem is not None else []
    else:
        findings = room.examine()
    # What is found and its hint share a column, so that both can be read in 80.
    heads = ("", "what", "found")
    table = Table("this machine", [Column(head, number=False) for head in heads])
    for one in findings:
        found = "; ".join(filter(None, (one.found, one.hint)))
        table.add([one.status, one.name, found], one.row())
    missing = sum(one.status == "missing" for one in findings)
    table.notes.append(
        "Nothing is missing."
        if not missing
        else f"{missing} missing."
        + ("" if a_card else " Predicting needs only the calibration; measuring needs everything.")
    )
    screen.show([table], form, width=WIDTH)
    return room.exit_code(findings)


@app.command()
def version() -> int:
    """Print the version and, in a checkout, the commit."""
    _print_version()
    return OK


app.add_typer(card_app, name="card")
app.add_typer(agent.agent_app, name="agent")
app.add_typer(m3_app, name="m3")
app.add_typer(dds_app, name="dds")
app.add_typer(cells_app, name="cells")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(init_app, name="init")
for _one in init_app.registered_commands:
    _one.epilog = _EPILOG
app.command("import", epilog=_EPILOG)(importing.import_output)
app.command(epilog=_EPILOG)(device_list.devices)
app.command(epilog=_EPILOG)(agent.token)

calibrate_app = typer.Typer(
    help="Time a machine, a token or an emulated chip and write a profile from it.",
    no_args_is_help=True,
)
app.add_typer(calibrate_app, name="calibrate")


@calibrate_app.callback()
def _calibrate(context: typer.Context) -> None:
    """Only the host's calibration needs root, and a token's module is anybody's code."""
    if context.invoked_subcommand != "host":
        identity.become_caller()


calibrate_app.command("token", epilog=_EPILOG)(token_calibration.token)
calibrate_app.command("m3", epilog=_EPILOG)(m3_calibration.m3)
calibrate_app.command("board", epilog=_EPILOG)(board_calibration.board)


@calibrate_app.command("host", epilog=_EPILOG)
def calibrate_host(
    studies: Annotated[
        list[Path] | None,
        typer.Option("--for", metavar="STUDY", help="Time only what this study needs. Repeatable."),
    ] = None,
    if_stale: Annotated[
        bool, typer.Option("--if-stale", help="Keep a profile that fits this machine.")
    ] = False,
    plan: Annotated[
        Plan,
        typer.Option(
            "--plan", help="How long: about 4, 7 or 35 minutes; with Cyclone DDS about 7, 10 or 43."
        ),
    ] = Plan.DEFAULT,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named,
            metavar="PATH",
            help="The profile; profiles/devices/this-host.toml by default.",
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Time every handshake message and system cost of this machine; needs root.

    The runs it makes are never judged, and the profile carries their run_id.

    Examples:

      sudo .venv/bin/warifu calibrate host

      sudo .venv/bin/warifu calibrate host --if-stale --for studies/first-loop.toml
    """
    from warifu.cli import calibration

    table = calibration.host(studies or [], out, plan.value, if_stale)
    if table is not None:
        screen.show([table], form)
    return OK


def _case_index(labels: list[str], wanted: str) -> int:
    """The index of a case by its number from 1 or a part of its label."""
    if wanted.isdigit():
        if 1 <= int(wanted) <= len(labels):
            return int(wanted) - 1
        raise typer.BadParameter(f"--case {wanted}: expected a number from 1 to {len(labels)}")
    found = [index for index, label in enumerate(labels) if wanted == label]
    found = found or [index for index, label in enumerate(labels) if wanted in label]
    if len(found) == 1:
        return found[0]
    some = "; ".join(
        labels[index] or "the only case" for index in (found or range(len(labels)))[:4]
    )
    many = "several cases" if found else "no case"
    raise typer.BadParameter(f"--case {wanted!r}: names {many}; labels are such as: {some}")

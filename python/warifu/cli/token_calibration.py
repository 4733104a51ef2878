# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate token`: the paper's Table 3 and Fig. 2 for any token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NO_PROFILE, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named

if TYPE_CHECKING:
    from warifu.calibrate.statistics import Estimate, Statistics
    from warifu.calibrate.token import Outcome
    from warifu.report.table import Table

_FIGURES = ("mean", "sd", "p50", "p90", "p99")


class Kind(StrEnum):
    """The method of the times."""

    MEASURED = "measured"
    EMULATED = "emulated"


def token(
    module: Annotated[
        Path | None, typer.Option("--module", help="PKCS#11 module of the token.")
    ] = None,
    virtual_card: Annotated[
        str | None,
        typer.Option(
            "--virtual-card",
            help="Instead: Warifu's module over a virtual card with this timing profile.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--token", help="Label of the token, if there are several.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Label of the key, if there are several.")
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Ask for the PIN.")] = False,
    pin_file: Annotated[
        Path | None, typer.Option("--pin-file", help="A file with the PIN; - for stdin.")
    ] = None,
    trials: Annotated[
        int, typer.Option("-n", "--trials", min=2, help="Trials of each mode.")
    ] = 100,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Also time a new process for each signature.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the order and of the virtual card.")
    ] = 1,
    kind: Annotated[
        Kind | None,
        typer.Option("--kind", help="Method of the times, instead of the detected one."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the profile; the token's label by default."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named,
            metavar="PATH",
            help="File of the profile, instead of a name.",
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Time a token's signatures call by call and write a key-store profile from them.

    In turns: sign_only (a session is kept), total (a new session each time) and local_sw (openssl
    dgst). The PIN is tried once; a wrong one ends it.

    Examples:

      warifu calibrate token --module /usr/lib/softhsm/libsofthsm2.so --token test --pin

      warifu calibrate token --virtual-card iot-safe-sakomoto -n 10000

      warifu predict --device this-host --key-store test --stack https/tls1.3
    """
    from warifu import study
    from warifu.calibrate import build
    from warifu.calibrate.token import calibrate_token
    from warifu.calibrate.token_bench import Plan
    from warifu.cli import card_program

    _refuse_module(module, virtual_card is not None)
    _refuse_name(name, out)
    card = None
    if virtual_card is not None:
        _refuse_beside_virtual_card(
            {"--token": label, "--key": key, "--pin": pin, "--pin-file": pin_file,
             "--fresh": fresh, "--kind": kind}
        )  # fmt: skip
        card = card_program.timing_profile(virtual_card, "--virtual-card")
        name = name or f"virtual-{card.stem}"
    build.refuse_development()
    digits = card_program.pin(pin, pin_file, new=False)
    others = list(study.profile_texts(study.profile_folders()))
    plan = Plan(module, card, label, key, digits, trials, seed, fresh)
    with when_interrupted(NO_PROFILE), screen.progress("timing the token") as report:
        outcome = calibrate_token(
            plan,
            name=name if out is None else out.stem,
            out=out,
            folder=study.own_folder("key-stores"),
            others=others,
            kind=None if kind is None else kind.value,
            progress=lambda done, total: report(done, total),
        )
    for warning in outcome.warnings:
        screen.warn(warning)
    screen.say(f"wrote {outcome.path}: {outcome.kind}, because {outcome.why_kind}")
    use = (
        f"use it with --key-store {outcome.path.stem}"
        if out is None
        else "a study finds it in a folder profiles/key-stores where warifu is started"
    )
    screen.say(f"run {outcome.run_id}; {use}")
    screen.show([modes_table(outcome), calls_table(outcome)], form)
    return OK


def _refuse_module(module: Path | None, virtual: bool) -> None:
    if (module is None) != virtual:
        raise typer.BadParameter("expected either --module or --virtual-card")
    if module is not None and module.is_dir():
        raise typer.BadParameter(f"--module {module}: is a folder: name a module in it")
    if module is not None and not module.exists():
        raise typer.BadParameter(f"--module {module}: not found: name the module of the token")


def _refuse_name(name: str | None, out: Path | None) -> None:
    from warifu.calibrate.token import slug

    if name is not None and out is not None:
        raise typer.BadParameter("--out names the profile already: omit --name")
    if name is not None and slug(name) != name:
        raise typer.BadParameter(
            f"--name {name}: expected lower-case letters, digits and hyphens, such as {slug(name)}"
        )
    if out is not None and out.suffix != ".toml":
        raise typer.BadParameter(f"--out {out}: expected a name that ends with .toml")


def _refuse_beside_virtual_card(given: Mapping[str, object]) -> None:
    """The card on the virtual clock has its own key and PIN, no processes, and one kind."""
    for flag, value in given.items():
        if value:
            raise typer.BadParameter(f"{flag} needs --module: omit it, or --virtual-card")


def modes_table(outcome: Outcome) -> Table:
    """Table 3: each mode with its intervals, and the paper's row below it."""
    from warifu.calibrate.paper import SOURCE, TABLE_3

    table = modes_heads(
        f"signatures of {outcome.token['label']}, ms (95 % intervals), beside {SOURCE}"
    )
    for mode, found in outcome.statistics.items():
        of = "machine" if mode == "local_sw" else "token"
        add_mode(table, mode, found, of, f"this {of}")
        if mode in outcome.card:
            table.add(_own(mode, outcome.card[mode]), {"mode": mode, "of": "card",
                                                       **outcome.card[mode]})  # fmt: skip
        if mode in TABLE_3:
            add_paper(table, mode)
    table.notes.append(
        "sign_only: C_SignInit and C_Sign in a kept session; total: from C_OpenSession on, a new "
        "session each time; local_sw: the whole `openssl dgst -sha256 -sign`"
        + ("; fresh: a new process each time, from C_Initialize on."
           if "fresh" in outcome.statistics else ".")
    )  # fmt: skip
    if outcome.card:
        table.notes.append(
            "The card itself: its timing model alone, under another seed, for the commands that "
            "the module sent."
        )
    table.notes.append(f"Kind: {outcome.kind}, because {outcome.why_kind}. Run {outcome.run_id}.")
    return table


def modes_heads(title: str) -> Table:
    """An empty table of the columns of Table 3."""
    from warifu.report.table import Column, Table

    heads = ("mean", "sd", "P50", "P90", "P99", "over 1 s")
    return Table(
        title,
        [Column("mode", number=False), Column("of", number=False), Column("n"),
         *(Column(head) for head in heads)],
    )  # fmt: skip


def add_mode(table: Table, mode: str, found: Statistics, of: str, shown: str) -> None:
    """A row of what was timed: its name for programs and for people."""
    slow = found.over_1_s
    counts = f"{slow.value:.0f} ({slow.low:.1f} to {slow.high:.1f})"
    table.add(
        [mode, shown, str(found.n), *(_ms(getattr(found, one)) for one in _FIGURES), counts],
        {"mode": mode, "of": of, "n": found.n, **_estimates(found)},
    )


def add_paper(table: Table, mode: str) -> None:
    """The row of Table 3 for a mode."""
    from warifu.calibrate.paper import TABLE_3

    row = TABLE_3[mode]
    table.add(
        [mode, "the paper's", str(row.n), *(f"{getattr(row, one):.1f}" for one in _FIGURES),
         str(row.over_1_s)],
        {"mode": mode, "of": "paper", "n": row.n,
         **{f"{one}_ns": getattr(row, one) * 1e6 for one in _FIGURES}, "over_1_s": row.over_1_s},
    )  # fmt: skip


def calls_table(outcome: Outcome) -> Table:
    """Fig. 2: where a signature's time goes."""
    from warifu.report.table import Column, Table

    table = Table(
        "where the time goes, ms (95 % intervals)",
        [Column("mode", number=False), Column("call", number=False), Column("mean"),
         Column("P50"), Column("share")],
    )  # fmt: skip
    for mode, calls in outcome.calls.items():
        add_calls(table, mode, calls, outcome.statistics[mode].mean.value)
    table.notes.append(paper_of_calls())
    return table


def add_calls(
    table: Table, mode: str, calls: Mapping[str, Statistics], whole_ns: float, of: str | None = None
) -> None:
    """A row for each call of a mode whose trials took `whole_ns` on the average; with `of` in a
    column of its own after the mode."""
    from warifu.calibrate.token_bench import LIFE
    from warifu.report.figures import number

    for call, found in calls.items():
        share = found.mean.value / whole_ns if call != LIFE and whole_ns > 0 else float("nan")
        shown = "" if math.isnan(share) else f"{number(share * 100, 1)} %"
        table.add(
            [mode, *([] if of is None else [of]), call, _ms(found.mean), _ms(found.p50), shown],
            {"mode": mode, **({} if of is None else {"of": of}), "call": call,
             **_estimates(found), "share": share},
        )  # fmt: skip


def paper_of_calls() -> str:
    """What the paper has of calls."""
    from warifu.calibrate.paper import TABLE_3

    before = TABLE_3["total"].mean - TABLE_3["sign_only"].mean
    return (
        f"The paper's Fig. 2: C_SignInit and C_Sign {TABLE_3['sign_only'].mean} ms, "
        f"all before them {before:.0f} ms."
    )


def _own(mode: str, card: dict[str, float]) -> list[str]:
    figures = [f"{card[f'{one}_ns'] / 1e6:.1f}" if f"{one}_ns" in card else "" for one in _FIGURES]
    return [mode, "the card itself", "", *figures, ""]


def _ms(estimate: Estimate) -> str:
    from warifu.compare.stats import Interval
    from warifu.report.figures import ms_with

    return ms_with(estimate.value, Interval(estimate.low, estimate.high))


def _estimates(found: Statistics) -> dict[str, float]:
    record: dict[str, float] = {}
    for one in _FIGURES:
        estimate: Estimate = getattr(found, one)
        record |= {f"{one}_ns": estimate.value, f"{one}_low_ns": estimate.low,
                   f"{one}_high_ns": estimate.high}  # fmt: skip
    slow = found.over_1_s
    return record | {
        "over_1_s": slow.value, "over_1_s_low": slow.low, "over_1_s_high": slow.high,
    }  # fmt: skip

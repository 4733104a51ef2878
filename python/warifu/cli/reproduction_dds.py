# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu reproduce sros2-aead` and `warifu reproduce dds-offload`: the runs that they need."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warifu import identity
from warifu.cli import screen
from warifu.cli.errors import FAILED, NOTHING_WRITTEN, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption

if TYPE_CHECKING:
    from warifu.dds.sending import Exchange, Sender, Sent
    from warifu.reproduce.dds_offload import Seen as Offload
    from warifu.reproduce.dds_sends import Call
    from warifu.reproduce.sros2_aead import Seen

PeriodOption = Annotated[
    int,
    typer.Option(
        "--period-us", min=100, max=1_000_000, help="Microseconds from one message to the next."
    ),
]

EPILOG = """Exit codes: 0 if all claims with a recorded verdict (counts and arithmetic, no times)
came out so; 1 if one came out otherwise (FAILS), or something could not be run here (INCOMPLETE,
with the fix); 2 a mistake in the command line; 3 keys or a folder could not be made."""

#: What failed runs are called, where nothing else does.
Step = tuple[str, "Exchange"]


def sros2_aead(
    sets: Annotated[
        int,
        typer.Option("--sets", min=1, max=1000, help="Senders of each kind, a new process each."),
    ] = 10,
    sends: Annotated[
        int, typer.Option("--sends", min=10, max=10_000, help="Messages that a sender sends.")
    ] = 100,
    period_us: PeriodOption = 10_000,
    calls: Annotated[
        int,
        typer.Option(
            "--calls",
            min=10,
            max=1_000_000,
            help="Calls of each AEAD that are timed without a middleware.",
        ),
    ] = 10_000,
    form: FormatOption = Format.TABLE,
) -> int:
    """The paper on other AEADs in SROS2 beside Fast DDS and Cyclone DDS that really have them.

    Sends 16-byte messages under an SROS2 keystore, in network namespaces, as root: Fast DDS with
    AES-GCM, with AEGIS and Ascon in its place (an experiment), and without security, interleaved;
    Cyclone DDS with Warifu's plugin. Claims that cannot be judged here say why. Takes some three
    minutes; with fewer sets less.

    Examples:

      sudo .venv/bin/warifu reproduce sros2-aead

      sudo .venv/bin/warifu reproduce sros2-aead --sets 1 --sends 20

      sudo .venv/bin/warifu reproduce sros2-aead --format json > sros2-aead.json
    """
    from warifu.reproduce import sros2_aead_tables

    with when_interrupted(NOTHING_WRITTEN):
        seen = _sros2_aead(sets, sends, period_us, calls)
        tables, holds = sros2_aead_tables.tables(seen)
    screen.show(tables, form)
    return OK if holds else FAILED


def _sros2_aead(sets: int, sends: int, period_us: int, calls: int) -> Seen:
    from warifu.dds.sending import Exchange
    from warifu.reproduce import sros2_aead as paper
    from warifu.reproduce.dds_sends import Sends

    fast = Exchange(paper.FAST, count=sends, period_us=period_us)
    kinds = {paper.PLAIN: replace(fast, secured=False), "aes_gcm": fast}
    kinds |= {one.key: replace(fast, swap=one.swap) for one in paper.CIPHERS if one.swap}
    # A process loses what it has warmed up: one of each kind after the other, then again.
    steps = [(key, kind) for _ in range(sets) for key, kind in kinds.items()]
    many = Exchange(paper.CYCLONE, count=max(sends, 100), period_us=period_us)
    steps += [(one.key, replace(many, init=one.init)) for one in paper.CIPHERS]
    sent, missing = run("sros2-aead", steps)
    by_key = {
        key: tuple(one for what, one in sent if (what, one.exchange.probe) == (key, paper.FAST))
        for key in kinds
    }
    found, build, why = bench(calls, 16)
    if why:
        missing[paper.BENCH] = why
    return paper.Seen(
        {} if paper.FAST in missing else {key: Sends(every) for key, every in by_key.items()},
        {key: one for key, one in sent if one.exchange.probe == paper.CYCLONE}
        if paper.CYCLONE not in missing
        else {},
        {one.key: found[one.aead] for one in paper.CIPHERS} if found else {},
        build,
        missing,
    )


def dds_offload(
    sets: Annotated[
        int,
        typer.Option("--sets", min=1, max=1000, help="Senders of each kind, a new process each."),
    ] = 2,
    sends: Annotated[
        int, typer.Option("--sends", min=10, max=10_000, help="Messages that a sender sends.")
    ] = 50,
    period_us: PeriodOption = 20_000,
    form: FormatOption = Format.TABLE,
) -> int:
    """The paper on offloading DDS Security's encryption: its arithmetic, and this host's figures.

    Sends messages of 16 B to 1 MB under an SROS2 keystore and without security, in network
    namespaces, as root, by Fast DDS. What accelerators would save on the paper's Raspberry Pi is
    predicted with set-up, bus and every pass over a byte. Claims that cannot be judged here say
    why. Takes some three minutes; with fewer sets less.

    Examples:

      sudo .venv/bin/warifu reproduce dds-offload

      sudo .venv/bin/warifu reproduce dds-offload --sets 1 --sends 10

      sudo .venv/bin/warifu reproduce dds-offload --format md > dds-offload.md
    """
    from warifu.reproduce import dds_offload_tables

    with when_interrupted(NOTHING_WRITTEN):
        seen = _dds_offload(sets, sends, period_us)
        tables, holds = dds_offload_tables.tables(seen)
    screen.show(tables, form)
    return OK if holds else FAILED


def _dds_offload(sets: int, sends: int, period_us: int) -> Offload:
    from warifu.dds.sending import Exchange
    from warifu.reproduce import dds_offload as paper
    from warifu.reproduce.dds_sends import Sends

    each = Exchange(paper.FAST, count=sends, period_us=period_us)
    kinds = {"secured": each, "plain": replace(each, secured=False)}
    steps = [
        (key, replace(kind, bytes=size))
        for _ in range(sets)
        for size in paper.PAYLOADS
        for key, kind in kinds.items()
    ]
    sent, missing = run("dds-offload", steps)

    def of(kind: str) -> dict[int, Sends]:
        if paper.FAST in missing:
            return {}
        return {
            size: Sends(
                tuple(one for key, one in sent if (key, one.exchange.bytes) == (kind, size))
            )
            for size in paper.PAYLOADS
        }

    accelerators, device = _known(paper)
    return paper.Seen(of("secured"), of("plain"), accelerators, device, missing)


def _known(paper: ModuleType) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The profiles of accelerators by name, and what the paper's device's says of its ciphers.

    Raises WarifuError and StudyError.
    """
    from warifu import _core, study

    accelerators: dict[str, dict[str, Any]] = {}
    device: dict[str, Any] = {}
    for kind, name, text, file in study.profile_texts(study.profile_folders()):
        if kind == "accelerator":
            accelerators[name] = _core.accelerator(name, text, file)
        elif (kind, name) == ("device", paper.DEVICE):
            device = paper.terms(text)
    return accelerators, device


def run(what: str, steps: list[Step]) -> tuple[list[tuple[str, Sent]], dict[str, str]]:
    """Makes the runs, in this order; and why those of a probe could not be made, by the probe.

    Raises KeystoreError and OSError."""
    from warifu.dds import sending
    from warifu.lab import interruption

    names = {exchange.probe for _, exchange in steps}
    missing = {name: why for name in names if (why := sending.missing(name, f"reproduce {what}"))}
    for why in dict.fromkeys(missing.values()):
        screen.warn(f"not run here: {why}")
    todo = [step for step in steps if step[1].probe not in missing]
    sent: list[tuple[str, Sent]] = []
    if not todo:
        return sent, missing
    with ExitStack() as stack:
        # Under sudo, too, the folder is root's, who runs what is in it.
        stack.enter_context(identity.as_root())
        # A signal is raised where work waits: no namespace and no folder is left behind.
        stack.enter_context(interruption.deferred())
        report = stack.enter_context(screen.progress(what))
        sender = stack.enter_context(sending.sender(interruption.check))
        for done, (key, exchange) in enumerate(todo):
            report(done, len(todo), f"{exchange.probe} {key} {exchange.bytes:,} B")
            if exchange.probe in missing:
                continue
            one = _attempt(sender, exchange)
            if isinstance(one, str):
                missing[exchange.probe] = one
                screen.warn(one)
            else:
                sent.append((key, one))
        report(len(todo), len(todo))
    return sent, missing


def _attempt(sender: Sender, exchange: Exchange) -> Sent | str:
    """A run, once more if it fails: on a busy machine two ends may not find each other in time."""
    from warifu.dds.sending import SendingError
    from warifu.lab import interruption

    interruption.check()
    try:
        return sender.send(exchange)
    except SendingError as error:
        # Ctrl-C on a terminal ends a compiler, too: that is no failure.
        interruption.check()
        screen.warn(f"{error}; once more")
    try:
        return sender.send(exchange)
    except SendingError as error:
        return str(error)


def bench(calls: int, size: int) -> tuple[dict[str, Call], str, str]:
    """One call of each AEAD, how the bench was built, and why there is neither."""
    from warifu.reproduce.dds_sends import Call
    from warifu.tools import ToolMissing, find

    try:
        program = str(find("warifu-aead-bench"))
    except ToolMissing as error:
        return {}, "", str(error)
    command = [program, "--calls", str(calls), "--bytes", str(size)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, **identity.of_caller()
    )
    try:
        said: dict[str, Any] = json.loads(done.stdout)
        found = {row["aead"]: _call(Call, row) for row in said["rows"]}
        return found, str(said["build"]), ""
    except (ValueError, KeyError, TypeError):
        words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {}, "", f"warifu-aead-bench: {words}: `make setup` builds it anew"


def _call(make: Callable[..., Call], row: dict[str, Any]) -> Call:
    times = row["with_key"]
    return make(
        *(float(times[f"{name}_ns"]) for name in ("mean", "minimum", "maximum", "median")),
        warm=float(row["warm_ns"]),
    )

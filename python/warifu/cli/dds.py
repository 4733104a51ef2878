# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds`: DDS Security."""

from __future__ import annotations

import datetime
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from warifu.cli import dds_advice, screen
from warifu.cli.dds_discovery import discovery as _discovery
from warifu.cli.errors import ENVIRONMENT, FAILED, OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named
from warifu.dds.configuration import Show
from warifu.dds.governance import Basic, Protection

_DAYS = 3650

_EPILOG = """Exit codes: 0 ok; 2 a mistake in the command line, or a keystore that will not do; 3
this machine lacks openssl, or the keystore cannot be written."""

_GROUP_EPILOG = """Examples:

  warifu dds keystore keys --enclave /talker --enclave /listener

  warifu dds keystore keys --enclave /talker --show ros2

  warifu dds profile -- ./publisher --count 1000

  warifu dds advise --device raspberry-pi-3 --payload "1 MiB"

  warifu dds discovery --nodes 2,20 --rtt "20 ms"

docs/reference/dds.md has the rest, with a plugin for Cyclone DDS."""

dds_app = typer.Typer(
    help="DDS Security: keystores for secured DDS and ROS 2 systems, and where their time goes.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_GROUP_EPILOG,
)


@dds_app.callback()
def _root() -> None:
    """DDS Security: keystores for secured DDS and ROS 2 systems, and where their time goes."""


def _kind(option: str, of: str, first: str) -> Any:  # noqa: ANN401 - as typer has it
    return typer.Option(
        option,
        case_sensitive=False,
        help=f"How {of} are protected; as before by default, {first} in a new keystore.",
        show_default=False,
    )


@dds_app.command(epilog=_EPILOG)
def keystore(
    folder: Annotated[
        Path, typer.Argument(parser=named, metavar="FOLDER", help="Made, or added to.")
    ],
    enclaves: Annotated[
        list[str] | None,
        typer.Option(
            "--enclave",
            "-e",
            metavar="/NAME",
            help="A participant's, made with a key where it is not there yet. Repeatable.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[Basic | None, _kind("--data", "samples", "ENCRYPT")] = None,
    metadata: Annotated[Protection | None, _kind("--metadata", "submessages", "ENCRYPT")] = None,
    rtps: Annotated[Protection | None, _kind("--rtps", "whole RTPS messages", "SIGN")] = None,
    discovery: Annotated[
        Protection | None, _kind("--discovery", "announcements of endpoints", "ENCRYPT")
    ] = None,
    liveliness: Annotated[
        Protection | None, _kind("--liveliness", "signs of life", "ENCRYPT")
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            min=1,
            max=36_500,
            help="How long new enclaves are valid, 3650 by default; never longer than their CA, "
            "which is made to last a day more.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        Show | None,
        typer.Option(
            "--show",
            help="Change nothing; print what a program needs to use its enclave.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Make or change a keystore: keys, certificates, governance.

    Laid out as SROS2's: two CAs, signed governance, and for each enclave a P-256 key, its
    certificate and permissions for every topic. The same command again keeps what no flag names:
    keys and certificates always, each line of governance that has no flag, and permissions as
    they stand. It signs governance.xml and permissions.xml anew, so that what you have edited
    there counts.

    A change of governance counts for programs that start after it; copy the enclaves anew to
    where they run.

    Examples:

      warifu dds keystore keys --enclave /talker --enclave /listener

      warifu dds keystore keys --data ENCRYPT --metadata NONE --rtps NONE

      warifu dds keystore keys --metadata SIGN

      warifu dds keystore keys -e /talker --show cyclonedds > talker.xml
    """
    given = {
        "data": data, "metadata": metadata, "rtps": rtps, "discovery": discovery,
        "liveliness": liveliness,
    }  # fmt: skip
    kinds = {field: kind for field, kind in given.items() if kind is not None}
    if show is not None:
        flags = [f"--{field}" for field in (*kinds, *(["days"] if days else []))]
        if flags:
            raise typer.BadParameter(
                f"changes nothing, and {flags[0]} does: run the command without --show first",
                param_hint="--show",
            )
        return _show(show, folder, enclaves or [])
    from warifu.dds.keystore import make

    now = datetime.datetime.now(datetime.UTC)
    made = make(folder, enclaves or [], kinds, now=now, days=days or _DAYS)
    for name, enclave in made.named.items():
        kept = "new" if name in made.new else "kept"
        print(f"{name}: {enclave.folder} ({kept}; valid until {made.ends[name]:%Y-%m-%d})")
    for note in made.notes:
        screen.warn(note)
    if days is not None and not made.new:
        screen.say("--days is for new enclaves, and none was made: the others keep their end")
    protects = ", ".join(f"{field} {'/'.join(values)}" for field, values in made.kinds.items())
    whom = screen.counted(len(made.all), "enclave")
    screen.say(f"governance, signed for {whom}: {protects}")
    one = next(iter(made.named), made.all[0])
    screen.say(
        f"to use it: `warifu dds keystore {shlex.quote(str(folder))} -e {one} --show "
        f"{'|'.join(Show)}`"
    )
    return OK


def _show(what: Show, folder: Path, names: list[str]) -> int:
    from warifu.dds.configuration import shown
    from warifu.dds.keystore import enclaves
    from warifu.dds.keystore_files import KeystoreRefused, refuse_others

    refuse_others(folder)
    there = enclaves(folder)
    if not there:
        raise KeystoreRefused(
            f"{folder}: is no keystore with enclaves: make it with `warifu dds keystore "
            f"{shlex.quote(str(folder))} --enclave /NAME`"
        )
    if not names and len(there) > 1 and what is not Show.ROS2:
        raise KeystoreRefused(
            f"{folder}: has {len(there)} enclaves: say which with --enclave: {', '.join(there)}"
        )
    for name in names or list(there)[:1]:
        if name not in there:
            raise KeystoreRefused(
                f"{folder}: has no enclave {name}: it has {', '.join(there)}; without --show "
                "the command makes it"
            )
        print(shown(what, folder, name, there[name]), end="")
    return OK


class Swap(StrEnum):
    """As in `warifu.dds.profiling`."""

    AEGIS_128L = "aegis-128l"
    AEGIS_256 = "aegis-256"
    ASCON_AEAD128 = "ascon-aead128"


_PROFILE_EPILOG = """Exit codes: the command's own (128 and the number of the signal that ended it);
2 a mistake in the command line; 3 the command cannot be run, no process of it loaded the probe, or
this machine lacks something."""


@dds_app.command(epilog=_PROFILE_EPILOG)
def profile(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help="What to run, with its arguments, after --.", show_default=False
        ),
    ],
    top: Annotated[int, typer.Option("--top", min=1, help="Call sites of each process.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=named,
            metavar="PATH",
            help="Write the figures as observations to a new folder.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="--out may replace an earlier profile.")
    ] = False,
    swap: Annotated[
        Swap | None,
        typer.Option(
            "--swap",
            help="EXPERIMENT: another AEAD in the place of AES-GCM. Protects nothing.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Show what DDS Security costs a program, by message.

    Encryptions, MACs and random bytes of each message, their time, and who asked for them. Runs
    the command with a library that counts what it asks of OpenSSL 3: every Fast DDS and Cyclone
    DDS with security, hence ROS 2 from its own packages. If the program is not secured, that is
    said first. The command's output goes to stderr. Ctrl-C ends the command, and what was seen is
    shown. Under sudo the command runs as the user who called it.

    Call sites tell what is protected: encode_serialized_payload the data (governance's data),
    encode_datawriter_submessage each submessage (metadata), encode_rtps_message whole messages
    (rtps). What a leaner governance would save can be read from there.

    Examples:

      warifu dds profile -- ros2 run demo_nodes_cpp talker

      warifu dds profile --format json -- ./publisher --count 1000 > seen.json

      warifu dds profile --out results/talker -- ./publisher
    """
    from warifu import provenance
    from warifu.cli import dds_tables
    from warifu.dds import profiling

    if out is not None:
        from warifu.dds import observations

        observations.check(out, replace=replace)
    run_id, started = provenance.new_run_id("profiled"), provenance.now()
    if swap is not None:
        screen.warn(
            f"EXPERIMENT: {swap.value} takes the place of AES-GCM; what is sent is not DDS "
            "Security and only understood by a program with the same --swap"
        )
    seen = profiling.run(command, None if swap is None else swap.value)
    screen.show(dds_tables.tables(seen, top), form)
    if out is not None and seen.processes:
        observations.write(out, seen, run_id, started)
        screen.say(f"observations: {out}")
    elif out is not None:
        screen.warn(f"nothing was seen, so nothing was written to {out}")
    if seen.interrupted:
        screen.say("the command was asked to end; this is what was seen until then")
    return seen.code if seen.loaded else ENVIRONMENT


dds_app.command(
    name="discovery", epilog="Exit codes: 0 ok; 2 a mistake in the command line or a profile."
)(_discovery)
dds_app.command(epilog=dds_advice.EPILOG)(dds_advice.advise)


_COMPARE_EPILOG = """Exit codes: 0 the gate passes or is undecided; 1 it fails; 2 a mistake in the
command line, damaged results, or a half is missing."""


@dds_app.command(name="compare", epilog=_COMPARE_EPILOG)
def compare_command(
    given: Annotated[
        Path,
        typer.Argument(
            parser=named, metavar="STUDY", help="A study's file, or its folder of results."
        ),
    ],
    form: FormatOption = Format.TABLE,
) -> int:
    """Judge predictions of DDS by what was measured: one way, cell by cell.

    The median of the cells' errors must be within 10 %, by its 95 % interval, and stands beside
    that of a null model: one way without security, and each byte at the speed of its ciphers.
    Run `warifu predict STUDY` and then `warifu measure STUDY` first.

    Exit code 1 if the gate fails; an undecided one needs more samples or cells and fails nothing,
    as with `warifu compare`.

    Examples:

      warifu dds compare studies/dds-held-out.toml

      warifu dds compare results/dds-held-out --format json
    """
    from warifu.cli import dds_comparison, verdicts
    from warifu.compare import dds as judging
    from warifu.compare.gates import Verdict

    found = judging.compare_folder(verdicts.results_folder(given))
    for warning in found.warnings:
        screen.warn(warning)
    screen.show(dds_comparison.tables(found), form)
    return FAILED if found.verdict is Verdict.FAIL else OK

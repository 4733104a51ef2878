# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds`: DDS Security."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from warifu.cli import screen
from warifu.cli.errors import ENVIRONMENT, OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named
from warifu.dds.governance import Basic, Governance, Protection

_EPILOG = """Exit codes: 0 ok; 2 a mistake in the command line; 3 this machine lacks openssl, or the
keystore cannot be written."""

dds_app = typer.Typer(
    help="DDS Security: keystores for secured DDS and ROS 2 systems, and where their time goes.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dds_app.callback()
def _root() -> None:
    """DDS Security: keystores for secured DDS and ROS 2 systems, and where their time goes."""


def _kind(option: str, of: str) -> Any:  # noqa: ANN401 - as typer has it
    return typer.Option(option, case_sensitive=False, help=f"How {of} are protected.")


@dds_app.command(epilog=_EPILOG)
def keystore(
    folder: Annotated[
        Path, typer.Argument(parser=named, metavar="FOLDER", help="Made, or added to.")
    ],
    enclaves: Annotated[
        list[str],
        typer.Option(
            "--enclave", "-e", metavar="/NAME", help="A participant's, with a key. Repeatable."
        ),
    ],
    data: Annotated[Basic, _kind("--data", "samples")] = Basic.ENCRYPT,
    metadata: Annotated[Protection, _kind("--metadata", "submessages")] = Protection.ENCRYPT,
    rtps: Annotated[Protection, _kind("--rtps", "whole RTPS messages")] = Protection.SIGN,
    discovery: Annotated[
        Protection, _kind("--discovery", "announcements of endpoints")
    ] = Protection.ENCRYPT,
    liveliness: Annotated[Protection, _kind("--liveliness", "signs of life")] = Protection.ENCRYPT,
    days: Annotated[
        int, typer.Option("--days", min=1, max=36_500, help="How long it is valid.")
    ] = 3650,
) -> int:
    """Make a keystore for DDS Security, laid out as SROS2's.

    Two CAs, signed governance, and for each enclave a P-256 key, its certificate and permissions
    for every topic. Governance can be changed later: the same command signs it anew for all
    enclaves that are there, and makes those that are new.

    Examples:

      warifu dds keystore keys --enclave /talker --enclave /listener

      warifu dds keystore keys -e /talker --data ENCRYPT --metadata NONE --rtps NONE
    """
    from warifu.dds.keystore import create

    governance = Governance(data, metadata, rtps, discovery, liveliness)
    now = datetime.datetime.now(datetime.UTC)
    for name, enclave in create(folder, enclaves, governance, now=now, days=days).items():
        print(f"{name}: {enclave.folder}")
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
            help="Write the figures as observations to a folder.",
            show_default=False,
        ),
    ] = None,
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
    """Show what DDS Security costs a program: encryptions, MACs and random bytes of each message.

    Runs the command with a library that counts and times what it asks of OpenSSL 3: of every Fast
    DDS and Cyclone DDS with security, hence of ROS 2 from its own packages. The command's output
    goes to stderr. Ctrl-C ends the command, and what was seen is shown. If the program is not
    secured, that is said.

    Call sites tell what is protected: encode_serialized_payload the data (governance's data),
    encode_datawriter_submessage each submessage (metadata), encode_rtps_message whole messages
    (rtps). What a leaner governance would save can be read from there.

    Examples:

      warifu dds profile -- ros2 run demo_nodes_cpp talker

      warifu dds profile --format json -- ./publisher --count 1000 > seen.json

      warifu dds profile --out results/talker -- ./publisher
    """
    from warifu.cli import dds_tables, provenance
    from warifu.dds import profiling

    run_id, started = provenance.new_run_id("profiled"), provenance.now()
    if swap is not None:
        screen.warn(
            f"EXPERIMENT: {swap.value} takes the place of AES-GCM; what is sent is not DDS "
            "Security and only understood by a program with the same --swap"
        )
    seen = profiling.run(command, None if swap is None else swap.value)
    screen.show(dds_tables.tables(seen, top), form)
    if out is not None:
        from warifu.dds import observations

        observations.write(out, seen, run_id, started)
        screen.say(f"observations: {out}")
    if seen.interrupted:
        screen.say("the command was asked to end; this is what was seen until then")
    return seen.code if seen.loaded else ENVIRONMENT

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds`: DDS Security."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warifu.cli import screen
from warifu.cli.errors import OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named
from warifu.dds.governance import Basic, Governance, Protection

if TYPE_CHECKING:
    from warifu.dds.profile import Profile
    from warifu.report.table import Table

_EPILOG = """Exit codes: 0 ok; 2 a mistake in the command line; 3 this machine lacks openssl, or the
keystore cannot be written."""

dds_app = typer.Typer(
    help="DDS Security: keystores, and where a program's time goes.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dds_app.callback()
def _root() -> None:
    """DDS Security: keystores, and where a program's time goes."""


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


@dds_app.command(
    epilog="""Exit codes: the program's own; 2 a mistake in the command line; 3 the program cannot
    be started, or the probe is missing.""",
    context_settings={"ignore_unknown_options": True},
)
def profile(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="A program and its arguments.")
    ],
    form: FormatOption = Format.TABLE,
) -> int:
    """Run a program and show what it encrypts and signs with OpenSSL, by call site.

    For any middleware that uses OpenSSL 3 by its EVP functions: Fast DDS, in ROS 2 as well, and
    Cyclone DDS with its own plugin. The time of setting up contexts and keys stands beside that of
    the data. Programs have to end by themselves or by Ctrl-C: of one that is killed nothing is
    known.

    Examples:

      warifu dds profile -- ./talker

      warifu dds profile --format json -- ros2 run demo_nodes_cpp talker
    """
    from warifu.dds import profile as room

    seen = room.run(command)
    screen.show([_table(seen, command[0])], form)
    return seen.exit_code


def _table(seen: Profile, program: str) -> Table:
    from warifu.dds.profile import ended_by
    from warifu.report.table import Column, Table

    heads = ("calls", "refused", "bytes", "signed bytes", "set-up (us/call)", "data (us/call)")
    table = Table(
        f"what {Path(program).name} does with OpenSSL's AEADs",
        [Column("function", number=False), Column("", number=False), *map(Column, heads)],
    )
    for site in seen.sites:
        per_call = [f"{of / site.calls / 1000:.2f}" for of in (site.setup_ns, site.data_ns)]
        counts = (site.calls, site.refused, site.bytes, site.associated_bytes)
        table.add(
            [site.function, site.operation, *(f"{count:,}" for count in counts), *per_call],
            dataclasses.asdict(site),
        )
    if ended := ended_by(seen.exit_code):
        table.notes.append(f"the program {ended}")
    if seen.sites:
        setup_ns = sum(site.setup_ns for site in seen.sites)
        data_ns = sum(site.data_ns for site in seen.sites)
        share = setup_ns / max(setup_ns + data_ns, 1)
        table.notes.append(
            f"of {(setup_ns + data_ns) / 1e6:.1f} ms in OpenSSL, {share:.0%} are set-up of "
            f"contexts and keys; the probe itself adds {seen.probe_ns} ns a call, mostly outside "
            "these times"
        )
    elif seen.processes and seen.exit_code <= 128:
        table.notes.append(
            "nothing was encrypted, decrypted or signed: is the middleware built with security, "
            "and is security enabled (ROS_SECURITY_ENABLE=true, a keystore, an enclave)?"
        )
    else:
        table.notes.append(
            "no process has ended by itself: end it by Ctrl-C, or let it return from main"
        )
    return table

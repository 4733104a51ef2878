# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds`: DDS Security."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from warifu.cli.errors import OK
from warifu.cli.screen import named
from warifu.dds.governance import Basic, Governance, Protection

_EPILOG = """Exit codes: 0 ok; 2 a mistake in the command line; 3 this machine lacks openssl, or the
keystore cannot be written."""

dds_app = typer.Typer(
    help="DDS Security: keystores for secured DDS and ROS 2 systems.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dds_app.callback()
def _root() -> None:
    """DDS Security: keystores for secured DDS and ROS 2 systems."""


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

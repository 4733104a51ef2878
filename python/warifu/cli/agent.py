# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu agent` and `warifu token`, which run warifu-agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

_PROGRAM = "warifu-agent"
#: A year, as the program has it (crates/iotsafe/agent/src/jwt.rs).
_LIFETIME_MAX_S = 366 * 86_400
_EPILOG = "PINs come from a prompt, a file or systemd, never from the command line."

agent_app = typer.Typer(
    help=f"""Hold SIMs across programs: session, login, tokens signed ahead, retries, metrics.

    A program that lives shortly then pays for the signature alone.

    {_EPILOG}

    Begin with:

      warifu agent start --card pcsc --pin ask

      export WARIFU_CARD=agent""",
    no_args_is_help=True,
)

Socket = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        help="The agent's socket; $XDG_RUNTIME_DIR/warifu-agent.sock by default.",
        show_default=False,
    ),
]


@agent_app.command(epilog=_EPILOG)
def start(
    card: Annotated[
        list[str] | None,
        typer.Option(
            "--card",
            help="Address of a SIM: unix:/path, pcsc, pcsc:READER, csim:/dev/ttyX; the virtual SIM "
            "by default. May be repeated.",
        ),
    ] = None,
    socket: Socket = None,
    pin: Annotated[
        str | None,
        typer.Option(
            "--pin", help="Source of the first SIM's PIN: ask, file:/path, credential:NAME."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Several SIMs, PIN lifetimes, other users; TOML."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", help="Serve metrics over HTTP at this address: 127.0.0.1:9464."),
    ] = None,
) -> int:
    """Hold SIMs until Ctrl-C. Prints the WARIFU_CARD for programs.

    While the agent is logged in, its callers need no PIN. A wrong PIN of a caller is sent to
    the SIM, which counts it.

    Examples:

      warifu agent start --card pcsc --pin ask

      warifu agent start --config agent.toml --metrics 127.0.0.1:9464
    """
    arguments = [part for one in card or [] for part in ("--card", one)]
    for flag, value in (("--pin", pin), ("--config", config), ("--metrics", metrics)):
        if value is not None:
            arguments += [flag, str(value)]
    return _become("start", *arguments, *_at(socket))


@agent_app.command(epilog=_EPILOG)
def status(socket: Socket = None) -> int:
    """Show what a running agent holds, as JSON.

    Example:

      warifu agent status
    """
    return _become("status", *_at(socket))


@agent_app.command(epilog=_EPILOG)
def metrics(socket: Socket = None) -> int:
    """Show the metrics of a running agent: signatures, session reuse, errors.

    Example:

      warifu agent metrics | grep signature
    """
    return _become("metrics", *_at(socket))


@agent_app.command(epilog=_EPILOG)
def stop(socket: Socket = None) -> int:
    """Stop a running agent, which closes the channels of its SIMs.

    Example:

      warifu agent stop
    """
    return _become("stop", *_at(socket))


def token(
    audience: Annotated[
        list[str] | None, typer.Option("--audience", help="The `aud` claim. May be repeated.")
    ] = None,
    lifetime: Annotated[
        int,
        typer.Option(
            "--lifetime",
            min=1,
            max=_LIFETIME_MAX_S,
            help="Seconds from `iat` to `exp`.",
        ),
    ] = 3600,
    issuer: Annotated[str | None, typer.Option("--issuer", help="The `iss` claim.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="The `sub` claim.")] = None,
    key_id: Annotated[str | None, typer.Option("--key-id", help="The `kid` of the header.")] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option("--claim", help="NAME=VALUE; VALUE is JSON or a string. May be repeated."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Label of the key, or its id in hexadecimal.")
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(
            "--card", help="Address of the SIM; $WARIFU_CARD, or else the agent, by default."
        ),
    ] = None,
    pin: Annotated[
        str | None,
        typer.Option(
            "--pin", help="Source of the PIN without an agent: ask, file:/path or credential:NAME."
        ),
    ] = None,
) -> int:
    """Print a JSON Web Token signed by a SIM with ES256.

    An agent caches it and renews it before it expires, so that callers need not wait for the
    SIM. Without an agent, a session is opened for this one token.

    Examples:

      warifu token --audience https://example.org --lifetime 3600

      warifu token --card pcsc --pin ask --subject meter-7 --claim site=3
    """
    arguments = ["--lifetime", str(lifetime)]
    for flag, value in (
        ("--issuer", issuer), ("--subject", subject), ("--key-id", key_id),
        ("--key", key), ("--card", card), ("--pin", pin),
    ):  # fmt: skip
        if value is not None:
            arguments.append(f"{flag}={value}")
    for flag, values in (("--audience", audience), ("--claim", claim)):
        arguments += [f"{flag}={value}" for value in values or []]
    return _become("token", *arguments)


def _at(socket: Path | None) -> Sequence[str]:
    return [] if socket is None else ["--socket", str(socket)]


def _become(*arguments: str) -> int:
    """Replaces this process by the program, which then gets signals and the terminal."""
    from warifu import tools

    program = tools.find(_PROGRAM)
    sys.stdout.flush()
    os.execv(program, [str(program), *arguments])

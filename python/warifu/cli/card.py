# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu card`: the virtual IoT SAFE SIM, which warifu-card-server implements."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from warifu import files, identity
from warifu.cli import screen
from warifu.cli.errors import OK, naming
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named

_EPILOG = "A development tool: the SIM's keys are in its state file, not in a chip."

card_app = typer.Typer(
    help=f"""A virtual IoT SAFE SIM, over a Unix socket, AT+CSIM and PC/SC.

    {_EPILOG}

    Begin with:

      warifu card create && warifu card serve""",
    no_args_is_help=True,
)


@card_app.callback()
def _card(context: typer.Context) -> None:
    """Only a reader needs root, which `serve` sees to."""
    if context.invoked_subcommand != "serve":
        identity.become_caller()


class Quirks(StrEnum):
    """The client that the card works with (crates/iotsafe/card/src/quirks.rs)."""

    STRICT = "strict"
    WOLFSSL = "wolfssl"
    ORANGE = "orange"
    THALES = "thales"


class AtCommands(StrEnum):
    """The commands of the virtual modem."""

    ALL = "all"
    CCHO = "ccho"


class Curve(StrEnum):
    """The curve of the client key."""

    SECP256R1 = "secp256r1"
    BRAINPOOLP256R1 = "brainpoolP256r1"


class Scope(StrEnum):
    """What a PIN protects."""

    NOTHING = "nothing"
    SIGNING = "signing"
    EVERY_KEY = "every-key"


State = Annotated[
    Path | None,
    typer.Option(
        "--state", help="State file of the SIM; $XDG_DATA_HOME/warifu/card.state by default.",
        show_default=False,
    ),
]  # fmt: skip
AskPin = Annotated[bool, typer.Option("--pin", help="Ask for the PIN.")]
PinFile = Annotated[
    Path | None,
    typer.Option(
        "--pin-file", help="A file whose first line is the PIN; - for stdin.", show_default=False
    ),
]
PinScope = Annotated[
    Scope | None,
    typer.Option(
        "--pin-scope", help="What the PIN protects; signing by default.", show_default=False
    ),
]
PinTries = Annotated[
    int | None,
    typer.Option(
        "--pin-tries", min=1, max=15, help="Wrong tries in a row that lock the PIN; 3 by default.",
        show_default=False,
    ),
]  # fmt: skip


@card_app.command(epilog=_EPILOG)
def create(
    state: State = None,
    quirks: Annotated[
        Quirks, typer.Option("--quirks", help="The client to work with; strict: GSMA IoT.05.")
    ] = Quirks.STRICT,
    label: Annotated[
        str | None,
        typer.Option("--label", help="Label of the token; warifu by default.", show_default=False),
    ] = None,
    curve: Annotated[
        Curve, typer.Option("--curve", help="Curve of the client key.")
    ] = Curve.SECP256R1,
    pin: AskPin = False,
    pin_file: PinFile = None,
    pin_scope: PinScope = None,
    pin_tries: PinTries = None,
    spare_pairs: Annotated[
        int,
        typer.Option("--spare-pairs", min=0, max=16, help="Empty containers for more key pairs."),
    ] = 0,
    form: FormatOption = Format.TABLE,
) -> int:
    """Create a SIM with a client key that is generated on it. Overwrites nothing.

    Examples:

      warifu card create

      warifu card create --state test.state --quirks wolfssl --pin --pin-scope every-key
    """
    from warifu.cli import card_program as program

    request: dict[str, object] = {
        "quirks": quirks.value, "curve": curve.value, "spare_pairs": spare_pairs,
    }  # fmt: skip
    if label is not None:
        request["label"] = label
    request["pin"] = program.new_pin(pin, pin_file, pin_scope, pin_tries)
    return program.change("create", state, request, form)


@card_app.command("import", epilog=_EPILOG)
def import_(
    state: State = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate", help="Client certificate of the SIM's key, for container 02."
        ),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", help="Certificate of the server or its CA, for container 03."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Private key for container 01, for development only."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Store certificates or a key, PEM or DER, on a SIM that is not being served.

    Examples:

      warifu card import --certificate device-1.pem --ca ca.pem

      warifu card import --key development.pem --certificate development-certificate.pem
    """
    from warifu.cli import card_program as program

    files = {"certificate": certificate, "ca": ca, "key": key}
    request = {name: str(path) for name, path in files.items() if path is not None}
    return program.change("import", state, dict(request), form)


@card_app.command("list", epilog=_EPILOG)
def list_(state: State = None, form: FormatOption = Format.TABLE) -> int:
    """Show the content of a SIM without secrets, also while it is served.

    Example:

      warifu card list --format json
    """
    from warifu.cli import card_program as program

    return program.change("list", state, {}, form)


@card_app.command(epilog=_EPILOG)
def reset(
    state: State = None,
    unblock_pin: Annotated[bool, typer.Option("--unblock-pin", help="Unlock the PIN.")] = False,
    pin: AskPin = False,
    pin_file: PinFile = None,
    pin_scope: PinScope = None,
    pin_tries: PinTries = None,
    remove_pin: Annotated[bool, typer.Option("--remove-pin", help="Remove the PIN.")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Erase the SIM: a new client key, no certificates.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """Reset the PIN or the whole SIM, which must not be served.

    Examples:

      warifu card reset --unblock-pin

      warifu card reset --erase
    """
    from warifu.cli import card_program as program

    request: dict[str, object] = {
        "unblock_pin": unblock_pin, "remove_pin": remove_pin, "erase": erase,
    }  # fmt: skip
    request["pin"] = program.new_pin(pin, pin_file, pin_scope, pin_tries)
    return program.change("reset", state, request, form)


@card_app.command(epilog=_EPILOG)
def csr(
    subject: Annotated[str, typer.Argument(help="The subject, such as CN=device-1,O=Example.")],
    state: State = None,
    socket: Annotated[
        Path | None, typer.Option("--socket", help="Socket of a served SIM, instead of --state.")
    ] = None,
    pin: AskPin = False,
    pin_file: PinFile = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", parser=named, metavar="PATH", help="Output file; stdout by default."
        ),
    ] = None,
) -> int:
    """Have the SIM sign a certificate request for its client key (PKCS #10, PEM).

    Example:

      warifu card csr CN=device-1 -o device-1.csr

      openssl x509 -req -in device-1.csr -CA ca.pem -CAkey ca.key -days 365 -out device-1.pem

      warifu card import --certificate device-1.pem --ca ca.pem
    """
    from warifu.cli import card_program as program

    where = {"socket": str(socket)} if socket else {"state": str(program.state_path(state))}
    if out is not None and not out.parent.is_dir():
        raise typer.BadParameter(
            f"--out {out}: {out.parent} is not a folder: create it, or choose another"
        )
    if out is not None:
        _refuse_another_file(out)
    request = {**where, "subject": subject, "pin": program.pin(pin, pin_file, new=False)}
    text = str(program.ask("csr", request)["csr"])
    if out is None:
        print(text, end="")
    else:
        # What is neither missing nor a file is a device, such as /dev/stdout.
        if out.exists() and not out.is_file():
            out.write_text(text, encoding="ascii")
        else:
            with naming(out):
                files.replace_text(out.resolve(), text)
        screen.say(f"wrote {out}")
    return OK


def _refuse_another_file(out: Path) -> None:
    """Refuses to overwrite a file that is not a certificate request."""
    try:
        with out.open("rb") as file:
            begin = file.read(64)
    except FileNotFoundError:
        return
    except OSError as error:
        raise typer.BadParameter(f"--out {out}: {error.strerror}") from None
    if begin and not begin.startswith(b"-----BEGIN CERTIFICATE REQUEST"):
        raise typer.BadParameter(
            f"--out {out}: the file exists and is not a certificate request: choose another name"
        )


@card_app.command(epilog=_EPILOG)
def serve(
    state: State = None,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket",
            help="A Unix socket; $XDG_RUNTIME_DIR/warifu/card.sock without other options.",
        ),
    ] = None,
    at: Annotated[
        bool, typer.Option("--at", help="A virtual modem with AT+CSIM on a pseudo-terminal.")
    ] = False,
    at_commands: Annotated[
        AtCommands,
        typer.Option(
            "--at-commands", help="Of the modem; ccho: AT+CCHO and AT+CGLA without AT+CSIM."
        ),
    ] = AtCommands.ALL,
    link: Annotated[
        Path | None,
        typer.Option("--link", help="Symbolic link to the line of the modem; with --at."),
    ] = None,
    pcsc: Annotated[
        bool, typer.Option("--pcsc", help="A card reader; starts pcscd, needs root.")
    ] = False,
    pcscd_dir: Annotated[
        Path | None,
        typer.Option(
            "--pcscd-dir", help="Folder for the socket of pcscd, if another pcscd is running."
        ),
    ] = None,
    vpcd: Annotated[
        str | None, typer.Option("--vpcd", help="An existing virtual reader (vpcd), ADDRESS:PORT.")
    ] = None,
    timing: Annotated[
        str | None,
        typer.Option("--timing", help="Timing profile, by name or file."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the timing.")] = 0,
    faults: Annotated[
        str | None,
        typer.Option("--faults", help="Faults: rates such as lost=1%, or a file."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Events as JSON lines on stdout, for programs.")
    ] = False,
) -> int:
    """Serve a SIM until Ctrl-C: to programs of this user, and with --pcsc to all.

    Examples:

      warifu card serve --at --link modem --timing iot-safe-sakomoto

      sudo .venv/bin/warifu card serve --pcsc --socket card.sock

      warifu card serve --faults "lost=1%, late=2%, late_by=2s, seed=7"
    """
    from warifu.cli import card_program as program

    if not pcsc and pcscd_dir is None:
        identity.become_caller()
    modem = at or link is not None or at_commands is not AtCommands.ALL
    if socket is None and not (modem or pcsc or vpcd):
        socket = program.default_socket()
    request: dict[str, object] = {
        "state": str(program.state_path(state)),
        "socket": None if socket is None else str(socket),
        "at": modem,
        "at_commands": at_commands.value,
        "link": None if link is None else str(link),
        "pcsc": pcsc or pcscd_dir is not None,
        "pcscd_dir": None if pcscd_dir is None else str(pcscd_dir.absolute()),
        "vpcd": vpcd,
        "faults": program.faults(faults),
    }
    if (caller := identity.caller()) is not None:
        request["files_of"] = {"user": caller.user, "group": caller.group}
    if timing is not None:
        request["timing"] = {"profile": str(program.timing_profile(timing)), "seed": seed}
    return program.serve(request, events=json)


@card_app.command()
def module() -> int:
    """Print the path of the PKCS#11 module, which lets other programs use a SIM.

    Examples:

      pkcs11-tool --module $(warifu card module) --list-objects

      PKCS11_MODULE_PATH=$(warifu card module) curl --engine pkcs11 --key-type ENG ...
    """
    from warifu import tools

    print(tools.find("libwarifu_pkcs11.so"))
    return OK

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu card`: the virtual IoT SAFE SIM. The work is warifu-card-server's."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption

_EPILOG = "A development tool: the SIM's keys are in its state file, not in a chip."

card_app = typer.Typer(
    help=f"""A virtual IoT SAFE SIM, over a Unix socket, AT+CSIM and PC/SC.

    {_EPILOG}

    Begin with:

      warifu card create && warifu card serve""",
    no_args_is_help=True,
)


class Quirks(StrEnum):
    """Whose client the card can talk to (crates/iotsafe/card/src/quirks.rs)."""

    STRICT = "strict"
    WOLFSSL = "wolfssl"
    ORANGE = "orange"
    THALES = "thales"


class Curve(StrEnum):
    """The client key's curve."""

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
        "--state", help="The SIM's file; $XDG_DATA_HOME/warifu/card.state by default.",
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
    typer.Option("--pin-scope", help="What needs the PIN; signing by default.", show_default=False),
]
PinTries = Annotated[
    int | None,
    typer.Option(
        "--pin-tries", min=1, max=15, help="Wrong tries in a row that lock it; 3 by default.",
        show_default=False,
    ),
]  # fmt: skip


@card_app.command(epilog=_EPILOG)
def create(
    state: State = None,
    quirks: Annotated[
        Quirks, typer.Option("--quirks", help="The client that it is for; strict: GSMA IoT.05.")
    ] = Quirks.STRICT,
    label: Annotated[
        str | None,
        typer.Option("--label", help="Its name as a token; warifu by default.", show_default=False),
    ] = None,
    curve: Annotated[Curve, typer.Option("--curve", help="Of the client key.")] = Curve.SECP256R1,
    pin: AskPin = False,
    pin_file: PinFile = None,
    pin_scope: PinScope = None,
    pin_tries: PinTries = None,
    spare_pairs: Annotated[
        int, typer.Option("--spare-pairs", min=0, max=16, help="Empty places for more key pairs.")
    ] = 0,
    form: FormatOption = Format.TABLE,
) -> int:
    """Make a SIM, with a client key that is generated on it. Nothing is overwritten.

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
        typer.Option("--certificate", help="The client's, for slot 02; of the SIM's own key."),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="The server's or its authority's, for slot 03.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="A private key for slot 01, for development: it has been out."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> int:
    """Store certificates or a key on a SIM that is not being served. PEM or DER.

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
    """Show what a SIM holds; no secret is shown. It may be being served.

    Example:

      warifu card list --format json
    """
    from warifu.cli import card_program as program

    return program.change("list", state, {}, form)


@card_app.command(epilog=_EPILOG)
def reset(
    state: State = None,
    unblock_pin: Annotated[
        bool, typer.Option("--unblock-pin", help="Give the PIN all its tries again.")
    ] = False,
    pin: AskPin = False,
    pin_file: PinFile = None,
    pin_scope: PinScope = None,
    pin_tries: PinTries = None,
    remove_pin: Annotated[bool, typer.Option("--remove-pin", help="Take the PIN away.")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Make it as new: another client key, no certificates.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """Set the PIN back, or the whole SIM. It must not be being served.

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
    subject: Annotated[str, typer.Argument(help="For whom, such as CN=device-1,O=Example.")],
    state: State = None,
    socket: Annotated[
        Path | None, typer.Option("--socket", help="Of a SIM that is being served, instead.")
    ] = None,
    pin: AskPin = False,
    pin_file: PinFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; stdout by default.")
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
            f"--out {out}: {out.parent} is no folder: make it, or choose another"
        )
    if out is not None:
        _refuse_another_file(out)
    request = {**where, "subject": subject, "pin": program.pin(pin, pin_file, new=False)}
    text = str(program.ask("csr", request)["csr"])
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="ascii")
        screen.say(f"wrote {out}")
    return OK


def _refuse_another_file(out: Path) -> None:
    """A request replaces a request; a SIM's state, a key or a certificate is not written over."""
    try:
        with out.open("rb") as file:
            begin = file.read(64)
    except FileNotFoundError:
        return
    except OSError as error:
        raise typer.BadParameter(f"--out {out}: {error.strerror}") from None
    if begin and not begin.startswith(b"-----BEGIN CERTIFICATE REQUEST"):
        raise typer.BadParameter(
            f"--out {out}: something else than a certificate request is there: choose another name"
        )


@card_app.command(epilog=_EPILOG)
def serve(
    state: State = None,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket",
            help="A Unix socket; without any way in, $XDG_RUNTIME_DIR/warifu/card.sock.",
        ),
    ] = None,
    at: Annotated[bool, typer.Option("--at", help="A modem with AT+CSIM on a new line.")] = False,
    link: Annotated[
        Path | None, typer.Option("--link", help="Point this at the modem's line; with --at.")
    ] = None,
    pcsc: Annotated[
        bool, typer.Option("--pcsc", help="A card reader; starts pcscd, needs root.")
    ] = False,
    pcscd_dir: Annotated[
        Path | None,
        typer.Option("--pcscd-dir", help="For pcscd's socket, beside a pcscd that runs already."),
    ] = None,
    vpcd: Annotated[
        str | None, typer.Option("--vpcd", help="The reader of a vpcd of yours, ADDRESS:PORT.")
    ] = None,
    timing: Annotated[
        str | None,
        typer.Option("--timing", help="Be as slow as this: a profile's name, or its file."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the timing.")] = 0,
    faults: Annotated[
        str | None,
        typer.Option("--faults", help="What goes wrong: rates such as lost=1%, or a file."),
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

    if socket is None and not (at or link or pcsc or vpcd):
        socket = program.default_socket()
    request: dict[str, object] = {
        "state": str(program.state_path(state)),
        "socket": None if socket is None else str(socket),
        "at": at or link is not None,
        "link": None if link is None else str(link),
        "pcsc": pcsc or pcscd_dir is not None,
        "pcscd_dir": None if pcscd_dir is None else str(pcscd_dir.absolute()),
        "vpcd": vpcd,
        "faults": program.faults(faults),
    }
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

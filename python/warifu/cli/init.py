# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu init`: a study to begin with, and `warifu init device`: a device profile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import NO_PROFILE, OK, when_interrupted
from warifu.cli.formats import Format
from warifu.cli.group import Group
from warifu.cli.importing import (
    Clock,
    CodeOption,
    Core,
    DryRun,
    Flash,
    Force,
    Library,
    Ram,
    machine,
)
from warifu.cli.screen import WIDTH, FormatOption

if TYPE_CHECKING:
    from typer._click.core import Context

    from warifu.devices.figures import Code
    from warifu.devices.profile import Given

_DEVICE = "device"
_STUDY = "study"


class _StudyOrDevice(Group):
    """`init device NAME` makes a device's profile; whatever else stands behind `init` is about a
    study, also without its word, so that a study that is called by one of them is `./device`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Puts the command in."""
        return super().parse_args(
            ctx, args if args[:1] in ([_DEVICE], [_STUDY]) else [_STUDY, *args]
        )


init_app = typer.Typer(
    name="init",
    help="Write a study, or a device's profile, to start from.",
    cls=_StudyOrDevice,
    rich_markup_mode=None,
)


@init_app.command(_STUDY)
def study(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The study to write; TEMPLATE.toml by default, - prints it.", show_default=False
        ),
    ] = None,
    template: Annotated[
        str, typer.Option("--template", "-t", help="Which one; --list shows all.")
    ] = "smart-meter",
    list_all: Annotated[bool, typer.Option("--list", help="List the templates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """Write a commented study to begin with. Nothing is overwritten without --force.

    `warifu init device NAME` makes a device profile instead: see `warifu init device --help`.

    Examples:

      warifu init --list

      warifu init --template smart-meter meter.toml

      warifu init --template smart-meter - > meter.toml
    """
    from warifu.cli import templates

    if list_all:
        screen.show([templates.table()], form, width=WIDTH)
        return OK
    templates.write(template, file or Path(f"{template}.toml"), force)
    return OK


def _time(flag: str, what: str) -> object:
    return typer.Option(flag, metavar="TIME", help=f"{what}, such as 45ms.", show_default=False)


def _rate(flag: str, what: str) -> object:
    return typer.Option(
        flag, metavar="RATE", help=f'{what}, such as "1.2 MB/s".', show_default=False
    )


#: Option, primitive, and what is asked on a terminal.
_TIMES = {
    "ecdsa_sign": ("sign.ecdsa_secp256r1", "ECDSA P-256, a signature"),
    "ecdsa_verify": ("verify.ecdsa_secp256r1", "ECDSA P-256, a verification"),
    "ecdh": ("ecdh.derive.secp256r1", "ECDH P-256, a shared secret"),
    "ecdh_keygen": ("ecdh.keygen.secp256r1", "ECDH P-256, a key pair"),
    "x25519": ("ecdh.derive.x25519", "X25519, a shared secret"),
    "x25519_keygen": ("ecdh.keygen.x25519", "X25519, a key pair"),
    "rsa_sign": ("sign.rsa-2048", "RSA-2048, a signature"),
    "rsa_verify": ("verify.rsa-2048", "RSA-2048, a verification"),
}
_RATES = {
    "aes_gcm": ("aead.seal.AES_128_GCM", "AES-128-GCM"),
    "aes_256_gcm": ("aead.seal.AES_256_GCM", "AES-256-GCM"),
    "chacha20_poly1305": ("aead.seal.CHACHA20_POLY1305", "ChaCha20-Poly1305"),
    "sha256": ("hash.sha-256", "SHA-256"),
    "sha384": ("hash.sha-384", "SHA-384"),
}
#: What is asked: few know more of their board.
_ASKED = ("ecdsa_sign", "ecdsa_verify", "ecdh", "x25519", "rsa_verify", "aes_gcm", "sha256")


@init_app.command(_DEVICE)
def device(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The device's name.")],
    ecdsa_sign: Annotated[str | None, _time("--ecdsa-sign", "An ECDSA P-256 signature")] = None,
    ecdsa_verify: Annotated[str | None, _time("--ecdsa-verify", "Its verification")] = None,
    ecdh: Annotated[str | None, _time("--ecdh", "A shared secret with P-256")] = None,
    ecdh_keygen: Annotated[str | None, _time("--ecdh-keygen", "A key pair of P-256")] = None,
    x25519: Annotated[str | None, _time("--x25519", "A shared secret with X25519")] = None,
    x25519_keygen: Annotated[str | None, _time("--x25519-keygen", "A key pair of X25519")] = None,
    rsa_sign: Annotated[str | None, _time("--rsa-sign", "An RSA-2048 signature")] = None,
    rsa_verify: Annotated[str | None, _time("--rsa-verify", "Its verification")] = None,
    aes_gcm: Annotated[str | None, _rate("--aes-gcm", "AES-128-GCM")] = None,
    aes_256_gcm: Annotated[str | None, _rate("--aes-256-gcm", "AES-256-GCM")] = None,
    chacha20_poly1305: Annotated[
        str | None, _rate("--chacha20-poly1305", "ChaCha20-Poly1305")
    ] = None,
    sha256: Annotated[str | None, _rate("--sha256", "SHA-256")] = None,
    sha384: Annotated[str | None, _rate("--sha384", "SHA-384")] = None,
    library: Library = None,
    core: Core = None,
    clock: Clock = None,
    code: CodeOption = None,
    ram: Ram = None,
    flash: Flash = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Where the figures are from, such as a data sheet; they are then published.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> int:
    """Make a device profile from what a data sheet or a benchmark says.

    On a terminal it asks for what no option gives.

    What is missing is scaled from the nearest device of the same core, or else family, by clock and
    kind of code, marked as assumed, with a band that holds nine truths in ten (`warifu devices
    --judge`).

    Examples:

      warifu init device my-board --core cortex-m4 --clock 64MHz --ecdsa-sign 45ms
      --ecdsa-verify 88ms --ecdh 40ms --aes-gcm "1.2 MB/s"

      warifu init device next-board --core cortex-m33 --clock 128MHz
    """
    from warifu.cli import device_files
    from warifu.devices import making

    texts = {
        "ecdsa_sign": ecdsa_sign,
        "ecdsa_verify": ecdsa_verify,
        "ecdh": ecdh,
        "ecdh_keygen": ecdh_keygen,
        "x25519": x25519,
        "x25519_keygen": x25519_keygen,
        "rsa_sign": rsa_sign,
        "rsa_verify": rsa_verify,
        "aes_gcm": aes_gcm,
        "aes_256_gcm": aes_256_gcm,
        "chacha20_poly1305": chacha20_poly1305,
        "sha256": sha256,
        "sha384": sha384,
    }
    with when_interrupted(NO_PROFILE):
        chosen = making.checked_name(name)
        if not (force or dry_run):
            # Before the questions: afterwards the answers would be lost.
            device_files.refuse_taken(chosen)
        if not any(texts.values()) and clock is None and _is_terminal():
            core, clock, library = _ask_machine(core, library)
            code = code or _ask_code()
            texts |= {key: _ask(_label(key), _figure_of(key)) for key in _ASKED}
        known = device_files.library(library or None, None)
        about = machine(known, core, clock, code, ram, flash)
        given = [_given(key, text, source) for key, text in texts.items() if text]
        made = making.from_figures(chosen, given, about, device_files.corpus())
        written = device_files.write(made, dry_run)
    with device_files.while_somebody_reads():
        device_files.say_added(made)
        if written is not None:
            device_files.say_written(written, made.name)
    return OK


def _given(key: str, text: str, source: str | None) -> Given:
    from warifu.devices.profile import Given

    figure = _figure_of(key)(text)
    return Given(figure, source or "", "published" if source else "assumed")  # type: ignore[arg-type]


def _figure_of(key: str) -> Callable[[str], object]:
    """Reads an option's text as a figure. Raises typer.BadParameter."""
    from warifu.devices.figures import Figure, of_stream
    from warifu.devices.quantities import NotUnderstood, byte_ns, call_ns

    def read(text: str) -> object:
        try:
            if key in _TIMES:
                return Figure(_TIMES[key][0], call_ns(text))
            return of_stream(_RATES[key][0], byte_ns(text))
        except NotUnderstood as error:
            raise typer.BadParameter(f"--{key.replace('_', '-')} {text}: {error}") from None

    return read


def _label(key: str) -> str:
    if key in _TIMES:
        return f"{_TIMES[key][1]} (such as 45ms; empty if unknown)"
    return f'{_RATES[key][1]} (such as "1.2 MB/s"; empty if unknown)'


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_machine(core: str | None, library: str | None) -> tuple[str, str, str]:
    from warifu.devices import cores, quantities

    def known(text: str) -> object:
        found = cores.named(text)
        if cores.family(found) is None:
            raise typer.BadParameter(f"expected one of {', '.join(cores.KNOWN)}")
        return found

    def clocked(text: str) -> object:
        try:
            return quantities.clock_hz(text)
        except quantities.NotUnderstood as error:
            raise typer.BadParameter(str(error)) from None

    core = core or _ask("core", known, "cortex-m4")
    clock = _ask("clock", clocked, "64 MHz")
    library = library or _ask("TLS library", _library, "mbedtls-3.6")
    return core, clock, library


def _ask_code() -> Code | None:
    from warifu.devices.figures import Code

    def known(text: str) -> object:
        try:
            return Code(text.strip().lower())
        except ValueError:
            raise typer.BadParameter(f"expected one of {', '.join(Code)}") from None

    answer = _ask(
        "public-key code: c, assembly or hardware; assembly is up to ten times as quick (empty: "
        "by the times that follow, else c)",
        known,
    )
    return Code(answer.strip().lower()) if answer else None


def _library(text: str) -> object:
    from warifu.cli import device_files

    return device_files.library(text, None)


def _ask(question: str, read: Callable[[str], object], default: str = "") -> str:
    """Asks until the answer can be read; an empty one is the default."""
    while True:
        answer = str(typer.prompt(question, default=default, show_default=bool(default), err=True))
        if not answer.strip():
            return ""
        try:
            read(answer)
        except typer.BadParameter as error:
            screen.say(str(error.message))
        else:
            return answer

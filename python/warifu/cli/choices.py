# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A study by file, by flags, or by a file that flags override."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warifu.cli import screen

if TYPE_CHECKING:
    from warifu.study import Loaded

_PANEL = "The case, as in a study's file"


def _flag(path: str, *names: str, help: str) -> tuple[str, Any]:  # noqa: A002
    option = typer.Option(*names, help=help, rich_help_panel=_PANEL, show_default=False)
    return path, Annotated[str | None, option]


#: Python name -> the setting's dotted path and the flag. The order counts: `--stack` comes before
#: the flags that refine it.
FLAGS: dict[str, tuple[str, Any]] = {
    "device": _flag(
        "device", "--device", help="Device profile: this-host (default), gr-peach, ..."
    ),
    "server": _flag(
        "server", "--server", help="Server profile, a device profile as well; this-host by default."
    ),
    "key_store": _flag(
        "key_store", "--key-store", help="Key store: software (default), iot-safe-sakomoto, ..."
    ),
    "link": _flag(
        "link", "--link", help="Link: loopback (default), ethernet, wifi, lte-m, nb-iot, ..."
    ),
    "stack": _flag(
        "stack",
        "--stack",
        help="https/tls1.2 or https/tls1.3 (default), /mutual, /server or /psk may follow; "
        "coap/con, coap/non; dds/none, dds/builtin, dds/warifu, whose AEAD may follow.",
    ),
    "rtt": _flag(
        "link.rtt", "--rtt", help='Round-trip time, such as "60 ms"; the link\'s by default.'
    ),
    "loss": _flag(
        "link.loss",
        "--loss",
        help='Packet loss in each direction, such as "2 %"; the link\'s by default.',
    ),
    "rate": _flag(
        "link.rate",
        "--rate",
        help='Rate in both directions, such as "250 kbit/s"; the link\'s by default.',
    ),
    "session": _flag(
        "stack.session",
        "--session",
        help="full (default), resumed, ticket, psk_dhe_ke, psk_ke or 0-rtt.",
    ),
    "authentication": _flag(
        "stack.authentication",
        "--authentication",
        help="server, mutual (default): the client shows a certificate, too; or psk: a key from "
        "outside and no certificate.",
    ),
    "group": _flag("stack.group", "--group", help="secp256r1 (P-256, default) or x25519."),
    "certificate": _flag(
        "stack.certificate", "--certificate", help="ecdsa_secp256r1 (default) or rsa-2048."
    ),
    "chain_length": _flag(
        "stack.chain_length", "--chain-length", help="Certificates sent, 1 (default) to 3."
    ),
    "cipher_suite": _flag(
        "stack.cipher_suite",
        "--cipher-suite",
        help="IANA name; TLS_AES_128_GCM_SHA256 or its TLS 1.2 equivalent by default.",
    ),
    "upload": _flag(
        "pattern.request_body",
        "--upload",
        help='Body of the request, such as "100 B" or "10 kB": a POST, or with coap a PUT; a GET '
        "without it.",
    ),
    "download": _flag(
        "pattern.response_body",
        "--download",
        help='Body of the response, such as "1 kB"; "846 B" by default.',
    ),
}

_NAGLE = Annotated[
    bool | None,
    typer.Option(
        "--nagle/--no-nagle",
        help="Nagle's algorithm on both ends; off by default.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
_SET = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help='Any setting: --set link.rtt="60 ms" --set stack.session=resumed. Repeatable.',
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
_VARY = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="PATH=VALUE,VALUE",
        help="A case for each value: --vary stack.session=full,resumed. Repeatable: every "
        "combination.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
_REQUIRE = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="BOUND",
        help="A bound that every case is judged by: --require 'https.establishment.p99 < 3 s'. "
        "Repeatable; exit code 1 where one is missed or not sure to be met.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
_STUDY = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study file. Without one, the flags describe the study.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Choices:
    """What the command line says of the study."""

    study: Path | None
    overrides: list[tuple[str, str]]

    def load(self, stand_in: bool = True) -> Loaded:
        """Reads the study with its profiles; raises with one line that names the fix.

        Without ``stand_in`` no other machine's profile answers for this one.
        """
        from warifu import study

        if self.study is None and not self.overrides:
            raise typer.BadParameter(
                "name a study file, or describe the case by flags such as --device this-host "
                "--link lte-m --stack https/tls1.3"
            )
        loaded = study.load(self.study, self.overrides, stand_in=stand_in)
        if dropped := study.no_longer_varied(loaded):
            given = ", ".join(path for path, _ in self.overrides)
            what = ", ".join(f"vary.{path}" for path in dropped)
            screen.warn(
                f"{loaded.file}: {what} is left out, because the command line sets {given}: every "
                "case has that; to vary it all the same, give --set vary.PATH=[...]"
            )
        return loaded


def with_choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the study argument and the case's flags in place of ``choices``."""
    own = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("study", keyword, default=None, annotation=_STUDY)]
    parameters += [
        inspect.Parameter(name, keyword, default=None, annotation=annotation)
        for name, (_, annotation) in FLAGS.items()
    ]
    parameters.append(inspect.Parameter("nagle", keyword, default=None, annotation=_NAGLE))
    for name, annotation in (("settings", _SET), ("vary", _VARY), ("require", _REQUIRE)):
        parameters.append(inspect.Parameter(name, keyword, default=None, annotation=annotation))
    parameters += [
        parameter.replace(kind=keyword, annotation=hints[name])
        for name, parameter in own.parameters.items()
        if name != "choices"
    ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:  # noqa: ANN401 - Typer hands over what the flags hold
        study = given.pop("study")
        overrides = [
            (path, value)
            for name, (path, _) in FLAGS.items()
            if (value := given.pop(name)) is not None
        ]
        if (nagle := given.pop("nagle")) is not None:
            overrides.append(("stack.nagle", "true" if nagle else "false"))
        overrides += [_pair(text) for text in given.pop("settings") or []]
        overrides += [_axis(text) for text in given.pop("vary") or []]
        overrides += [_bound(text) for text in given.pop("require") or []]
        _refuse_twice([path for path, _ in overrides])
        return command(choices=Choices(study, overrides), **given)

    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    wrapper.__annotations__["return"] = hints.get("return", None)
    return wrapper


def _refuse_twice(paths: list[str]) -> None:
    """Rejects two values for one setting: neither may win silently."""
    for path in paths:
        if paths.count(path) > 1:
            if path.startswith("require."):
                what = path.removeprefix("require.")
                raise typer.BadParameter(f"{what} has two bounds, and may have one: ask twice")
            flags = [names for names, (own, _) in FLAGS.items() if own == path]
            flag = f"--{flags[0].replace('_', '-')} and " if flags else ""
            raise typer.BadParameter(f"{path} is given twice, by {flag}--set: give it once")


def _pair(text: str) -> tuple[str, str]:
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise typer.BadParameter(f'--set {text}: expected PATH=VALUE such as link.rtt="60 ms"')
    return path.strip(), _unquoted(value.strip())


def _axis(text: str) -> tuple[str, str]:
    """A list is read by the core alone, with quotes and brackets or without."""
    path, equals, values = text.partition("=")
    if not equals or not path.strip() or not values.strip():
        raise typer.BadParameter(
            f"--vary {text}: expected PATH=VALUE,VALUE such as stack.session=full,resumed"
        )
    return f"vary.{path.strip()}", values.strip()


def _bound(text: str) -> tuple[str, str]:
    from warifu import study

    found = study.bound(text)
    if found is None:
        raise typer.BadParameter(
            f"--require {text}: expected a bound such as 'https.establishment.p99 < 3 s'"
        )
    return found


def _unquoted(value: str) -> str:
    """Without the quotes around a whole text; a list keeps those of its parts."""
    inner = value[1:-1]
    quoted = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner
    return inner if quoted else value

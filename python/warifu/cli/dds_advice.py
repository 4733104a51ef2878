# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds advise`: what to change first."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warifu.cli import screen
from warifu.cli.errors import OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption, named
from warifu.dds.governance import Basic, Governance, Protection

if TYPE_CHECKING:
    from warifu._core import Study
    from warifu.dds.advice import Advice, Asked
    from warifu.study import ProfileText

EPILOG = """Exit codes: 0 ok; 2 a mistake in the command line, a study or a profile, or a device
without figures for DDS."""

#: A message names what is missing in so many characters.
_MESSAGE = 300
#: The governance's lines that each sample pays for.
_LINES = ("data", "metadata", "rtps")


def advise(
    study: Annotated[
        Path | None,
        typer.Argument(
            parser=named,
            metavar="[STUDY]",
            help="A study of DDS: the present is its first case with SROS2's governance, or else "
            "the first that is protected.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", help="Device profile of both ends; several with --over-payload."),
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", help="The reader's, if it is another device.")
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", help="Link profile; loopback if none.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", help='Length of a sample: "16 B", "1 MiB".')
    ] = None,
    over_payload: Annotated[
        bool, typer.Option("--over-payload", help="From which payload on each change pays.")
    ] = False,
    data: Annotated[
        Basic | None,
        typer.Option("--data", case_sensitive=False, help="How samples are protected."),
    ] = None,
    metadata: Annotated[
        Protection | None,
        typer.Option("--metadata", case_sensitive=False, help="How submessages are."),
    ] = None,
    rtps: Annotated[
        Protection | None, typer.Option("--rtps", case_sensitive=False, help="How messages are.")
    ] = None,
    crypto: Annotated[
        str | None,
        typer.Option("--crypto", metavar="builtin|warifu", help="Cyclone DDS's own, or Warifu's."),
    ] = None,
    aead: Annotated[
        str | None, typer.Option("--aead", help="With warifu; AES-256-GCM if none.")
    ] = None,
    middleware: Annotated[
        str | None, typer.Option("--middleware", help="cyclonedds; of others no time is predicted.")
    ] = None,
    accelerators: Annotated[
        list[str] | None,
        typer.Option(
            "--accelerator",
            help="Only these of profiles/accelerators; those that come apart from a processor if "
            "none. Repeatable.",
        ),
    ] = None,
    at_least: Annotated[
        float,
        typer.Option(
            "--at-least", min=0, max=100, help="What a change has to save, % of the time."
        ),
    ] = 5.0,
    allow_plain: Annotated[
        bool,
        typer.Option(
            "--allow-plain",
            help="Also try governances that protect samples neither by data nor by metadata.",
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """Say what to change first for a secured DDS sample to arrive sooner, and what is given up.

    Predicts the time of one sample, from the write to the reader, as it is (SROS2's governance and
    Cyclone DDS's builtin plugin, unless you say otherwise) and with each neighbouring setting: a
    leaner line of the governance, Warifu's plugin with its cached contexts, another AEAD, an
    accelerator. Every time is an interval; what may go either way is called undecided.

    Examples:

      warifu dds advise --device raspberry-pi-3 --payload "1 MiB"

      warifu dds advise --device raspberry-pi-3 --payload "16 B" --rtps NONE

      warifu dds advise --device raspberry-pi-3 --over-payload
    """
    from warifu.cli import dds_advice_tables

    given = [("stack.data_protection", data), ("stack.metadata_protection", metadata),
             ("stack.rtps_protection", rtps), ("stack.crypto", crypto),
             ("stack.crypto_aead", aead), ("stack.middleware", middleware), ("link", link),
             ("pattern.response_body", payload)]  # fmt: skip
    overrides = [(key, str(value)) for key, value in given if value is not None]
    devices: Sequence[str | None] = device or [None]
    if study is None and device is None:
        raise typer.BadParameter("name a device, such as --device raspberry-pi-3, or a study")
    if len(devices) > 1 and not over_payload:
        raise typer.BadParameter("several devices are compared by --over-payload: add it")
    if study is None and payload is None and not over_payload:
        raise typer.BadParameter(
            '--payload is missing: give one such as "1 MiB", or --over-payload'
        )
    tables = []
    for name in devices:
        with _named_as_given():
            system = System(study, overrides, name, server, accelerators)
        asked = replace(system.asked(), at_least=at_least / 100, plain=allow_plain)
        if over_payload:
            found = _by_size(system, asked)
            tables += dds_advice_tables.over_payload(
                system.label, found, asked.at_least, system.evidence()
            )
        else:
            advice = system.advise(asked)
            tables += dds_advice_tables.advice(
                system.label, advice, system.evidence(), system.evidence_of_bytes()
            )
    screen.show(tables, form)
    return OK


@contextlib.contextmanager
def _named_as_given() -> Iterator[None]:
    """A mistake in a payload's length by the option's name."""
    from warifu import _core

    try:
        yield
    except _core.WarifuError as error:
        setting = "command line: pattern.response_body "
        if not str(error).startswith(setting):
            raise
        said = str(error).removeprefix(setting).partition(": expected")[0]
        raise typer.BadParameter(
            f'{said}: expected a size from 16 B to 8 MiB, such as "1 KiB"', param_hint="--payload"
        ) from None


def _by_size(system: System, asked: Asked) -> dict[str, list[Any]]:
    """For each change the payloads at which it pays."""
    from warifu.dds import crossing
    from warifu.dds.advice import Verdict

    @functools.cache
    def whole(size: int) -> Advice:
        return system.advise(_sized(asked, size))

    first = whole(crossing.SIZES[0])

    def judge(name: str, size: int) -> Any:  # noqa: ANN401 - a Verdict, imported late
        advice = whole(size) if size in crossing.SIZES else system.advise(_sized(asked, size), name)
        found = (change.verdict for change in advice.changes if change.name == name)
        return next(found, Verdict.UNDECIDED)

    names = [change.name for change in first.changes]
    return {name: crossing.stretches(functools.partial(judge, name)) for name in names}


def _sized(asked: Asked, size: int) -> Asked:
    fixed = tuple(pair for pair in asked.fixed if pair[0] != "pattern.response_body")
    return replace(asked, fixed=(*fixed, ("pattern.response_body", f"{size} B")))


class System:
    """The system that is asked about, as a study that settings are laid over."""

    def __init__(
        self,
        path: Path | None,
        overrides: Sequence[tuple[str, str]],
        device: str | None,
        server: str | None,
        accelerators: Sequence[str] | None,
    ) -> None:
        """Reads the study, or makes one of ``overrides``. Raises StudyError or WarifuError."""
        from warifu import study

        self._given = list(overrides)
        if device is not None:
            self._given += [("device", device), ("server", server or device)]
        elif server is not None:
            self._given.append(("server", server))
        self._text = None if path is None else (study.read_study(path), str(path))
        if path is None and not any(key == "pattern.response_body" for key, _ in self._given):
            self._given.append(("pattern.response_body", "16 B"))
        every = list(study.profile_texts(study.profile_folders()))
        self._profiles = [profile for profile in every if profile[0] != "accelerator"]
        base = self._study([("stack.protocol", "dds")] if path is None else [])
        cases = [json.loads(case.json) for case in base.cases]
        self._case = _present(cases)
        self._index = next(at for at, case in enumerate(cases) if case is self._case)
        stack = self._case["stack"]
        if stack["protocol"] != "dds":
            raise typer.BadParameter(f"{base.name} is not of DDS: name a study that is")
        if len(base.cases) > 1:
            kinds = ", ".join(f"{line} {stack.get(f'{line}_protection')}" for line in _LINES)
            size = self._case["pattern"]["response_body"]
            screen.warn(
                f"{base.name} has {len(base.cases)} cases: the present is {size} B with {kinds}; "
                "--payload, --data, --metadata and --rtps name another"
            )
        ends = {self._case["device"]["profile"], self._case["server"]["profile"]}
        # Large ones take long to read, and each setting reads them.
        self._profiles = [of for of in self._profiles if of[0] != "device" or of[1] in ends]
        self._accelerators = _chosen(every, accelerators)
        self._base = base

    @property
    def label(self) -> str:
        """The device, or both."""
        writer, reader = (self._case[end]["profile"] for end in ("device", "server"))
        return str(writer) if writer == reader else f"{writer} to {reader}"

    def asked(self) -> Asked:
        """The present settings."""
        from warifu.dds.advice import Asked

        stack = self._case["stack"]
        if not _protects(self._case):
            raise typer.BadParameter(
                "nothing protects samples: there is no protection to make leaner"
            )
        metadata, rtps, discovery = (
            Protection(stack[f"{line}_protection"]) for line in ("metadata", "rtps", "discovery")
        )
        data = Basic(stack["data_protection"])
        governance = Governance(data, metadata, rtps, discovery, liveliness=discovery)
        size = self._case["pattern"]["response_body"]
        fixed = [pair for pair in self._given if not pair[0].startswith("stack.")]
        fixed = [pair for pair in fixed if pair[0] != "pattern.response_body"]
        fixed.append(("pattern.response_body", f"{size} B"))
        return Asked(governance, stack["crypto"], stack["aead"], tuple(fixed))

    def advise(self, asked: Asked, only: str | None = None) -> Advice:
        """Predicts the present and its neighbours. Raises WarifuError, in few words."""
        from warifu import _core
        from warifu.dds import advice

        try:
            return advice.advise(asked, self._predict, self._aeads(), self._accelerators, only)
        except advice.NoFigures as error:
            # Of a cipher that is missing the error itself says most.
            missing = None if "aead." in str(error) else self._missing(asked)
            raise _core.WarifuError(missing or _short(str(error))) from None

    def evidence(self) -> str:
        """The weakest evidence of the figures that the present rests on."""
        from warifu import _core

        inputs = self._base.inputs(self._index)
        return _core.weakest_evidence([of["evidence"] for of in inputs if of["evidence"]])

    def evidence_of_bytes(self) -> str | None:
        """That of the times for each byte, which have no interval; None where there are none."""
        from warifu import _core

        inputs = [of for of in self._base.inputs(self._index) if " ns per B" in of["value"]]
        kinds = [of["evidence"] for of in inputs if of["evidence"]]
        return _core.weakest_evidence(kinds) if kinds else None

    def _predict(self, settings: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        from warifu import _core
        from warifu.dds.advice import NoFigures

        try:
            return _core.dds_path(self._study(settings), 0)
        except _core.WarifuError as error:
            raise NoFigures(str(error)) from None

    def _study(self, settings: Sequence[tuple[str, str]]) -> Study:
        from warifu import _core

        # Of what both say, the later one holds.
        given = list(dict([*self._given, *settings]).items())
        if self._text is None:
            return _core.Study.from_choices(given, self._profiles)
        return _core.Study.parse(self._text[0], self._text[1], self._profiles, given)

    def _aeads(self) -> list[str]:
        """Those that both ends have figures for."""
        from warifu import _core

        aeads = ("AES-256-GCM", "AES-128-GCM", "ChaCha20-Poly1305", "AEGIS-128L", "AEGIS-256",
                 "Ascon-AEAD128", "Deoxys-II-128-128")  # fmt: skip
        devices = [profile for profile in self._profiles if profile[0] == "device"]
        has = _core.device_measures_ciphers
        return [aead for aead in aeads if all(has(device, aead) for device in devices)]

    def _missing(self, asked: Asked) -> str | None:
        """What a device lacks altogether, in one short line."""
        from warifu import _core

        writer, reader = _core.missing_operations(self._study(asked.settings()), 0)
        for names, end in ((writer, "device"), (reader, "server")):
            # What is for the answer is not asked about.
            of_dds = [name for name in names if "Dds" in name] or names
            if of_dds:
                device = self._case[end]["profile"]
                more = f" and {len(of_dds) - 1} more" if len(of_dds) > 1 else ""
                return _short(
                    f"{device} has no cost of {of_dds[0]}{more}: run `warifu calibrate "
                    f"host` there, or add its figures to profiles/devices/{device}.toml"
                )
        return None


def _protects(case: Mapping[str, Any]) -> bool:
    stack = case["stack"]
    kinds = {stack.get(f"{line}_protection", "NONE") for line in _LINES}
    return stack.get("crypto", "none") != "none" and kinds != {"NONE"}


def _present(cases: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of the cases between the first one's ends the first with SROS2's governance, else the first
    that is protected, else the first."""
    ends = ("device", "server", "link")
    alike = [case for case in cases if all(case[end] == cases[0][end] for end in ends)]
    protected = [case for case in alike if _protects(case)]
    return next((case for case in protected if _is_sros2s(case)), [*protected, cases[0]][0])


def _is_sros2s(case: Mapping[str, Any]) -> bool:
    kinds = [case["stack"].get(f"{line}_protection") for line in _LINES]
    return kinds == ["ENCRYPT", "ENCRYPT", "SIGN"]


def _chosen(
    profiles: Sequence[ProfileText], names: Sequence[str] | None
) -> list[Mapping[str, Any]]:
    """The accelerators that are asked for; without names those that a device can be given. What is
    part of a processor is in use there, or cannot be had; nor can what no byte has to travel to."""
    from warifu import _core

    of_kind = {name: (text, file) for kind, name, text, file in profiles if kind == "accelerator"}
    if unknown := [name for name in names or [] if name not in of_kind]:
        known = ", ".join(sorted(of_kind))
        raise typer.BadParameter(f"there is no accelerator {unknown[0]}: expected one of {known}")
    found: list[Mapping[str, Any]] = []
    for name in names or sorted(of_kind):
        accelerator = _core.accelerator(name, *of_kind[name])
        distant = accelerator["bus"]["set_up_ns"][1] > 0
        if names or (distant and not accelerator["built_in"]):
            found.append(accelerator)
    return found


def _short(message: str) -> str:
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 2].rstrip() + " .."

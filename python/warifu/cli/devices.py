# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu devices`: the devices and key stores that there are, and how far to trust scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warifu.cli import device_files, screen
from warifu.cli.errors import FAILED, OK, USAGE
from warifu.cli.formats import Format
from warifu.cli.screen import WIDTH, FormatOption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warifu.devices.catalog import Device, ProfileText
    from warifu.devices.judge import Coverage
    from warifu.report.table import Table

#: What a device is told from the next by.
_SHOWN = (
    ("sign", "sign.ecdsa_secp256r1"),
    ("verify", "verify.ecdsa_secp256r1"),
    ("ECDH", "ecdh.derive.secp256r1"),
)


def devices(
    key_stores: Annotated[
        bool, typer.Option("--key-stores", help="The key stores instead, and what a call takes.")
    ] = False,
    links: Annotated[bool, typer.Option("--links", help="The links instead.")] = False,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Leave each measured figure out, scale it from the other devices, and say how "
            "often the truth lies in the band. Exit code 1 if that is surely below nine in ten.",
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """List the devices that `--device` takes: core, clock, and what P-256 takes.

    A profile that cannot be read is named on stderr, and the exit code is then 2.

    Examples:

      warifu devices

      warifu devices --key-stores --format csv

      warifu devices --judge
    """
    from warifu import _core, study
    from warifu.devices import catalog
    from warifu.devices import judge as judging

    if judge:
        known = list(device_files.corpus().devices)
        found = [
            (anchored, judging.coverages(judging.judged(known, anchored=anchored)))
            for anchored in (True, False)
        ]
        screen.show([judgement(found)], form, width=WIDTH)
        verdicts = [row.verdict for _, rows in found for row in rows]
        return FAILED if "fail" in verdicts or not verdicts else OK
    broken: list[Exception] = []
    texts = list(study.profile_texts(study.profile_folders(), broken.append))
    if key_stores:
        table = key_store_table(_sound(texts, "key_store", _core.key_store, broken))
    elif links:
        table = link_table(_sound(texts, "link", _link, broken))
    else:
        known = []

        def read(name: str, text: str, file: str) -> None:
            known.append(catalog.device(name, text, file))

        _sound(texts, "device", read, broken)
        table = device_table(known)
    screen.show([table], form, width=WIDTH)
    for error in broken:
        screen.warn(f"{' '.join(str(error).split())}; it is left out: mend it, or move it away")
    return USAGE if broken else OK


def _sound(
    texts: Sequence[ProfileText],
    wanted: str,
    read: Callable[[str, str, str], object],
    broken: list[Exception],
) -> list[ProfileText]:
    """The profiles of a kind that can be read; why the others cannot goes to `broken`."""
    from warifu import _core

    sound = []
    for one in texts:
        kind, name, text, file = one
        if kind != wanted:
            continue
        try:
            read(name, text, file)
        except _core.WarifuError as error:
            broken.append(error)
        else:
            sound.append(one)
    return sound


def _link(name: str, text: str, file: str) -> None:
    """Raises WarifuError for what is no TOML."""
    import tomllib

    from warifu import _core

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _core.WarifuError(f"{file}: is no TOML: {error}") from None


def device_table(known: Sequence[Device]) -> Table:
    """A row a device."""
    from warifu.report.table import Column, Table

    # A library does not fit in 80 columns; the formats for programs have it.
    heads = ("name", "core", "MHz")
    columns = [Column(head, number=head == "MHz", whole=head == "name") for head in heads]
    columns += [Column(head) for head, _ in _SHOWN]
    table = Table("devices", [*columns, Column("evidence", number=False)])
    for one in known:
        figures = [one.primitives.get(primitive) for _, primitive in _SHOWN]
        evidence = one.evidence(primitive for _, primitive in _SHOWN)
        clock = None if one.clock_hz is None else one.clock_hz / 1e6
        table.add(
            [
                one.name,
                one.core or "-",
                "-" if clock is None else f"{clock:g}",
                *("-" if of is None else _ms(of.call_ns) for of in figures),
                evidence if evidence != "none" else "operations",
            ],
            {
                "name": one.name,
                "description": one.description,
                "core": one.core,
                "clock_hz": one.clock_hz,
                "library": one.library,
                "code": one.code and str(one.code),
                "ram_bytes": one.ram,
                "flash_bytes": one.flash,
                **{
                    f"{primitive}_ns": None if of is None else of.call_ns
                    for (_, primitive), of in zip(_SHOWN, figures, strict=True)
                },
                "evidence": evidence,
            },
        )
    table.notes += [
        "P-256, ms: a signature, its verification, a shared secret.",
        "assumed: scaled from other devices; operations: it has figures of whole messages.",
    ]
    return table


def key_store_table(texts: Sequence[ProfileText]) -> Table:
    """A row a key store."""
    from warifu import _core
    from warifu.report.table import Column, Table

    heads = ("name", "C_Sign ms", "new session ms", "throttle", "description")
    table = Table(
        "key stores",
        [
            Column(
                head,
                number=head.endswith("ms"),
                wrap=None if head == "name" else 32,
                whole=head == "name",
            )
            for head in heads
        ],
    )
    for kind, name, text, file in texts:
        if kind != "key_store":
            continue
        one = _core.key_store(name, text, file)
        calls = {call: law["mean_ns"] for call, law in one["calls"].items()}
        session = sum(ns for call, ns in calls.items() if call != "C_Sign")
        throttle = one["throttle"]
        limit = f"{throttle[0]} in {throttle[1] / 1e9:g} s" if throttle else ""
        table.add(
            [
                name,
                _ms(calls["C_Sign"]) if calls else "-",
                _ms(session) if calls else "-",
                limit,
                one["description"],
            ],
            {
                "name": name,
                "description": one["description"],
                "sign_ns": calls.get("C_Sign"),
                "session_ns": session if calls else None,
                "throttle_calls": throttle[0] if throttle else None,
                "throttle_window_ns": throttle[1] if throttle else None,
            },
        )
    return table


def link_table(texts: Sequence[ProfileText]) -> Table:
    """A row a link."""
    import tomllib

    from warifu.report.table import Column, Table

    table = Table(
        "links",
        [Column(head, number=False, whole=head == "name") for head in ("name", "description")],
    )
    for kind, name, text, _ in texts:
        if kind == "link":
            about = str(tomllib.loads(text).get("description", ""))
            table.add([name, about], {"name": name, "description": about})
    return table


def judgement(found: Sequence[tuple[bool, Sequence[Coverage]]]) -> Table:
    """How often the truth lay in the band, by family of primitives."""
    from warifu.report.table import Column, Table

    heads = ("scaled by", "figures", "n", "inside", "%", "95 %", "error", "band")
    numbers = {"n", "inside", "%"}
    table = Table(
        "scaled figures, each left out and judged by the truth",
        [*(Column(head, number=head in numbers) for head in heads), Column("", number=False)],
    )
    for anchored, rows in found:
        way = "another" if anchored else "clock"
        for row in rows:
            table.add(
                [
                    way,
                    row.what,
                    str(row.count),
                    str(row.inside),
                    f"{row.share * 100:.0f}",
                    f"{row.low * 100:.0f} to {row.high * 100:.0f}",
                    f"x{row.error_factor:.2f}",
                    f"x{row.band_factor:.3g}",
                    row.verdict,
                ],
                {
                    "scaled": way,
                    "figures": row.what,
                    "left_out": row.count,
                    "inside": row.inside,
                    "share": row.share,
                    "share_low": row.low,
                    "share_high": row.high,
                    "median_error_factor": row.error_factor,
                    "median_band_factor": row.band_factor,
                    "verdict": row.verdict,
                },
            )
    table.notes += [
        "another: another figure of the same group of the device; clock: its core, clock and code.",
        "n: figures left out; 95 %: the interval of the share; error, band: medians, either way.",
        "pass: the interval reaches 90 %.",
    ]
    return table


def _ms(ns: float) -> str:
    ms = ns / 1e6
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}"

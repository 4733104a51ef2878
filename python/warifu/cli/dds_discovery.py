# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds discovery`: how long participants take until they can talk."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from warifu.cli import screen
from warifu.cli.errors import OK
from warifu.cli.formats import Format
from warifu.cli.screen import FormatOption

MOST_NODES = 1_000
#: Whose primitives authentication takes where no device is named: the first that has them.
_USUAL_DEVICES = ("this-host", "xeon-2-5-ghz-vm")
_MOST_RTT_NS = 60 * 10**9
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}

_LIMITS = (
    (
        "Counted from the announcements, which all participants make at once. Simulated from round "
        "trips and the timers of Cyclone DDS 0.10.2, for a link that loses nothing and whose rate "
        "does not matter."
    ),
    (
        "Not in it: making a participant (plugins, keys, documents), participants that join later, "
        "Fast DDS. With security, discovery and samples or submessages are protected."
    ),
    (
        "The least and the most differ by what two threads happen to send first, by announcements "
        "that find nobody there yet, and by keys that are just too late for a heartbeat; by how "
        "much what is ready at about the same time may be late, 10 ms, is assumed."
    ),
)


#: Of the weakest figure in it, the margin of 10 ms (crates/predict/sim/src/discovery.rs).
_EVIDENCE = "assumed"


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    good = [word.strip() for word in words if re.fullmatch(r"\s*[0-9]{1,4}\s*", word)]
    found = [int(word) for word in good]
    if len(found) < len(words) or not all(2 <= number <= MOST_NODES for number in found):
        raise typer.BadParameter(
            f"is {text}: expected numbers from 2 to {MOST_NODES}: 2,5,10,20", param_hint="--nodes"
        )
    return sorted(set(found))


def _duration_ns(text: str) -> int:
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(ns|us|ms|s)\s*", text)
    ns = round(float(match[1]) * _UNITS[match[2]]) if match else _MOST_RTT_NS + 1
    if ns > _MOST_RTT_NS:
        raise typer.BadParameter(
            f'is {text}: expected a time up to 60 s, such as "60 ms"', param_hint="--rtt"
        )
    return ns


def discovery(
    nodes: Annotated[
        str, typer.Option("--nodes", "-n", help="How many participants; several numbers as 2,5.")
    ] = "2,5,10,20",
    rtt: Annotated[
        str, typer.Option("--rtt", help='Round trip between any two: "60 ms".')
    ] = "0 ms",
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            help="Device profile whose P-256 primitives authentication takes; this-host if none, "
            "else xeon-2-5-ghz-vm, else computing is left out, which the first line says then.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without DDS Security.")] = False,
    form: FormatOption = Format.TABLE,
) -> int:
    """Predict how long DDS participants take until all their endpoints have matched.

    All start at once and authenticate each other, two by two, as Cyclone DDS 0.10.2 does it. The
    least and the most are given, since much of it depends on what happens to be first.

    Examples:

      warifu dds discovery --rtt "100 ms" --device raspberry-pi-3

      warifu dds discovery --nodes 2,20 --rtt "20 ms" --plain
    """
    from warifu._core import dds_discovery
    from warifu.report.table import Column, Table

    counts, rtt_ns = _numbers(nodes), _duration_ns(rtt)
    without: list[str] = []
    profile = _profile(device) if device is not None else None if plain else _usual(without)
    heads = ("nodes", "handshakes", "least, ms", "most, ms")
    table = Table(
        f"Until all endpoints have matched, {_security(plain, profile)}, round trip "
        f"{rtt_ns / 1e6:g} ms",
        [Column(head) for head in heads],
    )
    for count in counts:
        least, most, handshakes = dds_discovery(count, rtt_ns, secured=not plain, device=profile)
        record = {
            "nodes": count, "handshakes": handshakes, "least_ns": least, "most_ns": most,
            "rtt_ns": rtt_ns, "secured": not plain, "device": profile and profile[0],
            "method": "simulated", "evidence": _EVIDENCE,
        }  # fmt: skip
        table.add([str(count), str(handshakes), f"{least / 1e6:.0f}", f"{most / 1e6:.0f}"], record)
    table.notes.extend(_LIMITS)
    if profile is None and not plain:
        table.notes.append(
            "Authentication takes no time here: a slow device takes longer, and the more so the "
            "more nodes there are; --device names a profile with P-256's primitives, such as "
            "raspberry-pi-3."
        )
        table.notes += without
    screen.show([table], form)
    return OK


def _security(plain: bool, profile: tuple[str, str, str] | None) -> str:
    if plain:
        return "without DDS Security"
    return "with DDS Security, " + (f"on {profile[0]}" if profile else "computing left out")


def _usual(without: list[str]) -> tuple[str, str, str] | None:
    """The first usual device that has what authentication takes; why others do not do goes to
    ``without``."""
    from warifu._core import WarifuError, dds_discovery

    known = _known()
    for name in _USUAL_DEVICES:
        if name not in known:
            continue
        try:
            dds_discovery(2, 0, secured=True, device=known[name])
        except WarifuError as error:
            without.append(f"{name} is not used: {error}.")
        else:
            return known[name]
    return None


def _known() -> dict[str, tuple[str, str, str]]:
    from warifu.study import profile_folders, profile_texts

    return {
        name: (name, text, file)
        for kind, name, text, file in profile_texts(profile_folders())
        if kind == "device"
    }


def _profile(device: str) -> tuple[str, str, str]:
    known = _known()
    if device not in known:
        raise typer.BadParameter(
            f"{device} is no device profile: there are {', '.join(sorted(known))}",
            param_hint="--device",
        )
    return known[device]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading `timelines.json`: single connections of a prediction as they happened.

The format is that of crates/core/results/src/timeline.rs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from warifu.printable import clipped
from warifu.results.manifest import TIMELINES
from warifu.results.sealed_json import not_as_written, read_sealed
from warifu.typed_json import JsonError, read

VERSION = 1
#: A case has two, and a study at most 24 cases with timelines.
_MOST_TIMELINES = 64
#: Entries of one; `warifu predict` stores no more than 1,500.
_MOST_ENTRIES = 3_000
_MOST_BYTES = 32 << 20
_MOST_LETTERS = 200
#: Of the numbers that are no times: those that the format has 32 bits for, and the others.
_MOST_OF_32, _MOST_OF_64 = 2**32 - 1, 2**64 - 1
#: Thirty years: no connection takes longer.
_MOST_NS = 10**18

End = Literal["client", "server"]


@dataclass(frozen=True)
class Mark:
    """Something that the device passed."""

    name: str
    at_ns: int


@dataclass(frozen=True)
class Activity:
    """What an end did; beside that it waited."""

    end: End
    kind: Literal["compute", "system", "key_store", "queue", "pause"]
    name: str
    from_ns: int
    until_ns: int


@dataclass(frozen=True)
class Message:
    """A message that was written."""

    end: End
    label: str
    bytes: int
    at_ns: int


@dataclass(frozen=True)
class Packet:
    """An IP packet; lost if it does not arrive."""

    end: End
    at_ns: int
    arrives_ns: int | None
    bytes: int
    flags: str
    again: bool
    messages: tuple[int, ...]
    """The first message that it has a part of, and the first after the last."""


@dataclass(frozen=True)
class Timer:
    """A timer of a carrier that expired."""

    end: End
    at_ns: int
    kind: Literal["retransmit", "delayed_ack"]


@dataclass(frozen=True)
class Timeline:
    """One connection. Times are from its first mark on, ns."""

    case_id: str
    metric: str
    quantile: float
    trial: int
    connection: int
    seed: int
    total_ns: int
    marks: tuple[Mark, ...]
    activities: tuple[Activity, ...]
    messages: tuple[Message, ...]
    packets: tuple[Packet, ...]
    timers: tuple[Timer, ...]
    left_out: int


@dataclass(frozen=True)
class Timelines:
    """The connections of a prediction that were simulated once more with what happened."""

    version: int
    which: str
    timelines: tuple[Timeline, ...]

    def of(self, case_id: str) -> list[Timeline]:
        """Those of a case, the typical one first."""
        mine = [one for one in self.timelines if one.case_id == case_id]
        return sorted(mine, key=lambda one: one.quantile)


def read_timelines(path: Path, manifest: dict[str, Any]) -> Timelines | None:
    """The timelines of a results folder; None where its version of Warifu wrote none.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    value = read_sealed(path, manifest, TIMELINES, _MOST_BYTES)
    if value is None:
        return None
    file = path / TIMELINES
    try:
        found = read(Timelines, value)
    except (JsonError, RecursionError) as error:
        raise not_as_written(file, str(error)) from None
    if (mistake := next(_mistakes(found), None)) is not None:
        raise not_as_written(file, mistake)
    return found


def _mistakes(found: Timelines) -> Iterator[str]:
    """What a picture cannot be made of, although its type is right."""
    if found.version != VERSION:
        yield f"version is {clipped(str(found.version))}: expected {VERSION}"
    if len(found.which) > _MOST_LETTERS:
        yield f"which has more than {_MOST_LETTERS} letters"
    if len(found.timelines) > _MOST_TIMELINES:
        yield f"has {len(found.timelines)} timelines, and {_MOST_TIMELINES} are the most"
    for place, one in enumerate(found.timelines):
        key = f"timelines[{place}]"
        lists = (one.marks, one.activities, one.messages, one.packets, one.timers)
        if sum(map(len, lists)) > _MOST_ENTRIES:
            yield f"{key} has more than {_MOST_ENTRIES:,} entries"
        if not 0.0 <= one.quantile <= 1.0:
            yield f"{key}.quantile is {one.quantile}: expected 0 to 1"
        if any(not 0 <= time <= _MOST_NS for time in _times(one)):
            yield f"{key} has a time that no connection has"
        if any(len(text) > _MOST_LETTERS for text in _texts(one)):
            yield f"{key} has a text of more than {_MOST_LETTERS} letters"
        for name, value, most in _counts(one):
            if not 0 <= value <= most:
                yield f"{key}.{name} is {clipped(str(value))}: expected 0 to {most}"
        for packet in one.packets:
            if len(packet.messages) != 2 or not 0 <= packet.messages[0] <= packet.messages[1]:
                said = clipped(str(packet.messages))
                yield f"{key} has a packet whose messages are {said}: expected a range"
            elif packet.messages[1] > len(one.messages):
                yield f"{key} has a packet of a message that is not there"


def _times(one: Timeline) -> Iterator[int]:
    yield one.total_ns
    for mark in one.marks:
        yield mark.at_ns
    for activity in one.activities:
        yield activity.from_ns
        yield activity.until_ns - activity.from_ns
        yield activity.until_ns
    for message in one.messages:
        yield message.at_ns
    for timer in one.timers:
        yield timer.at_ns
    for packet in one.packets:
        yield packet.at_ns
        if packet.arrives_ns is not None:
            yield packet.arrives_ns - packet.at_ns
            yield packet.arrives_ns


def _counts(one: Timeline) -> Iterator[tuple[str, int, int]]:
    """Whole numbers that are no times: the key, the number, the most that it may be."""
    yield "trial", one.trial, _MOST_OF_64
    yield "connection", one.connection, _MOST_OF_32
    yield "seed", one.seed, _MOST_OF_64
    yield "left_out", one.left_out, _MOST_OF_64
    for place, message in enumerate(one.messages):
        yield f"messages[{place}].bytes", message.bytes, _MOST_OF_32
    for place, packet in enumerate(one.packets):
        yield f"packets[{place}].bytes", packet.bytes, _MOST_OF_32


def _texts(one: Timeline) -> Iterator[str]:
    yield one.case_id
    yield one.metric
    for mark in one.marks:
        yield mark.name
    for activity in one.activities:
        yield activity.name
    for message in one.messages:
        yield message.label
    for packet in one.packets:
        yield packet.flags

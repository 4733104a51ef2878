# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The time of a DDS sample from the write to the reader, in rows that add up to it.

Writer, link and reader work at the same time on a sample of several datagrams, so only what
somebody waited for counts: each nanosecond belongs to one row. Every figure lies between two
bounds; a `Point` takes each at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Where a row's time is spent.
WRITER, LINK, READER = "writer", "link", "reader"
MIDDLEWARE = "middleware"
PLUGIN = "protection: the plugin's own work"
CALL = "protection: the cipher, for each call"
BYTES = "protection: the cipher, for each byte"
SYSTEM = "system calls and waking"
COLD = "all of it colder after a pause"
TRANSIT = "on its way"

#: A row: where, and what.
Row = tuple[str, str]
#: Low, usual and high, ns.
Bounds = tuple[float, float, float]
#: A figure by its name and bounds: figures that are the same stay the same in all that is compared.
Figure = tuple[str, Bounds]
#: Which of a figure's bounds is taken: 0, 1 or 2.
Point = Callable[[Figure], int]


def at(index: int) -> Point:
    """Every figure at its low (0), usual (1) or high (2) bound."""
    return lambda _: index


@dataclass(frozen=True)
class Work:
    """What is done between two datagrams: row, figure and how often it is paid."""

    terms: tuple[tuple[Row, Figure, float], ...]


@dataclass(frozen=True)
class Send:
    """A datagram leaves the writer."""

    message: int
    bytes: int


@dataclass(frozen=True)
class Receive:
    """The reader waits for a datagram."""

    message: int


@dataclass(frozen=True)
class Way:
    """A sample's way: the writer's steps, and then the reader's."""

    steps: tuple[Work | Send | Receive, ...]
    wake: Figure
    delay_ns: float
    rate: float | None

    def rows(self, point: Point) -> dict[Row, float]:
        """The time of each row, ns, on the way that nobody could shorten by waiting less."""
        clock: dict[Row, float] = {}
        left: dict[int, tuple[float, dict[Row, float], float]] = {}
        link_free = now = 0.0
        reading = False
        for step in self.steps:
            if isinstance(step, Work):
                now += _pay(step, point, clock)
            elif isinstance(step, Send):
                # A datagram waits for those before it; the time of that is the link's.
                taken = 0.0 if self.rate is None else step.bytes * 8e9 / self.rate
                link_free = max(now, link_free) + taken
                left[step.message] = (link_free + self.delay_ns, dict(clock), now)
            else:
                if not reading:
                    reading, now, clock = True, 0.0, {}
                now, clock = self._receive(left[step.message], now, clock, point)
        return clock

    def _receive(
        self,
        left: tuple[float, dict[Row, float], float],
        now: float,
        clock: dict[Row, float],
        point: Point,
    ) -> tuple[float, dict[Row, float]]:
        """The reader goes on when the datagram is there; who waits has to be woken."""
        arrived, of_writer, leaves = left
        if arrived < now:
            return now, clock
        waking = self.wake[1][point(self.wake)]
        _add(of_writer, (LINK, TRANSIT), arrived - leaves)
        _add(of_writer, (READER, SYSTEM), waking)
        return arrived + waking, of_writer

    def total(self, point: Point) -> float:
        """The whole time, ns."""
        return sum(self.rows(point).values())

    def figures(self) -> set[Figure]:
        """What it rests on, of what is not known exactly."""
        found = {figure for step in self.steps if isinstance(step, Work)
                 for _, figure, _ in step.terms} | {self.wake}  # fmt: skip
        return {figure for figure in found if figure[1][0] != figure[1][2]}


def _pay(work: Work, point: Point, clock: dict[Row, float]) -> float:
    taken = 0.0
    for row, figure, times in work.terms:
        time = figure[1][point(figure)] * times
        _add(clock, row, time)
        taken += time
    return taken


def _add(clock: dict[Row, float], row: Row, time: float) -> None:
    clock[row] = clock.get(row, 0.0) + time


@dataclass(frozen=True)
class Offload:
    """What a call of a cipher costs in an accelerator, its bus included."""

    name: str
    set_up_ns: tuple[float, float]
    per_byte_ns: tuple[float, float]

    @staticmethod
    def of(accelerator: Mapping[str, Any], aead: str) -> Offload | None:
        """From `_core.accelerator`; None if it does not have the AEAD."""
        cipher, bus = accelerator["ciphers"].get(aead), accelerator["bus"]
        if cipher is None:
            return None

        def both(term: str) -> tuple[float, float]:
            return (cipher[term][0] + bus[term][0], cipher[term][1] + bus[term][1])

        return Offload(accelerator["name"], both("set_up_ns"), both("per_byte_ns"))


def read(path: Mapping[str, Any], offload: Offload | None = None) -> Way:
    """The way that `_core.dds_path` describes, its ciphers in an accelerator if one is given."""
    steps: list[Work | Send | Receive] = []
    pending: dict[tuple[Row, Figure], float] = {}

    def done() -> None:
        if pending:
            steps.append(Work(tuple((row, figure, n) for (row, figure), n in pending.items())))
            pending.clear()

    for step in path["steps"]:
        if step["step"] == "work":
            for row, figure, times in _terms(step, offload):
                pending[row, figure] = pending.get((row, figure), 0.0) + times
            continue
        done()
        message = step["message"]
        is_send = step["step"] == "send"
        steps.append(Send(message, step["bytes"]) if is_send else Receive(message))
    done()
    wake = ("waking", _bounds(path["wake_ns"]))
    return Way(tuple(steps), wake, float(path["delay_ns"]), path["rate"])


def _terms(step: Mapping[str, Any], offload: Offload | None) -> list[tuple[Row, Figure, float]]:
    end = WRITER if step["writer"] else READER
    name, size = step["operation"], float(step["bytes"])
    what = MIDDLEWARE
    if ".system." in name:
        what = SYSTEM
    elif "DdsProtected" in name:
        what = PLUGIN
    terms = _law((end, what), name, step["own_ns"])
    terms += _each((end, what), name, step["own_per_byte_ns"], size)
    # Apart, so that the middleware's figure is the same whatever protects a sample.
    if more := float(step["protected_ns"]):
        terms.append(((end, PLUGIN), (f"{name} protected", (more, more, more)), 1.0))
    cipher = step["cipher"]
    if cipher is None:
        return terms
    if offload is None:
        primitive = cipher["primitive"]
        terms += _law((end, CALL), primitive, cipher["call_ns"])
        terms += _each((end, BYTES), primitive, cipher["per_byte_ns"], size)
        # The receivers' own tags are calls of their own.
        terms += _each((end, CALL), f"{primitive} for receivers", cipher["tags_ns"], 1.0)
        return terms
    for row, of, (low, high), times in (
        (CALL, "call", offload.set_up_ns, 2.0 if cipher["tags_ns"] else 1.0),
        (BYTES, "byte", offload.per_byte_ns, size),
    ):
        terms.append(((end, row), (f"{offload.name} {of}", (low, (low + high) / 2, high)), times))
    return terms


def _law(row: Row, name: str, law: Sequence[int]) -> list[tuple[Row, Figure, float]]:
    terms: list[tuple[Row, Figure, float]] = [(row, (name, _bounds(law)), 1.0)]
    if cold := law[3]:
        terms.append(((row[0], COLD), (f"{name} cold", (0.0, 0.0, float(cold))), 1.0))
    return terms


def _each(row: Row, name: str, ns: float, times: float) -> list[tuple[Row, Figure, float]]:
    return [(row, (f"{name} each", (ns, ns, ns)), times)] if ns else []


def _bounds(law: Sequence[int]) -> Bounds:
    return float(law[0]), float(law[1]), float(law[2])


def saved(before: Way, after: Way) -> Bounds:
    """What a change saves, ns, from the least to the most: each figure that both have is the same
    in both, and all that are uncertain may be at their worst together."""

    def saves(point: Point) -> float:
        return before.total(point) - after.total(point)

    usual = saves(at(1))
    low = high = usual
    for figure in before.figures() | after.figures():
        moved = [saves(_moved(figure, bound)) - usual for bound in (0, 2)]
        low += min(0.0, *moved)
        high += max(0.0, *moved)
    return low, usual, high


def _moved(figure: Figure, bound: int) -> Point:
    return lambda other: bound if other == figure else 1

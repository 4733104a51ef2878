# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A case as the lab runs it, and whether it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from warifu.case import Case, Link
from warifu.lab.errors import LabError
from warifu.results.parts import LEAST_PACED, LEAST_PARTS
from warifu.typed_json import JsonError

THIS_HOST = "this-host"
"""The device profile that stands for the machine the lab runs on."""

SOFTWARE = "software"
"""The key-store profile of a key in memory."""

MAX_TRIALS_A_PART = 1_000
"""Trials after which a cell's progress is kept, at most."""

PARTS = 40
"""Parts of a cell that has the trials for them: how they differ says how sure a result is, since a
machine's speed drifts between them, and programs that are started anew run some percent quicker or
slower than those before (`warifu.compare.blocks`)."""

TRIALS_OF_A_PART = LEAST_PACED
"""Trials of each of them, at least. Trials of one part share its speed: a part with more of them
tells little more."""

LEAST_TRIALS_OF_A_PART = 40
"""The same where a cell has too few for `LEAST_PARTS` of those."""

PART_SECONDS = 240
"""Time after which a slow cell's progress is kept, about: connections that come one after the other
over a slow link take seconds each."""

LEFT_BYTES = 1_000
"""More than what a connection that has ended still sends each way: a close_notify alert, FINs and
their acknowledgements, and the same once more where one was lost."""


class CaseView(Protocol):
    """A case of a study, as `warifu._core` shows it."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def json(self) -> str:
        """Its canonical form."""

    @property
    def label(self) -> str:
        """What sets it apart from the study's other cases."""

    @property
    def kernels(self) -> Sequence[tuple[str, str, tuple[int, int, int | None] | None]]:
        """The kernel that the TCP of each end is of: setting, profile, release."""


class KernelRelease(NamedTuple):
    """A release of Linux: 6.18.5, or 6.18 of any patch level."""

    major: int
    minor: int
    patch: int | None = None

    def __str__(self) -> str:
        """As people write it."""
        return ".".join(str(number) for number in self if number is not None)

    @property
    def version(self) -> tuple[int, int]:
        """Without the patch level."""
        return self.major, self.minor


@dataclass(frozen=True)
class TcpEnd:
    """The TCP of one end of a case."""

    setting: str
    """`device.tcp` or `server.tcp`."""
    profile: str
    kernel: KernelRelease | None
    """The kernel whose TCP it is, where the profile says so."""


@dataclass(frozen=True)
class Cell:
    """A case of a study, as the lab runs it."""

    case_id: str
    canonical: str
    label: str
    case: Case
    tcp: tuple[TcpEnd, ...] = ()
    """Both ends' TCP; none without TCP."""

    @staticmethod
    def of(view: CaseView) -> Cell:
        """From a case of a study. Raises LabError if its canonical form is none."""
        try:
            case = Case.from_json(view.json)
        except JsonError as error:
            raise LabError(f"case {view.id}: {error}") from None
        ends = (
            TcpEnd(setting, profile, None if release is None else KernelRelease(*release))
            for setting, profile, release in view.kernels
        )
        return Cell(view.id, view.json, view.label, case, tuple(ends))

    @property
    def link(self) -> Link:
        """The network between device and server."""
        return self.case.link

    @property
    def rtt_ns(self) -> int:
        """Propagation delay there and back."""
        return self.link.rtt

    @property
    def is_lossy(self) -> bool:
        """Whether the link may lose a packet."""
        return self.link.loss.kind != "none"

    @property
    def has_memory(self) -> bool:
        """Whether what one packet meets on the link depends on those before it, another
        connection's among them: a queue before a rate, jitter that keeps the order, bursts of loss.

        A case is one connection with the link to itself, so two must not be open at once.
        """
        link = self.link
        limited = link.rate_up is not None or link.rate_down is not None
        in_turn = link.keep_order and max(link.jitter, default=0) > 0
        return limited or in_turn or link.loss.kind == "gilbert_elliott"

    @property
    def settling_ns(self) -> int:
        """Time after which nothing of a connection that has ended is left on the link: its FINs
        there and back behind all the jitter, and a queue of `LEFT_BYTES` each way."""
        link = self.link
        rates = [rate for rate in (link.rate_up, link.rate_down) if rate is not None]
        queues = sum(LEFT_BYTES * 8 * 1_000_000_000 // rate for rate in rates)
        return 2 * (link.rtt + 2 * max(link.jitter, default=0)) + queues


def trials_a_part(cell: Cell, most: int = MAX_TRIALS_A_PART) -> int:
    """How many trials of a case make a part: fewer where one takes long.

    A connection on its own is taken for six crossings of the link and the pause after it.
    """
    if not cell.has_memory:
        return most
    one_ns = cell.settling_ns + 6 * (cell.rtt_ns + 2 * max(cell.link.jitter, default=0))
    return max(1, min(most, PART_SECONDS * 1_000_000_000 // max(1, one_ns)))


def parts_of(trials: int, most: int = MAX_TRIALS_A_PART) -> list[int]:
    """Splits a cell's trials into parts, each a unit of progress, as even as can be.

    >>> parts_of(325)
    [65, 65, 65, 65, 65]
    >>> parts_of(200)
    [40, 40, 40, 40, 40]
    >>> parts_of(199)
    [199]
    """
    if trials <= 0:
        return []
    apart = min(PARTS, trials // TRIALS_OF_A_PART)
    if apart < LEAST_PARTS:
        apart = LEAST_PARTS if trials >= LEAST_PARTS * LEAST_TRIALS_OF_A_PART else 1
    count = max(-(-trials // most), apart)
    base, extra = divmod(trials, count)
    return [base + (index < extra) for index in range(count)]

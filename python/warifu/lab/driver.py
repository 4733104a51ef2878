# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a protocol brings so that the lab can run it: a server, a client, and what is recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from warifu.lab.card import StandIn
from warifu.lab.case import Cell
from warifu.lab.store import Part
from warifu.lab.trials import Trials


@dataclass(frozen=True)
class Setup:
    """A part that is about to run: the link is up, nothing else."""

    cell: Cell
    part: Part
    folder: Path
    """The part's own."""
    shared: Path
    """The measurement's, for what its parts have in common."""
    client_namespace: str
    server_namespace: str
    client_processor: int | None
    server_processor: int | None
    rate_per_second: float
    work_s: float
    """For how long a connection is at work once in a round trip, at most."""
    port: int | None
    """None: the protocol's own."""
    timeout_seconds: float
    """When a connection without a response counts as failed, at the latest."""
    stand_ins: Mapping[str, StandIn]


class Running(Protocol):
    """The programs of a part."""

    @property
    def server_pid(self) -> int:
        """The process that serves."""

    @property
    def client_cpu_ns(self) -> int:
        """What the client took of its processor from its start to its end, ns; 0 before."""

    def wait(self, timeout_seconds: float) -> int | None:
        """The client's exit code, or None if it still runs then. Raises LabError if it failed."""

    def check(self) -> None:
        """Raises LabError if the server, or another program of the part, has ended."""

    def trials(self) -> Trials:
        """What the client measured. Asked for once the link has accepted the run."""

    def record(self) -> dict[str, Any]:
        """What the manifest says of the part beside what it says of any."""


class Driver(Protocol):
    """How the connections of a protocol are run."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The metrics that are recorded, and the column of `Trials` that holds each."""

    @property
    def trials_a_part(self) -> int:
        """How many trials a part has at most."""

    @property
    def link_is_beside_server(self) -> bool:
        """Whether the link's program stays on the server's processor; else the kernel places it,
        which of both ends' processors it takes differing from part to part."""

    def versions(self, cell: Cell) -> dict[str, str]:
        """The programs that a case runs, and their versions. Raises ToolMissing."""

    def why_not_measurable(self, cell: Cell, stand_ins: Collection[str]) -> str | None:
        """Why its programs cannot run a case, with the fix; None if they can."""

    def remark(self, cell: Cell) -> str | None:
        """What to know of a measurement of the case; None if nothing."""

    def is_burst(self, cell: Cell) -> bool:
        """Whether so many packets come at once that the link's own speed, rather than its wake-ups,
        makes them late; such parts are not rejected for it."""

    def routing(self, cell: Cell) -> dict[str, Any]:
        """What the link's routes are given (crates/lab/link/src/config.rs)."""

    def start(self, up: ExitStack, setup: Setup) -> Running:
        """Starts server and client, which `up` stops."""

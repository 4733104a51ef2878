# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What clients of all protocols have in common: their pauses, and the columns that they give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SPREAD = 0.5
"""Pauses between connections vary by this share of their mean, evenly: connections over a link
with delay would otherwise meet in the same phase again and again."""


@dataclass(frozen=True)
class Trials:
    """Columns of equal length, one entry a trial: those of a driver (`warifu.lab.driver`), in the
    units of their metrics, and `failed` (bool). A failed trial's other entries are 0; an entry is
    None where the trial has no value of its own."""

    columns: dict[str, list[Any]]
    connections: list[Connection] = field(default_factory=list)
    """One a trial, where the client tells."""


@dataclass(frozen=True)
class Connection:
    """What joins a trial's connection to the link's log, and what its packets carried."""

    port: int
    """The client's; 0 where none was opened."""
    start_ns: int
    """Just before connect(), on the kernel's monotonic clock."""
    late_ns: int = 0
    """How much later than planned it began."""
    client_messages: tuple[tuple[str, int], ...] = ()
    """Name and length on the wire, B, of what the client sent up to the first response."""
    server_messages: tuple[tuple[str, int], ...] = ()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How fast connections follow one another: so slowly that none waits for another's computing.

A case is one connection with both ends to itself, and so is its prediction. In the lab many follow
one another, and one that finds the server busy with another waits for it, which is no property of
the case. So the rate is set by what a connection takes of the server's processor: measured in a
short pilot, of which nothing but that is kept, and then in each part. What it takes of both
processors says for how long others keep clear of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from warifu.lab.case import Cell
from warifu.lab.trials import SPREAD
from warifu.results.parts import LEAST_PACED, SERVER_BUSY_ALLOWED

CALM_RATE = 25.0
"""Connections a second at most where no packet is lost."""

LOSSY_RATE = 100.0
"""Connections a second at most over a lossy link, where trials are many. Those that wait for a
retransmission overlap with others, and take nothing of a processor meanwhile."""

AIM = 0.04
"""The share that rates are chosen for, below the bound by what processors vary in speed."""

ASSUMED_NS = 2_000_000
"""What a connection takes of the server where nothing is measured yet, assumed: a handshake by
elliptic curves on a processor of the 2010s."""

WORK_MARGIN = 1.5
"""How much more than the mean connection one may compute before it meets the next in phase."""

ASSUMED_WORK_NS = 5_000_000
"""What both ends compute in a connection, with the margin, before anything is measured: assumed."""

PILOT_TRIALS = LEAST_PACED
"""Connections of a pilot: 2.4 s, after which the mean of the server's time is known to a tenth."""

PILOT_TIMEOUT_S = 10.0
"""When a pilot's connection without a response is given up."""


class Rates:
    """The rate of each cell, by what its connections take of the server."""

    def __init__(self, fixed: float | None = None) -> None:
        """``fixed``, connections a second, is kept to whatever the server takes."""
        self._fixed = fixed
        self._server_ns: dict[str, float] = {}
        self._work_ns: dict[str, float] = {}
        #: What short runs took together and in how many trials; cells that had a longer one.
        self._short: dict[str, tuple[int, int]] = {}
        self._settled: set[str] = set()

    def of(self, cell: Cell) -> float:
        """Connections a second; where they come one after the other, one over the pause between."""
        pause = cell.case.pattern.pause
        if pause is not None:
            # It is the case's own.
            rate = 1e9 / pause
        elif self._fixed is not None:
            rate = self._fixed
        else:
            most = LOSSY_RATE if cell.is_lossy else CALM_RATE
            known = self._server_ns.get(cell.case_id)
            guess = max(self._server_ns.values(), default=ASSUMED_NS)
            if known is None and not cell.is_lossy:
                rate = most
            else:
                rate = min(most, AIM * 1e9 / max(1.0, guess if known is None else known))
        if not cell.has_memory:
            return rate
        # A pause varies by half of its mean, and its least must let the link settle.
        return min(rate, (1.0 - SPREAD) * 1e9 / max(1, cell.settling_ns))

    def work_s(self, cell: Cell) -> float:
        """For how long a connection is at work once in a round trip, at most: of that others keep
        clear. Two that meet wait for each other's processor: at 25 connections a second over a
        delay of 20 ms one in fifty did, for half a millisecond (studies/accuracy/README.md)."""
        return self._work_ns.get(cell.case_id, ASSUMED_WORK_NS) / 1e9

    def learn(self, cell: Cell, server_ns: int, client_ns: int, trials: int) -> None:
        """So many connections have taken so much of the two processors together."""
        if server_ns > 0 and trials > 0:
            self._server_ns[cell.case_id] = server_ns / trials
        if server_ns > 0 and client_ns > 0:
            self._learn_work(cell.case_id, server_ns + client_ns, trials)

    def _learn_work(self, case_id: str, took_ns: int, trials: int) -> None:
        """In a few connections some of it is what came before them, such as those that sessions are
        taken from: they count together, and until there is a longer run."""
        if trials >= PILOT_TRIALS:
            self._settled.add(case_id)
        elif case_id in self._settled:
            return
        else:
            before_ns, before = self._short.get(case_id, (0, 0))
            took_ns, trials = took_ns + before_ns, trials + before
            self._short[case_id] = took_ns, trials
        if trials >= PILOT_TRIALS:
            self._work_ns[case_id] = WORK_MARGIN * took_ns / trials

    def needs_pilot(self, cell: Cell, parts: Iterable[int]) -> bool:
        """Whether a cell's rate is to be found before its parts, which have so many trials each.
        Where they are few together, the first of them says it."""
        settled = self._fixed is not None or cell.case_id in self._server_ns
        settled |= cell.case.pattern.pause is not None
        return not settled and _is_paced(cell) and sum(parts) > 3 * PILOT_TRIALS

    def why_too_fast(self, cell: Cell, busy: float, trials: int) -> str | None:
        """Why a part of so many trials is no measurement of its case whose server was busy for this
        share. In few trials most of that is what came before them, such as the connections that
        sessions are taken from."""
        few = trials < PILOT_TRIALS
        fixed = self._fixed is not None
        if few or fixed or not _is_paced(cell) or busy <= SERVER_BUSY_ALLOWED:
            return None
        longer = cell.case.pattern.pause is not None
        return (
            f"the server was busy for {busy:.1%} of the time, {SERVER_BUSY_ALLOWED:.1%} are "
            f"allowed: {'choose a longer pattern.pause' if longer else 'slower next time'}"
        )


def busy(cpu_ns: int, trials: int, rate: float, elapsed_s: float, alone: bool) -> float:
    """The share of the time for which a processor was busy while connections began. Where many are
    open at once, the wait for the last of them is not counted."""
    began_s = trials / rate
    seconds = elapsed_s if alone else min(elapsed_s, began_s) if elapsed_s > 0 else began_s
    return cpu_ns / 1e9 / seconds if seconds > 0 else 0.0


def _is_paced(cell: Cell) -> bool:
    """Whether the lab chooses when its connections begin, and one may meet another at the server.
    Samples of DDS are one participant's, whose server is busy with discovery before the first."""
    return cell.case.stack.protocol != "dds" and not cell.has_memory

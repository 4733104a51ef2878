# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One part of a cell: namespaces, link, server and client put up, run, judged and taken down."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import identity
from warifu.lab import interruption, kernel, packets, processes, quiet, workplace
from warifu.lab.card import StandIn
from warifu.lab.case import Cell
from warifu.lab.driver import Running, Setup
from warifu.lab.drivers import driver_of
from warifu.lab.errors import RunRejected
from warifu.lab.link import Link, configuration
from warifu.lab.store import Part
from warifu.lab.trials import SPREAD, Trials
from warifu.lab.workplace import Workplace

CALM_RATE = 25.0
"""Connections a second where no packet is lost. A mutual handshake takes about 2 ms of each
side's processor, so a processor is busy for 5 % of the time and a step that finds it busy
(one in twenty) waits for about half a millisecond: some 0.02 ms a step on average."""

LOSSY_RATE = 100.0
"""Connections a second over a lossy link, where trials are many and the gates are milliseconds
wide: a step in five finds its processor busy and waits, some 0.1 ms a step on average."""

LATE_FRACTION_MAX = 0.01
"""A part is rejected if more packets are late by over 0.5 ms: the P99 of the link's lateness is
held to what its precision is judged by. On a virtual machine the hypervisor takes the processors
for some milliseconds every few seconds, which no stricter bound would let pass."""


@dataclass(frozen=True)
class Settings:
    """How the lab runs; not part of a case."""

    rate_per_second: float | None = None
    """Connections a second; None: `CALM_RATE` or `LOSSY_RATE`. Slower over a link with memory,
    where each waits for the one before."""
    port: int | None = None
    """The server's; None: the protocol's own."""
    others_bound: float | None = None
    """Share of all processors that other programs and the hypervisor may take during a part; beyond
    it the part is rejected unseen, as for a late link. None: it is only put on record."""
    late_fraction_max: float = LATE_FRACTION_MAX
    """Share of late packets beyond which a part is rejected. Tests that judge no time allow all."""
    timeout_seconds: float = 180.0
    """When a connection without a response counts as failed. Linux gives up a SYN after about 70
    (linear timeouts) to 130 s (tcp_syn_retries = 6)."""


@dataclass
class PartResult:
    """A part that the link has accepted."""

    trials: Trials
    record: dict[str, Any]
    packets: packets.Kept | None = None
    """What became of the trials' packets, over TCP."""


class Bench(processes.Stoppable):
    """Runs parts; holds the folder that they share."""

    def __init__(self, settings: Settings, stand_ins: Mapping[str, StandIn] | None = None) -> None:
        """Makes the folder. `stand_ins` are run for key stores, by their profiles' names."""
        self._settings = settings
        self._stand_ins = stand_ins or {}
        with identity.as_root():
            self._place = Workplace()
        self._runs = 0

    def stop(self) -> None:
        """Removes the folder."""
        with identity.as_root():
            self._place.close()

    def run(self, cell: Cell, part: Part, stop: Callable[[], bool]) -> PartResult | None:
        """Measures a part; None if `stop` said so.

        Raises RunRejected if the link or other programs were beyond their bounds, before anything
        of the result was looked at; LabError if a program failed.
        """
        # All of a part at once: what a driver writes, starts, waits for and reads lies in the lab's
        # folder, which root alone may enter, and a step left out would fail halfway. What belongs
        # to the caller is asked as the caller: `stop`, and a card's timing (`lab.card`).
        with identity.as_root():
            return self._run(cell, part, stop)

    def _run(self, cell: Cell, part: Part, stop: Callable[[], bool]) -> PartResult | None:
        driver = driver_of(cell)
        self._runs += 1
        folder = self._place.folder / f"run{self._runs}"
        folder.mkdir()
        namespaces: list[str] = []
        with contextlib.ExitStack() as up:
            up.callback(lambda: self._take_down(namespaces))
            for end in ("c", "s"):
                namespaces.append(self._place.namespace(f"{end}{self._runs}", kernel.PINNED))
            client_end, server_end = namespaces
            config = configuration(cell, client_end, server_end, part.seed) | driver.routing(cell)
            late = 1.0 if driver.is_burst(cell) else self._settings.late_fraction_max
            config["late_fraction_max"] = late
            log = folder / "packets.log"
            if cell.tcp:
                config["packet_log"] = str(log)
            setup = self._setup(cell, part, folder, client_end, server_end)
            beside = setup.server_processor if driver.link_is_beside_server else None
            link = up.enter_context(Link(config, folder, processor=beside))
            running = driver.start(up, setup)
            before = processes.cpu_ns(running.server_pid)
            watch = quiet.Watch([link.pid, running.server_pid])
            if not self._wait(running, link, stop):
                return None
            used = processes.cpu_ns(running.server_pid) - before
            # Judged before the client's output is opened.
            shares = watch.shares()
            report = link.accepted_report()
            self._judge(shares, report)
            trials = running.trials()
            tcp = workplace.sysctls(client_end, [*kernel.PINNED, *kernel.SEEN])
            record = {
                "first_trial": part.first_trial,
                "trials": part.trials,
                "seed": part.seed,
                "rate_per_second": self.rate(cell),
                "alone": cell.has_memory,
                "server_cpu_ns": used,
                "processors": processors(),
                "processor_shares": shares.record(),
                "pinned_differently": kernel.pinned_differently(tcp),
                "link": report,
                "tcp": tcp,
                **running.record(),
            }
            kept = None
            if cell.tcp:
                kept = packets.keep(packets.read(log), trials.connections, part.first_trial)
                log.unlink()
            return PartResult(trials, record, kept)

    def _take_down(self, namespaces: list[str]) -> None:
        for name in namespaces:
            self._place.remove_namespace(name)

    def _setup(
        self, cell: Cell, part: Part, folder: Path, client_end: str, server_end: str
    ) -> Setup:
        client_processor, server_processor = processors()
        return Setup(
            cell,
            part,
            folder,
            self._place.folder,
            client_end,
            server_end,
            client_processor,
            server_processor,
            self.rate(cell),
            self._settings.port,
            self._settings.timeout_seconds,
            self._stand_ins,
        )

    def _wait(self, running: Running, link: Link, stop: Callable[[], bool]) -> bool:
        """Until the client has ended; False if `stop` said so first."""
        while running.wait(0.1) is None:
            interruption.check()
            with identity.as_caller():
                stopped = stop()
            if stopped:
                return False
            running.check()
            link.check()
        running.check()
        return True

    def _judge(self, shares: quiet.Shares, report: dict[str, Any]) -> None:
        bound = self._settings.others_bound
        taken = shares.others + shares.stolen
        if bound is not None and taken > bound:
            reason = f"others took {taken:.1%} of the processors, {bound:.1%} are allowed"
            raise RunRejected([reason], report)

    def rate(self, cell: Cell) -> float:
        """Connections a second; where they come one after the other, one over the pause between."""
        rate = self._settings.rate_per_second or (LOSSY_RATE if cell.is_lossy else CALM_RATE)
        # A pause varies by half of its mean, and its least must let the link settle.
        settled = (1.0 - SPREAD) * 1e9 / max(1, cell.settling_ns)
        return min(rate, settled) if cell.has_memory else rate


def processors() -> tuple[int | None, int | None]:
    """The processors of client and server, one each where there are two: the two ends are two
    machines, and the scheduler must not make one wait for the other. The link goes where there is
    nothing to do, unless the protocol's driver keeps it beside the server."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)

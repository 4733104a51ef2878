# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One part of a cell: namespaces, link, server and client put up, run, judged and taken down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from warifu import identity
from warifu.lab import (
    awake,
    interruption,
    kernel,
    packets,
    processes,
    quiet,
    rates,
    ticks,
    workplace,
)
from warifu.lab.card import StandIn
from warifu.lab.case import Cell
from warifu.lab.driver import Running, Setup
from warifu.lab.drivers import driver_of
from warifu.lab.errors import RunRejected
from warifu.lab.link import Link, configuration
from warifu.lab.rates import Rates
from warifu.lab.store import Part
from warifu.lab.trials import Trials
from warifu.lab.workplace import Workplace

LATE_FRACTION_MAX = 0.01
"""A part is rejected if more packets are late by over 0.5 ms: the P99 of the link's lateness is
held to what its precision is judged by. On a virtual machine the hypervisor takes the processors
for some milliseconds every few seconds, which no stricter bound would let pass."""

_PILOT_SEED = 0x70696C6F74
"""Sets a pilot's chance apart from its part's."""


@dataclass(frozen=True)
class Settings:
    """How the lab runs; not part of a case."""

    rate_per_second: float | None = None
    """Connections a second, whatever the server takes of its processor; None: so many that it is
    busy for less than `results.parts.SERVER_BUSY_MAX` of the time. Slower over a link with memory,
    where each waits for the one before."""
    port: int | None = None
    """The server's; None: the protocol's own."""
    others_bound: float | None = None
    """Share of all processors that other programs and the hypervisor may take during a part; beyond
    it the part is rejected unseen, as for a late link. None: it is put on record, and what is
    beyond `quiet.OTHERS_MAX` is not judged (`warifu.compare`)."""
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
        self._up = contextlib.ExitStack()
        with identity.as_root():
            self._ticks = ticks.read()
            self._place = Workplace()
            try:
                self._up.enter_context(awake.kept(self._place.folder))
            except BaseException:
                self._place.close()
                raise
        self._runs = 0
        # Names this run of the lab: parts of one are minutes apart, those of another maybe days.
        self._sitting = int(time.time())
        self.rates = Rates(self._settings.rate_per_second)

    def stop(self) -> None:
        """Removes the folder. May be called twice."""
        with identity.as_root():
            self._up.close()
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
            return self._run(cell, part, stop, self._settings)

    def _run(
        self, cell: Cell, part: Part, stop: Callable[[], bool], settings: Settings
    ) -> PartResult | None:
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
            late = 1.0 if driver.is_burst(cell) else settings.late_fraction_max
            config["late_fraction_max"] = late
            log = folder / "packets.log"
            if cell.tcp:
                config["packet_log"] = str(log)
            setup = self._setup(cell, part, folder, (client_end, server_end), settings)
            beside = setup.server_processor if driver.link_is_beside_server else _of_link()
            link = up.enter_context(Link(config, folder, processor=beside))
            running = driver.start(up, setup)
            used = _Used(running)
            began = round(time.time(), 1)
            watch = quiet.Watch([link.pid, running.server_pid])
            if not self._wait(running, link, stop):
                return None
            used.end(running)
            # Judged before the client's output is opened.
            shares = watch.shares()
            rate = self.rate(cell)
            busy = used.busy(part.trials, rate, cell.has_memory)
            self.rates.learn(cell, used.server_ns, used.client_ns, part.trials)
            report = link.accepted_report()
            self._judge(cell, part, shares, busy["server"], report)
            trials = running.trials()
            tcp = workplace.sysctls(client_end, [*kernel.PINNED, *kernel.SEEN])
            record = {
                "first_trial": part.first_trial,
                "trials": part.trials,
                "seed": part.seed,
                "sitting": self._sitting,
                "began": began,
                "start_late_ns": max((one.late_ns for one in trials.connections), default=None),
                "rate_per_second": rate,
                "alone": cell.has_memory,
                "server_cpu_ns": used.server_ns,
                "client_cpu_ns": used.client_ns,
                "busy": busy,
                "processors": processors(),
                "kept_awake": awake.are_kept(),
                "processor_shares": shares.record(),
                "others_max": quiet.OTHERS_MAX,
                "pinned_differently": kernel.pinned_differently(tcp),
                "link": report,
                "ticks": None if self._ticks is None else asdict(self._ticks),
                "tcp": tcp,
                **running.record(),
            }
            kept = None
            if cell.tcp:
                kept = packets.keep(packets.read(log), trials.connections, part.first_trial)
                log.unlink()
            return PartResult(trials, record, kept)

    def pilot(self, cell: Cell, part: Part, stop: Callable[[], bool]) -> None:
        """Finds out how fast the connections of a cell may follow one another, from a short run of
        its own of which nothing else is kept. The link may be late in it. `part` is the cell's
        first.

        Raises LabError if a program failed.
        """
        short = Part(part.case_id, part.first_trial, rates.PILOT_TRIALS, part.seed ^ _PILOT_SEED)
        settings = replace(
            self._settings,
            late_fraction_max=1.0,
            timeout_seconds=min(self._settings.timeout_seconds, rates.PILOT_TIMEOUT_S),
        )
        # What a rejected run has taken of the server counts as well.
        with identity.as_root(), contextlib.suppress(RunRejected):
            self._run(cell, short, stop, settings)

    def _take_down(self, namespaces: list[str]) -> None:
        for name in namespaces:
            self._place.remove_namespace(name)

    def _setup(
        self, cell: Cell, part: Part, folder: Path, ends: tuple[str, str], settings: Settings
    ) -> Setup:
        client_end, server_end = ends
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
            self.rates.work_s(cell),
            settings.port,
            settings.timeout_seconds,
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
            awake.check()
        running.check()
        return True

    def _judge(
        self,
        cell: Cell,
        part: Part,
        shares: quiet.Shares,
        busy: float,
        report: dict[str, Any],
    ) -> None:
        bound = self._settings.others_bound
        reasons = []
        if bound is not None and shares.taken > bound:
            reasons.append(
                f"others took {shares.taken:.1%} of the processors, {bound:.1%} are allowed"
            )
        reason = self.rates.why_too_fast(cell, busy, part.trials)
        if reason is not None:
            reasons.append(reason)
        if reasons:
            raise RunRejected(reasons, report)

    def rate(self, cell: Cell) -> float:
        """Connections a second; where they come one after the other, one over the pause between."""
        return self.rates.of(cell)


class _Used:
    """What a part's two ends take of their processors."""

    def __init__(self, running: Running) -> None:
        """From now on."""
        self._began = time.monotonic()
        self._before = processes.cpu_ns(running.server_pid)
        self._seconds = 0.0
        self.server_ns = 0
        self.client_ns = 0
        """Of the client from its start to its end."""

    def end(self, running: Running) -> None:
        """The client has ended."""
        self._seconds = time.monotonic() - self._began
        self.server_ns = max(0, processes.cpu_ns(running.server_pid) - self._before)
        self.client_ns = running.client_cpu_ns

    def busy(self, trials: int, rate: float, alone: bool) -> dict[str, float]:
        """For the manifest: the share of the time for which each end was busy."""
        ends = {"client": self.client_ns, "server": self.server_ns}
        return {
            end: round(rates.busy(ns, trials, rate, self._seconds, alone), 4)
            for end, ns in ends.items()
        }


def processors() -> tuple[int | None, int | None]:
    """The processors of client and server, one each where there are two: the two ends are two
    machines, and the scheduler must not make one wait for the other. The link goes where there is
    nothing to do, unless the protocol's driver keeps it beside the server, or processors are kept
    awake, of which it has the third."""
    usable = awake.used()
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def _of_link() -> int | None:
    usable = awake.used()
    return usable[2] if awake.are_kept() and len(usable) > 2 else None

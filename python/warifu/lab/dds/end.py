# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two ends: a middleware's probe, started, and what it reports."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from warifu import tools
from warifu.dds import counters
from warifu.dds.counters import CountersDamaged
from warifu.dds.keystore import Enclave
from warifu.lab.dds.cyclone import Cyclone
from warifu.lab.dds.exchange import Exchange
from warifu.lab.dds.fastdds import FastDds
from warifu.lab.dds.place import Place
from warifu.lab.errors import LabError
from warifu.lab.processes import Process, Stoppable

UNMATCHED = 1
"""A probe's exit code where nobody matched in time."""


class Middleware(Protocol):
    """How a middleware's probe is configured."""

    @property
    def probe(self) -> str:
        """The program (dds/probes)."""

    @property
    def without(self) -> Collection[str]:
        """Variables of the environment that it must not see."""

    def arguments(
        self, exchange: Exchange, enclave: Enclave | None, place: Place
    ) -> list[str | Path]:
        """Of the probe, beside its role's own."""

    def environment(self, exchange: Exchange, place: Place) -> dict[str, str]:
        """Of the probe; a configuration that it names is written."""


MIDDLEWARE: dict[str, Middleware] = {"cyclonedds": Cyclone(), "fastdds": FastDds()}
"""By the words of `stack.middleware`."""


class End(Stoppable):
    """A running probe."""

    def __init__(
        self,
        role: str,
        exchange: Exchange,
        enclave: Enclave | None,
        place: Place,
        *arguments: str | int,
    ) -> None:
        """Starts it in an empty folder; `arguments` are the role's own."""
        middleware = MIDDLEWARE[exchange.stack.middleware]
        runs_in = place.folder / "empty"
        runs_in.mkdir(parents=True)
        self.role = role
        self._place = place
        with (place.folder / "report.json").open("wb") as output:
            self._process = Process(
                f"{middleware.probe} {role}",
                [
                    tools.find(middleware.probe), role, "--topic", exchange.topic,
                    "--bytes", str(exchange.sample_bytes),
                    "--samples", place.folder / "samples",
                    *middleware.arguments(exchange, enclave, place), *map(str, arguments),
                ],
                log=place.folder / "probe.log",
                namespace=place.namespace,
                processor=place.processor,
                stdout=output,
                environment=middleware.environment(exchange, place),
                without=middleware.without,
                folder=runs_in,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def cpu_ns(self) -> int:
        """What it took of its processor from its start to its end, ns; 0 before."""
        return self._process.cpu_ns

    def wait(self, timeout_seconds: float) -> int | None:
        """Its exit code, or None while it runs; `UNMATCHED` is one. Raises LabError if it
        failed."""
        code = self._process.wait(timeout_seconds)
        if code not in (None, 0, UNMATCHED):
            raise LabError(f"{self._process.name} failed{self._words() or f': exit code {code}'}")
        return code

    def check(self) -> None:
        """Raises LabError if it has ended."""
        if self._process.exit_code() is not None:
            raise LabError(f"{self._process.name} ended during the run{self._words()}")

    def stop(self) -> None:
        """Ends it; it writes what it saw. May be called twice."""
        self._process.stop()

    def report(self) -> dict[str, Any]:
        """What it said at its end."""
        try:
            found = json.loads((self._place.folder / "report.json").read_text())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise LabError(f"{self._process.name} said nothing at its end{self._words()}")
        return found

    def samples(self) -> dict[int, int]:
        """Latency in ns by when the sample was sent."""
        return _times(self._place.folder / "samples")

    def writes(self) -> dict[int, int]:
        """How long each write took, ns, by when it began; empty of a middleware whose probe does
        not say."""
        writes = self._place.writes
        return _times(writes) if writes.exists() else {}

    def counters(self) -> list[Mapping[str, Any]]:
        """What Warifu's plugin counted, by function; none with another."""
        try:
            counts = counters.by_site(counters.read(self._place.counters))
        except CountersDamaged as error:
            raise LabError(str(error)) from None
        return [
            {
                "function": one.site, "calls": one.calls, "bytes": one.bytes,
                "time_ns": one.time_ns, "refused": sum(one.refused.values()),
            }
            for one in counts.values()
        ]  # fmt: skip

    def _words(self) -> str:
        words = self._process.log_tail(2)
        return f": {words}" if words else ""


def _times(file: Path) -> dict[int, int]:
    lines = file.read_text().splitlines()
    return {int(at): int(ns) for at, ns in (line.split() for line in lines)}

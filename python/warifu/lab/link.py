# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Drives `warifu-link`: from a case's link to its JSON configuration, and its reports back."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from warifu import case, tools
from warifu.lab.case import Cell
from warifu.lab.errors import LabError, LabUnavailable, RunRejected
from warifu.lab.processes import Process, Stoppable

CLIENT_ADDRESS = "10.9.0.1"
SERVER_ADDRESS = "10.9.0.2"

START_SECONDS = 10.0
"""How long the link has to be ready, or to answer a command."""


def impairments(link: case.Link) -> dict[str, Any]:
    """A case's link as `warifu-link` takes it (crates/lab/link/src/config.rs, `LinkConfig`).

    End A is the client's: up is from A to B. An odd round-trip time gives the way up the
    nanosecond more, as in the simulator.
    """
    return {
        "delay_a_to_b_ns": link.rtt - link.rtt // 2,
        "delay_b_to_a_ns": link.rtt // 2,
        "jitter_ns": link.jitter,
        "keep_order": link.keep_order,
        "rate_a_to_b_bps": link.rate_up,
        "rate_b_to_a_bps": link.rate_down,
        "queue_packets": link.queue_packets,
        "loss": dataclasses.asdict(link.loss),
    }


def configuration(cell: Cell, client: str, server: str, seed: int) -> dict[str, Any]:
    """The configuration between the two namespaces, but for what a protocol's driver adds."""
    return {
        "name_a": client,
        "name_b": server,
        "address_a": CLIENT_ADDRESS,
        "address_b": SERVER_ADDRESS,
        "mtu": cell.link.mtu,
        "seed": seed,
        "link": impairments(cell.link),
    }


class Link(Stoppable):
    """A running `warifu-link`; its devices vanish with it."""

    def __init__(
        self, config: dict[str, Any], folder: Path, *, processor: int | None = None
    ) -> None:
        """Starts it and waits until it is ready. Raises LabUnavailable if it may not run here."""
        self._process = Process(
            "warifu-link",
            [tools.find("warifu-link"), "--config", "-"],
            log=folder / "link.log",
            processor=processor,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._tell(config)
            self.ready = self._event("ready")
        except LabError as error:
            words = self._process.log_tail()
            self.stop()
            raise LabUnavailable(words or str(error)) from error
        except BaseException:
            self.stop()
            raise

    def set(self, impairments_now: dict[str, Any], seed: int) -> None:
        """Changes the impairments and restarts the random streams."""
        self._tell({"command": "set", "link": impairments_now, "seed": seed})
        self._event("set")

    def report(self) -> dict[str, Any]:
        """Closes the window since the last report; the link's report on it."""
        self._tell({"command": "report"})
        return self._event("report")

    def accepted_report(self) -> dict[str, Any]:
        """The same; raises RunRejected if the link was late or lost packets, as it says itself."""
        report = self.report()
        if not report["accepted"]:
            raise RunRejected(report["rejected_because"], report)
        return report

    def check(self) -> None:
        """Raises LabError if it has ended."""
        if self._process.exit_code() is not None:
            raise LabError(f"the link ended during the run: {self._process.log_tail()}")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self) -> None:
        """Takes the link down. May be called twice."""
        self._process.stop()

    def _tell(self, value: dict[str, Any]) -> None:
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise LabError(f"the link has ended: {self._process.log_tail()}") from error

    def _event(self, wanted: str) -> dict[str, Any]:
        deadline = time.monotonic() + START_SECONDS
        while True:
            event: dict[str, Any] = json.loads(self._process.line(deadline))
            kind = event.pop("event", None)
            if kind == wanted:
                return event
            if kind == "error":
                raise LabError(f"the link rejected a command: {event.get('message')}")

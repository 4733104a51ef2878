# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two ends: `cyclonedds-probe`, configured and started, and what they report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.dds import counters
from warifu.dds.counters import CountersDamaged
from warifu.dds.keystore import Enclave
from warifu.lab.dds.exchange import Exchange
from warifu.lab.errors import LabError
from warifu.lab.processes import Process, Stoppable

PROBE = "cyclonedds-probe"
PLUGIN = "libwarifu_dds_crypto.so"

UNMATCHED = 1
"""The probe's exit code where nobody matched in time."""

_FOLDERS = "/usr/lib/*/libddsc0debian"
"""Where Debian keeps Cyclone's own plugins, apart from other libraries."""


@dataclass(frozen=True)
class Place:
    """Where an end runs."""

    folder: Path
    namespace: str | None
    processor: int | None
    address: str
    peer: str


def configuration(address: str, peer: str) -> str:
    """As CYCLONEDDS_URI takes it: the link has two ends and carries no multicast."""
    return (
        '<CycloneDDS><Domain id="any"><General>'
        f'<Interfaces><NetworkInterface address="{address}"/></Interfaces>'
        "<AllowMulticast>false</AllowMulticast></General>"
        # Without multicast a peer tries the ports of the first few participants.
        "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
        f'<Peers><Peer address="{peer}"/></Peers></Discovery>'
        "<Tracing><Verbosity>warning</Verbosity><OutputFile>stderr</OutputFile></Tracing>"
        "</Domain></CycloneDDS>"
    )


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
        """Starts it as `ping` or `pong`; `arguments` are the role's own."""
        place.folder.mkdir(parents=True)
        self.role = role
        self._folder = place.folder
        config = place.folder / "cyclone.xml"
        config.write_text(configuration(place.address, place.peer))
        security: list[str | Path] = []
        if enclave is not None:
            security = ["--enclave", enclave.folder]
            if exchange.stack.crypto == "warifu":
                security += ["--crypto", f"{tools.find(PLUGIN)}:init_crypto"]
        with (place.folder / "report.json").open("wb") as output:
            self._process = Process(
                f"{PROBE} {role}",
                [
                    tools.find(PROBE), role, "--topic", exchange.topic,
                    "--bytes", str(exchange.sample_bytes),
                    "--samples", place.folder / "samples", *security, *map(str, arguments),
                ],
                log=place.folder / "probe.log",
                namespace=place.namespace,
                processor=place.processor,
                stdout=output,
                environment=self._environment(exchange, config),
            )  # fmt: skip

    def _environment(self, exchange: Exchange, config: Path) -> dict[str, str]:
        return {
            "CYCLONEDDS_URI": config.as_uri(),
            "LD_LIBRARY_PATH": ":".join(map(str, plugin_folders())),
            # What decides beside a domain's properties is the case's, not the caller's.
            "WARIFU_DDS_AEAD": exchange.stack.aead,
            "WARIFU_DDS_MAX_BLOCKS_PER_SESSION": str(1 << 32),
            counters.VARIABLE: str(self._folder / "plugin.jsonl"),
        }

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

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
            found = json.loads((self._folder / "report.json").read_text())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise LabError(f"{self._process.name} said nothing at its end{self._words()}")
        return found

    def samples(self) -> dict[int, int]:
        """Latency in ns by when the sample was sent."""
        lines = (self._folder / "samples").read_text().splitlines()
        return {int(sent): int(ns) for sent, ns in (line.split() for line in lines)}

    def counters(self) -> list[Mapping[str, Any]]:
        """What Warifu's plugin counted, by function; none with another."""
        try:
            counts = counters.by_site(counters.read(self._folder / "plugin.jsonl"))
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


def plugin_folders() -> list[Path]:
    """Folders that the loader does not look in by itself."""
    root = Path("/")
    return sorted(root.glob(_FOLDERS.lstrip("/")))

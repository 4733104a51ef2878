# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS: a sample to a participant at the other end of the link, and its answer, again and again."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from warifu import tools
from warifu.dds.keystore import Enclave, KeystoreError, create
from warifu.lab.case import MAX_TRIALS_A_PART, SOFTWARE, Cell
from warifu.lab.dds.cyclone import PLUGIN, PROBE, UNMATCHED, End, Place
from warifu.lab.dds.exchange import Exchange, why_no_exchange
from warifu.lab.driver import Setup
from warifu.lab.errors import LabError
from warifu.lab.link import CLIENT_ADDRESS, SERVER_ADDRESS
from warifu.lab.trials import Trials

COLUMNS = {
    "dds.round_trip": "round_trip_ns",
    "dds.one_way": "one_way_ns",
    "dds.discovery": "discovery_ns",
}
"""Metric to the column of `Trials` that holds it. Discovery is the part's: its first trial has
it."""

PATIENCE_SECONDS = 65.0
"""For a match, and for an answer: participants announce themselves every 30 s (Cyclone DDS 0.10.2,
Discovery/SPDPInterval), quickly again and again at first. Where nobody has matched by then, all
samples of the part have failed."""

_MOST = 100_000_000
"""More samples than a part has: the other end answers until it is stopped."""


class DdsDriver:
    """Two participants of Cyclone DDS, one at each end; a part is one session of theirs."""

    columns = COLUMNS
    trials_a_part = MAX_TRIALS_A_PART

    def versions(self) -> dict[str, str]:
        """Of the probe, which names Cyclone's, of our plugin, and of openssl, which makes keys."""
        return {name: tools.version(name) for name in (PROBE, PLUGIN, "openssl")}

    def why_not_measurable(self, cell: Cell, stand_ins: Collection[str]) -> str | None:
        """Identity keys are files."""
        if cell.case.key_store.profile != SOFTWARE:
            return (
                f"key_store is {cell.case.key_store.profile}: the keys of DDS participants are "
                f'files here; choose key_store = "{SOFTWARE}"'
            )
        return why_no_exchange(Exchange.of(cell.case))

    def remark(self, cell: Cell) -> str | None:
        """Nothing: no profile stands for the kernel's UDP."""
        return None

    def routing(self, cell: Cell) -> dict[str, Any]:
        """UDP knows no congestion control."""
        return {}

    def start(self, up: ExitStack, setup: Setup) -> _Running:
        """Keys, the end that answers, the end that asks."""
        exchange = Exchange.of(setup.cell.case)
        asks, answers = _enclaves(setup, exchange)
        patience = max(1, round(min(PATIENCE_SECONDS, setup.timeout_seconds)))
        server = up.enter_context(
            End(
                "pong", exchange, answers,
                Place(
                    setup.folder / "server", setup.server_namespace, setup.server_processor,
                    SERVER_ADDRESS, CLIENT_ADDRESS,
                ),
                # The end that asks gives up first.
                "--timeout", 2 * patience + 10, "--count", _MOST,
            )
        )  # fmt: skip
        client = up.enter_context(
            End(
                "ping", exchange, asks,
                Place(
                    setup.folder / "client", setup.client_namespace, setup.client_processor,
                    CLIENT_ADDRESS, SERVER_ADDRESS,
                ),
                "--timeout", patience, "--count", setup.part.trials,
                "--seed", max(1, setup.part.seed),
                "--period-us", round(1e6 / setup.rate_per_second),
            )
        )  # fmt: skip
        return _Running(setup, server, client)


class _Running:
    def __init__(self, setup: Setup, server: End, client: End) -> None:
        self._setup = setup
        self._server = server
        self._client = client
        self.server_pid = server.pid

    def wait(self, timeout_seconds: float) -> int | None:
        return self._client.wait(timeout_seconds)

    def check(self) -> None:
        self._server.check()

    def trials(self) -> Trials:
        # It writes what it saw when it ends.
        self._server.stop()
        expected = self._setup.part.trials
        if self._client.wait(0.0) == UNMATCHED:
            nothing = dict.fromkeys(COLUMNS.values(), [0] * expected)
            return Trials({**nothing, "failed": [True] * expected})
        report = self._client.report()
        if report["sent"] != expected:
            raise LabError(f"{PROBE} sent {report['sent']} samples of {expected}")
        round_trips, one_ways = self._client.samples(), self._server.samples()
        answered = sorted(round_trips)
        columns: dict[str, list[Any]] = {
            "round_trip_ns": [round_trips[sent] for sent in answered],
            "one_way_ns": [one_ways.get(sent) for sent in answered],
            "failed": [False] * len(answered),
        }
        # Which of the samples were not answered is not told; they come last.
        lost = expected - len(answered)
        for name, of_lost in (("round_trip_ns", 0), ("one_way_ns", 0), ("failed", True)):
            columns[name] += [of_lost] * lost
        columns["discovery_ns"] = [None] * expected
        columns["discovery_ns"][0] = report["discovery_ns"]
        return Trials(columns)

    def record(self) -> dict[str, Any]:
        matched = self._client.wait(0.0) != UNMATCHED
        ends = {"client": self._client, "server": self._server} if matched else {}
        return {
            "dds": {
                "discovery_ns": {name: end.report()["discovery_ns"] for name, end in ends.items()},
                "plugin": {name: end.counters() for name, end in ends.items()},
            }
        }


def _enclaves(setup: Setup, exchange: Exchange) -> tuple[Enclave | None, Enclave | None]:
    """Both ends' keys, new for each part."""
    if not exchange.is_secured:
        return None, None
    now = datetime.datetime.now(datetime.UTC)
    try:
        made = create(
            setup.folder / "keys", ["/client", "/server"], exchange.governance, now=now, days=2
        )  # fmt: skip
    except KeystoreError as error:
        raise LabError(str(error)) from None
    return made["/client"], made["/server"]

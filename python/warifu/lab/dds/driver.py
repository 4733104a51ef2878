# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS: samples to a participant at the other end of the link, each answered, or in a stream."""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from warifu import tools
from warifu.dds.keystore import Enclave, KeystoreError, create
from warifu.lab.case import MAX_TRIALS_A_PART, SOFTWARE, Cell
from warifu.lab.dds.cyclone import PLUGIN
from warifu.lab.dds.end import MIDDLEWARE, UNMATCHED, End
from warifu.lab.dds.exchange import Exchange, why_no_exchange
from warifu.lab.dds.place import Place, missing_buffers
from warifu.lab.driver import Setup
from warifu.lab.errors import LabError
from warifu.lab.link import CLIENT_ADDRESS, SERVER_ADDRESS
from warifu.lab.trials import Trials

COLUMNS = {
    "dds.round_trip": "round_trip_ns",
    "dds.one_way": "one_way_ns",
    "dds.discovery": "discovery_ns",
    "dds.rate": "rate",
}
"""Metric to the column of `Trials` that holds it. Discovery and the rate are the part's: its first
trial has them."""

WRITES = ("client_write_ns", "server_write_ns")
"""Columns beside these: how long each end's write took. Calibration tells its costs by them."""

PATIENCE_SECONDS = 65.0
"""For a match, and for an answer: participants announce themselves every 30 s (Cyclone DDS 0.10.2,
Discovery/SPDPInterval), quickly again and again at first. Where nobody has matched by then, all
samples of the part have failed."""

BURST_BYTES = 128 << 10
"""From which on a sample is a burst for the link: some 90 packets of 1,500 B, a microsecond or more
each, come close to the 0.5 ms beyond which the link calls a packet late; of 4 MiB, 2,900 packets,
most are late on a quiet machine as well."""

_MOST = 100_000_000
"""More samples than a part has: the other end answers until it is stopped."""


class DdsDriver:
    """Two participants, one at each end; a part is one session of theirs."""

    columns = COLUMNS
    trials_a_part = MAX_TRIALS_A_PART
    # The kernel leaves a busy program where it is, here in one part and there in the next: a sample
    # of 1 MiB, some 800 packets, then has two speeds.
    link_is_beside_server = True

    def versions(self, cell: Cell) -> dict[str, str]:
        """Of the probe, which names its middleware's, of our plugin, and of openssl, which makes
        keys."""
        stack = Exchange.of(cell.case).stack
        programs = [MIDDLEWARE[stack.middleware].probe, "openssl"]
        if stack.middleware == "cyclonedds":
            programs.append(PLUGIN)
        return {name: tools.version(name) for name in programs}

    def why_not_measurable(self, cell: Cell, stand_ins: Collection[str]) -> str | None:
        """Identity keys are files."""
        if cell.case.key_store.profile != SOFTWARE:
            return (
                f"key_store is {cell.case.key_store.profile}: the keys of DDS participants are "
                f'files here; choose key_store = "{SOFTWARE}"'
            )
        return why_no_exchange(Exchange.of(cell.case))

    def remark(self, cell: Cell) -> str | None:
        """Of sockets that are too small, and of samples that the link takes its time for."""
        missing = missing_buffers(Exchange.of(cell.case).sample_bytes)
        if missing is not None or not self.is_burst(cell):
            return missing
        return (
            f"samples of more than {BURST_BYTES >> 10} KiB: their times hold what the link's own "
            "program takes for their packets, 1 us or more each, and no part is rejected for it: "
            "set two such cases side by side, and not one of them beside a network"
        )

    def is_burst(self, cell: Cell) -> bool:
        """A sample is sent as fast as the writer can."""
        return Exchange.of(cell.case).sample_bytes > BURST_BYTES

    def routing(self, cell: Cell) -> dict[str, Any]:
        """UDP knows no congestion control."""
        return {}

    def start(self, up: ExitStack, setup: Setup) -> _Running:
        """Keys, the end that answers or reads, the end that asks or streams."""
        exchange = Exchange.of(setup.cell.case)
        asks, answers = _enclaves(setup, exchange)
        patience = max(1, round(min(PATIENCE_SECONDS, setup.timeout_seconds)))
        server = up.enter_context(
            End(
                "pong" if exchange.rate is None else "subscribe", exchange, answers,
                Place(
                    setup.folder / "server", setup.server_namespace, setup.server_processor,
                    SERVER_ADDRESS, CLIENT_ADDRESS,
                ),
                # The end that asks gives up first, and stops this one.
                "--timeout", 2 * patience + 10, "--count", _MOST,
            )
        )  # fmt: skip
        client = up.enter_context(
            End(
                "ping" if exchange.rate is None else "publish", exchange, asks,
                Place(
                    setup.folder / "client", setup.client_namespace, setup.client_processor,
                    CLIENT_ADDRESS, SERVER_ADDRESS,
                ),
                "--timeout", patience, "--count", setup.part.trials,
                "--seed", max(1, setup.part.seed),
                "--period-us", round(1e6 / (exchange.rate or setup.rate_per_second)),
            )
        )  # fmt: skip
        return _Running(setup, exchange, server, client)


class _Running:
    def __init__(self, setup: Setup, exchange: Exchange, server: End, client: End) -> None:
        self._setup = setup
        self._exchange = exchange
        self._server = server
        self._client = client
        self.server_pid = server.pid

    @property
    def client_cpu_ns(self) -> int:
        return self._client.cpu_ns

    def wait(self, timeout_seconds: float) -> int | None:
        return self._client.wait(timeout_seconds)

    def check(self) -> None:
        self._server.check()

    def trials(self) -> Trials:
        # It writes what it saw when it ends.
        self._server.stop()
        expected = self._setup.part.trials
        if self._client.wait(0.0) == UNMATCHED:
            nothing = dict.fromkeys((*COLUMNS.values(), *WRITES), [0] * expected)
            return Trials({**nothing, "failed": [True] * expected})
        report = self._client.report()
        # A stream that its writer cannot keep up with has lost what it could not write.
        if report["sent"] != expected and self._exchange.rate is None:
            name = MIDDLEWARE[self._exchange.stack.middleware].probe
            raise LabError(f"{name} sent {report['sent']} samples of {expected}")
        found = self._stream() if self._exchange.rate is not None else self._answered()
        count = len(found["one_way_ns"])
        names = (*COLUMNS.values(), *WRITES)
        columns = {name: found.get(name, [None] * count) for name in names}
        # Which of the samples were lost is not told; they come last.
        lost = expected - count
        columns = {name: [*values, *[0] * lost] for name, values in columns.items()}
        columns["discovery_ns"][:1] = [report["discovery_ns"]]
        columns["failed"] = [False] * count + [True] * lost
        return Trials(columns)

    def _answered(self) -> dict[str, list[Any]]:
        """Of the samples that were answered, in the order in which they were sent."""
        round_trips, one_ways = self._client.samples(), self._server.samples()
        answered = sorted(round_trips)
        return {
            "round_trip_ns": [round_trips[sent] for sent in answered],
            "one_way_ns": [one_ways.get(sent) for sent in answered],
            **{
                name: _next_after(end.writes(), answered)
                for name, end in zip(WRITES, (self._client, self._server), strict=True)
            },
        }

    def _stream(self) -> dict[str, list[Any]]:
        """Of the samples that were read, in the order in which they were sent."""
        one_ways = self._server.samples()
        order = sorted(one_ways)
        rates: list[float | None] = [None] * len(order)
        rates[:1] = [rate(one_ways)]
        return {"one_way_ns": [one_ways[sent] for sent in order], "rate": rates}

    def record(self) -> dict[str, Any]:
        matched = self._client.wait(0.0) != UNMATCHED
        ends = {"client": self._client, "server": self._server} if matched else {}
        return {
            "dds": {
                "discovery_ns": {name: end.report()["discovery_ns"] for name, end in ends.items()},
                "plugin": {name: end.counters() for name, end in ends.items()},
            }
        }


def rate(one_ways: Mapping[int, int]) -> float | None:
    """Samples a second that were read, from the first to the last; None of fewer than two.
    `one_ways` has latencies by when the sample was sent, both in ns."""
    read = sorted(sent + latency for sent, latency in one_ways.items())
    if len(read) < 2 or read[-1] == read[0]:
        return None
    return (len(read) - 1) * 1e9 / (read[-1] - read[0])


def _next_after(writes: Mapping[int, int], sent: Sequence[int]) -> list[int | None]:
    """Of each sample how long the first write took that began when it had been sent: its own, or
    at the other end its answer's."""
    begins = sorted(writes)
    places = (bisect.bisect_left(begins, at) for at in sent)
    return [writes[begins[place]] if place < len(begins) else None for place in places]


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

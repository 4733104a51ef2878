# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One part of a cell: namespaces, link, coap-server and client put up, run, judged, taken down."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from warifu.lab import interruption, kernel, processes, quiet
from warifu.lab.cell import CALM_RATE, LATE_FRACTION_MAX, LOSSY_RATE, PartResult, processors
from warifu.lab.coap.client import CoapClient
from warifu.lab.coap.exchange import Exchange
from warifu.lab.coap.server import CoapServer, udp_counters
from warifu.lab.errors import RunRejected
from warifu.lab.link import CLIENT_ADDRESS, SERVER_ADDRESS, Link, impairments
from warifu.lab.store import Part
from warifu.lab.workplace import Workplace

MAX_TRIALS_A_PART = 250
"""coap-server keeps the session of each client's port for 300 s and looks at all of them in each
turn: about 0.1 us a session, so that after 1000 ports a request costs 0.1 ms more (libcoap 4.3.1,
coap_io_prepare_io and coap_endpoint_get_session). Each part starts a server anew."""

GRACE_SECONDS = 7.0
"""How much later than libcoap the client gives up, so that a trial has libcoap's reason."""


DATAGRAM_BYTES_MAX = 1_180
"""libcoap's MTU of 1152 B and the headers of UDP and IPv4."""


@dataclass(frozen=True)
class CoapSettings:
    """How the lab runs; not part of a case."""

    rate_per_second: float | None = None
    """Requests a second; None: as for HTTPS."""
    port: int = 5683
    """The default port of `coap`: with any other, coap-client adds a Uri-Port option."""
    others_bound: float | None = None
    late_fraction_max: float = LATE_FRACTION_MAX
    non_deadline_seconds: float = 10.0
    """When a NON without a response counts as failed: nobody sends it again."""


@dataclass(frozen=True)
class Setup:
    """What is run, as far as this driver needs it."""

    exchange: Exchange
    link: dict[str, Any]
    """The link of a case's canonical form."""
    alone: bool = False
    """Whether the link has memory, so that requests have to come one after the other."""

    @property
    def linger_seconds(self) -> float:
        """Time within which the response to a request that is under way has come: there and back
        behind all the jitter, and through the link's rates."""
        link = self.link
        wait_ns: int = link["rtt"] + 2 * max(link["jitter"], default=0)
        for rate in (link["rate_up"], link["rate_down"]):
            if rate is not None:
                wait_ns += DATAGRAM_BYTES_MAX * 8 * 1_000_000_000 // rate
        return wait_ns / 1e9


class CoapBench:
    """Runs parts; holds the folder that they share."""

    def __init__(self, settings: CoapSettings) -> None:
        """Makes the folder."""
        self._settings = settings
        self._place = Workplace()
        self._runs = 0

    def __enter__(self) -> CoapBench:
        """Itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Removes all of it."""
        self._place.close()

    def run(self, setup: Setup, part: Part, stop: Callable[[], bool]) -> PartResult | None:
        """Measures a part; None if `stop` said so.

        Raises RunRejected if the link was beyond its bound, before anything of the result was
        looked at; LabError if a program failed.
        """
        self._runs += 1
        folder = self._place.folder / f"run{self._runs}"
        folder.mkdir()
        namespaces: list[str] = []
        with contextlib.ExitStack() as up:
            up.callback(lambda: self._take_down(namespaces))
            for end in ("c", "s"):
                namespaces.append(self._place.namespace(f"{end}{self._runs}", kernel.PINNED))
            client_end, server_end = namespaces
            link = up.enter_context(Link(self._link(setup, part, client_end, server_end), folder))
            server = up.enter_context(
                CoapServer(
                    folder / "server",
                    address=SERVER_ADDRESS,
                    port=self._settings.port,
                    path=setup.exchange.path,
                    response_body_bytes=setup.exchange.response_body_bytes,
                    namespace=server_end,
                    processor=processors()[1],
                )
            )
            # What came before the first request is not the run's.
            link.report()
            client = up.enter_context(
                CoapClient(
                    folder,
                    exchange=setup.exchange,
                    address=SERVER_ADDRESS,
                    port=self._settings.port,
                    trials=part.trials,
                    rate_per_second=self._rate(setup),
                    timeout_seconds=self._timeout_seconds(setup.exchange),
                    seed=part.seed,
                    alone=setup.alone,
                    linger_seconds=setup.linger_seconds,
                    namespace=client_end,
                    processor=processors()[0],
                )
            )
            before = processes.cpu_ns(server.pid)
            watch = quiet.Watch([link.pid, server.pid])
            if not self._wait(client, server, link, stop):
                return None
            used = processes.cpu_ns(server.pid) - before
            # Judged before the client's output is opened.
            shares = watch.shares()
            report = link.accepted_report()
            self._judge(shares, report)
            trials = client.trials(part.trials)
            record = {
                "first_trial": part.first_trial,
                "trials": part.trials,
                "seed": part.seed,
                "rate_per_second": self._rate(setup),
                "alone": setup.alone,
                "server_cpu_ns": used,
                "udp": {"client": udp_counters(client_end), "server": udp_counters(server_end)},
                "processors": processors(),
                "processor_shares": shares.record(),
                "link": report,
            }
            return PartResult(trials, record)

    def _take_down(self, namespaces: list[str]) -> None:
        for name in namespaces:
            self._place.remove_namespace(name)

    def _link(self, setup: Setup, part: Part, client: str, server: str) -> dict[str, Any]:
        return {
            "name_a": client,
            "name_b": server,
            "address_a": CLIENT_ADDRESS,
            "address_b": SERVER_ADDRESS,
            "mtu": setup.link["mtu"],
            "seed": part.seed,
            "link": impairments(setup.link),
            "late_fraction_max": self._settings.late_fraction_max,
        }

    def _wait(
        self, client: CoapClient, server: CoapServer, link: Link, stop: Callable[[], bool]
    ) -> bool:
        """Until the client has ended; False if `stop` said so first."""
        while client.wait(0.1) is None:
            interruption.check()
            if stop():
                return False
            server.check()
            link.check()
        server.check()
        return True

    def _judge(self, shares: quiet.Shares, report: dict[str, Any]) -> None:
        bound = self._settings.others_bound
        taken = shares.others + shares.stolen
        if bound is not None and taken > bound:
            reason = f"others took {taken:.1%} of the processors, {bound:.1%} are allowed"
            raise RunRejected([reason], report)

    def _rate(self, setup: Setup) -> float:
        lossy = setup.link["loss"]["kind"] != "none"
        return self._settings.rate_per_second or (LOSSY_RATE if lossy else CALM_RATE)

    def _timeout_seconds(self, exchange: Exchange) -> float:
        if exchange.confirmable:
            return exchange.give_up_seconds + GRACE_SECONDS
        return self._settings.non_deadline_seconds

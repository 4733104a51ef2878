# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CoAP: libcoap's coap-server, and the lab's client on libcoap."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from warifu import tools
from warifu.lab.case import SOFTWARE, Cell
from warifu.lab.coap.client import COLUMNS, CoapClient
from warifu.lab.coap.exchange import Exchange, why_no_exchange
from warifu.lab.coap.server import CoapServer, udp_counters
from warifu.lab.driver import Setup
from warifu.lab.link import SERVER_ADDRESS
from warifu.lab.trials import Trials

PORT = 5683
"""The default port of `coap`: with any other, a client adds a Uri-Port option."""

TRIALS_A_PART = 250
"""coap-server keeps the session of each client's port for 300 s and looks at all of them in each
turn: about 0.1 us a session, so that after 1000 ports a request costs 0.1 ms more (libcoap 4.3.1,
coap_io_prepare_io and coap_endpoint_get_session). Each part starts a server anew."""

GRACE_SECONDS = 7.0
"""How much later than libcoap the client gives up, so that a trial has libcoap's reason."""

NON_DEADLINE_SECONDS = 10.0
"""When a NON without a response counts as failed: it is never sent again."""

DATAGRAM_BYTES_MAX = 1_180
"""libcoap's MTU of 1152 B and the headers of UDP and IPv4."""

_TOOLS = ("coap-server-notls", "coap-client-notls", "warifu-coap-client")


class CoapDriver:
    """Exchanges of one request each, every one on a session of its own."""

    columns = COLUMNS
    trials_a_part = TRIALS_A_PART
    link_is_beside_server = False

    def versions(self, cell: Cell) -> dict[str, str]:
        """Of libcoap's programs and the lab's client."""
        return {name: tools.version(name) for name in _TOOLS}

    def why_not_measurable(self, cell: Cell, stand_ins: Collection[str]) -> str | None:
        """Without security there is no key; some settings libcoap does not take."""
        if cell.case.key_store.profile != SOFTWARE:
            return (
                f"key_store is {cell.case.key_store.profile}: CoAP without security uses no key; "
                f'choose key_store = "{SOFTWARE}"'
            )
        return why_no_exchange(Exchange.of(cell.case))

    def remark(self, cell: Cell) -> str | None:
        """Nothing: no profile stands for the kernel's UDP."""
        return None

    def is_burst(self, cell: Cell) -> bool:
        """No: a window, or one packet."""
        return False

    def routing(self, cell: Cell) -> dict[str, Any]:
        """UDP knows no congestion control."""
        return {}

    def start(self, up: ExitStack, setup: Setup) -> _Running:
        """The server with its body, then the client."""
        exchange = Exchange.of(setup.cell.case)
        port = PORT if setup.port is None else setup.port
        server = up.enter_context(
            CoapServer(
                setup.folder / "server",
                address=SERVER_ADDRESS,
                port=port,
                path=exchange.path,
                response_body_bytes=exchange.response_body_bytes,
                namespace=setup.server_namespace,
                processor=setup.server_processor,
            )
        )
        client = up.enter_context(
            CoapClient(
                setup.folder,
                exchange=exchange,
                address=SERVER_ADDRESS,
                port=port,
                trials=setup.part.trials,
                rate_per_second=setup.rate_per_second,
                timeout_seconds=_timeout_seconds(exchange, setup),
                seed=setup.part.seed,
                alone=setup.cell.has_memory,
                linger_seconds=_linger_seconds(setup.cell),
                namespace=setup.client_namespace,
                processor=setup.client_processor,
            )
        )
        return _Running(setup, server, client)


class _Running:
    def __init__(self, setup: Setup, server: CoapServer, client: CoapClient) -> None:
        self._setup = setup
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
        return self._client.trials(self._setup.part.trials)

    def record(self) -> dict[str, Any]:
        ends = {"client": self._setup.client_namespace, "server": self._setup.server_namespace}
        return {"udp": {end: udp_counters(namespace) for end, namespace in ends.items()}}


def _timeout_seconds(exchange: Exchange, setup: Setup) -> float:
    if exchange.confirmable:
        return exchange.give_up_seconds + GRACE_SECONDS
    # No response that the link lets through comes later.
    return min(setup.timeout_seconds, NON_DEADLINE_SECONDS + _linger_seconds(setup.cell))


def _linger_seconds(cell: Cell) -> float:
    """Time within which the response to a request that is under way has come: there and back
    behind all the jitter, and through the link's rates."""
    link = cell.link
    wait_ns = link.rtt + 2 * max(link.jitter, default=0)
    for rate in (link.rate_up, link.rate_down):
        if rate is not None:
            wait_ns += DATAGRAM_BYTES_MAX * 8 * 1_000_000_000 // rate
    return wait_ns / 1e9

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Drives `warifu-coap-client`: many requests at fixed pace, one line of times for each."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from warifu.lab.client import Row, TimedClient
from warifu.lab.coap.exchange import Exchange
from warifu.lab.trials import SPREAD

COLUMNS = {
    "coap.exchange": "exchange_ns",
    "bytes.client_sent": "bytes_client_sent",
    "bytes.server_sent": "bytes_server_sent",
    "coap.retransmitted": "retransmitted",
}
"""Metric to the column of `Trials` that holds it, in the metric's unit: up to the response decoded,
bytes of UDP payloads, retransmissions of requests left out."""

STEPS = ("request_ns", "first_datagram_ns", "datagrams_client_sent", "datagrams_server_sent")
"""Other columns: when the request was about to be given to the kernel, when the response's first
datagram had been read, and the datagrams sent and received."""


class CoapClient(TimedClient):
    """A running client."""

    def __init__(
        self,
        folder: Path,
        *,
        exchange: Exchange,
        address: str,
        port: int,
        trials: int,
        rate_per_second: float,
        timeout_seconds: float,
        seed: int,
        alone: bool = False,
        linger_seconds: float = 0.0,
        namespace: str | None = None,
        processor: int | None = None,
    ) -> None:
        """Starts it. With `alone` requests come one after the other: each begins a pause after the
        one before has ended. A port whose request was sent again is kept for `linger_seconds`, so
        that a second response is not answered by ICMP over the link."""
        config = {
            "address": f"{address}:{port}",
            "stack": asdict(exchange.stack),
            "path": exchange.path,
            "request_body": exchange.request_body_bytes,
            "trials": trials,
            "rate_per_second": rate_per_second,
            "spread": SPREAD,
            "alone": alone,
            "timeout_s": timeout_seconds,
            "linger_s": linger_seconds,
            "seed": seed,
            "token_bytes": exchange.token_bytes,
            "body_bytes": exchange.response_body_bytes,
        }
        super().__init__(
            "warifu-coap-client",
            config,
            folder,
            values=values,
            columns=(*COLUMNS.values(), *STEPS),
            namespace=namespace,
            processor=processor,
        )


def values(row: Row) -> dict[str, Any]:
    """The columns of a trial that the client reports."""
    return {
        "exchange_ns": row["done_ns"],
        "bytes_client_sent": row["sent"] - row["retransmitted_bytes"],
        "bytes_server_sent": row["received"],
        "retransmitted": row["retransmitted"],
        "request_ns": row["request_ns"],
        "first_datagram_ns": row["first_ns"],
        "datagrams_client_sent": row["datagrams_sent"],
        "datagrams_server_sent": row["datagrams_received"],
    }

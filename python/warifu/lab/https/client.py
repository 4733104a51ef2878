# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Drives `warifu-tls-client`: many connections at fixed pace, one line of times for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warifu.case import HttpsStack
from warifu.lab.client import Row, TimedClient
from warifu.lab.https.psk import PreSharedKey
from warifu.lab.trials import SPREAD

TIMES = {
    "https.establishment": "establishment_ns",
    "tcp.connect": "tcp_connect_ns",
    "tls.handshake": "tls_handshake_ns",
    "https.first_response": "first_response_ns",
    "https.response_complete": "response_complete_ns",
}
"""Metric to the column of `Trials` that holds it, ns."""


COUNTS = {
    "bytes.client_sent": "bytes_client_sent",
    "bytes.server_sent": "bytes_server_sent",
    "tcp.syn_timeouts": "syn_timeouts",
    "tcp.client_retransmissions": "client_retransmissions",
}
"""The same of what is counted."""

_COLUMNS = (*TIMES.values(), *COUNTS.values())


class Client(TimedClient):
    """A running client."""

    def __init__(
        self,
        folder: Path,
        *,
        stack: HttpsStack,
        path: str,
        pki: Path | None,
        address: str,
        port: int,
        trials: int,
        rate_per_second: float,
        timeout_seconds: float,
        seed: int,
        request_body_bytes: int = 0,
        psk: PreSharedKey | None = None,
        alone: bool = False,
        round_trip_seconds: float = 0.0,
        work_seconds: float = 0.0,
        namespace: str | None = None,
        processor: int | None = None,
        key_store: dict[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it. Without `pki` it speaks plain HTTP.

        With `alone`, and with `key_store`, which says what token holds its key, connections come
        one after the other: each begins a pause after the one before has ended. Otherwise they
        begin such that none computes for `work_seconds` while another does, once in a round trip.
        """
        config = {
            "stack": asdict(stack) if pki is not None else None,
            "pki": str(pki) if pki is not None else "",
            "address": f"{address}:{port}",
            "trials": trials,
            "rate_per_second": rate_per_second,
            "timeout_s": timeout_seconds,
            "seed": seed,
            "path": path,
            "request_body": request_body_bytes,
            "psk": None if psk is None else asdict(psk),
            "spread": SPREAD,
            "alone": alone,
            "round_trip_s": round_trip_seconds,
            "work_s": work_seconds,
            "key_store": key_store,
        }
        super().__init__(
            "warifu-tls-client",
            config,
            folder,
            values=_values,
            columns=_COLUMNS,
            namespace=namespace,
            processor=processor,
            environment=environment,
        )


def _values(row: Row) -> dict[str, Any]:
    connected, done, first = row["connect_ns"], row["handshake_ns"], row["first_ns"]
    return {
        "establishment_ns": first,
        "tcp_connect_ns": connected,
        "tls_handshake_ns": done - connected,
        "first_response_ns": first - done,
        "response_complete_ns": row["done_ns"],
        "bytes_client_sent": row["sent"],
        "bytes_server_sent": row["received"],
        "syn_timeouts": row["syn_timeouts"],
        "client_retransmissions": row["retransmissions"],
    }

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Drives `warifu-coap-client`: many requests at fixed pace, one line of times for each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from warifu import tools
from warifu.lab.coap.exchange import Exchange
from warifu.lab.errors import LabError
from warifu.lab.processes import Process
from warifu.lab.trials import SPREAD, Trials

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


class CoapClient:
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
        self._output = folder / "trials.ndjson"
        config = {
            "address": f"{address}:{port}",
            "type": "CON" if exchange.confirmable else "NON",
            "path": exchange.path,
            "trials": trials,
            "rate_per_second": rate_per_second,
            "spread": SPREAD,
            "alone": alone,
            "timeout_s": timeout_seconds,
            "linger_s": linger_seconds,
            "seed": seed,
            "token_bytes": exchange.token_bytes,
            "body_bytes": exchange.response_body_bytes,
            "ack_timeout_ms": exchange.ack_timeout_ms,
            "ack_random_factor": exchange.ack_random_factor,
            "max_retransmit": exchange.max_retransmit,
        }
        with self._output.open("wb") as output:
            self._process = Process(
                "warifu-coap-client",
                [tools.find("warifu-coap-client")],
                log=folder / "client.log",
                namespace=namespace,
                processor=processor,
                stdin=subprocess.PIPE,
                stdout=output,
            )
        try:
            self._process.stdin.write(json.dumps(config).encode() + b"\n")
            self._process.stdin.close()
        except BaseException:
            self.stop()
            raise

    def wait(self, timeout_seconds: float) -> int | None:
        """The exit code, or None if it still runs then. Raises LabError if it failed."""
        code = self._process.wait(timeout_seconds)
        if code:
            words = self._process.log_tail(1) or f"exit code {code}"
            raise LabError(f"the CoAP client failed: {words}")
        return code

    def trials(self, expected: int) -> Trials:
        """What it measured, `expected` trials in their order."""
        rows = [json.loads(line) for line in self._output.read_text().splitlines()]
        rows.sort(key=lambda row: int(row["trial"]))
        if [row["trial"] for row in rows] != list(range(expected)):
            raise LabError(f"the CoAP client reported {len(rows)} trials of {expected}")
        return _columns(rows)

    def stop(self) -> None:
        """Ends it. May be called twice."""
        self._process.stop()

    def __enter__(self) -> CoapClient:
        """Itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()


def _columns(rows: list[dict[str, Any]]) -> Trials:
    """A failed trial's entries are 0, but for `failed`."""
    columns: dict[str, list[Any]] = {name: [] for name in (*COLUMNS.values(), *STEPS, "failed")}
    for row in rows:
        if row.get("error"):
            values: dict[str, Any] = dict.fromkeys(columns, 0) | {"failed": True}
        else:
            values = {
                "exchange_ns": row["done_ns"],
                "bytes_client_sent": row["sent"] - row["retransmitted_bytes"],
                "bytes_server_sent": row["received"],
                "retransmitted": row["retransmitted"],
                "request_ns": row["request_ns"],
                "first_datagram_ns": row["first_ns"],
                "datagrams_client_sent": row["datagrams_sent"],
                "datagrams_server_sent": row["datagrams_received"],
                "failed": False,
            }
        for name, value in values.items():
            columns[name].append(value)
    return Trials(columns)

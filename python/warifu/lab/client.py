# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Drives `warifu-tls-client`: many connections at fixed pace, one line of times for each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from warifu import tools
from warifu.case import HttpsStack
from warifu.lab.errors import LabError
from warifu.lab.processes import Process
from warifu.lab.trials import SPREAD, Trials

TIMES = {
    "https.establishment": "establishment_ns",
    "tcp.connect": "tcp_connect_ns",
    "tls.handshake": "tls_handshake_ns",
    "https.first_response": "first_response_ns",
}
"""Metric to the column of `Trials` that holds it, ns."""


class Client:
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
        alone: bool = False,
        namespace: str | None = None,
        processor: int | None = None,
        key_store: dict[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it. Without `pki` it speaks plain HTTP.

        With `alone`, and with `key_store`, which says what token holds its key, connections come
        one after the other: each begins a pause after the one before has ended.
        """
        self._output = folder / "trials.ndjson"
        config = {
            "variant": variant(stack) if pki is not None else None,
            "pki": str(pki) if pki is not None else "",
            "address": f"{address}:{port}",
            "trials": trials,
            "rate_per_second": rate_per_second,
            "timeout_s": timeout_seconds,
            "seed": seed,
            "path": path,
            "spread": SPREAD,
            "alone": alone,
            "key_store": key_store,
        }
        with self._output.open("wb") as output:
            self._process = Process(
                "warifu-tls-client",
                [tools.find("warifu-tls-client")],
                log=folder / "client.log",
                namespace=namespace,
                processor=processor,
                stdin=subprocess.PIPE,
                stdout=output,
                environment=environment,
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
            raise LabError(f"the client failed: {self._process.log_tail() or f'exit code {code}'}")
        return code

    def trials(self, expected: int) -> Trials:
        """What it measured, `expected` trials in their order."""
        rows = [json.loads(line) for line in self._output.read_text().splitlines()]
        rows.sort(key=lambda row: int(row["trial"]))
        if [row["trial"] for row in rows] != list(range(expected)):
            raise LabError(f"the client reported {len(rows)} trials of {expected}")
        return _columns(rows)

    def stop(self) -> None:
        """Ends it. May be called twice."""
        self._process.stop()

    def __enter__(self) -> Client:
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


def variant(stack: HttpsStack) -> dict[str, Any]:
    """A stack as `warifu-tls` takes it (crates/lab/tls-client/src/variant.rs, `Variant`)."""
    tls = stack.tls
    value: dict[str, Any] = {
        "tls": tls.version,
        "session": tls.session,
        "authentication": tls.authentication,
        "group": tls.group,
        "certificate": tls.certificate,
        "chain_length": tls.chain_length,
        "cipher_suite": tls.cipher_suite,
        "key_share": tls.key_share,
        "nagle": stack.tcp.nagle,
    }
    if tls.server_name is not None:
        value["server_name"] = tls.server_name
    return value


def _columns(rows: list[dict[str, Any]]) -> Trials:
    columns: dict[str, list[Any]] = {
        name: [] for name in (*TIMES.values(), "bytes_client_sent", "bytes_server_sent", "failed")
    }
    for row in rows:
        if row.get("error"):
            values = dict.fromkeys(columns, 0) | {"failed": True}
        else:
            connected, done, first = row["connect_ns"], row["handshake_ns"], row["first_ns"]
            values = {
                "establishment_ns": first,
                "tcp_connect_ns": connected,
                "tls_handshake_ns": done - connected,
                "first_response_ns": first - done,
                "bytes_client_sent": row["sent"],
                "bytes_server_sent": row["received"],
                "failed": False,
            }
        for name, value in values.items():
            columns[name].append(value)
    return Trials(columns)

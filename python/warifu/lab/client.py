# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lab's timed clients: each reads its configuration from standard input, and writes a line of
times for each trial."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.lab.errors import LabError
from warifu.lab.processes import Process, Stoppable
from warifu.lab.trials import Connection, Trials

Row = dict[str, Any]
"""A trial as a client reports it."""


class TimedClient(Stoppable):
    """A running client."""

    def __init__(
        self,
        program: str,
        config: Mapping[str, Any],
        folder: Path,
        *,
        values: Callable[[Row], Mapping[str, Any]],
        columns: tuple[str, ...],
        namespace: str | None = None,
        processor: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it. `values` makes a reported trial that did not fail into `columns`."""
        self._output = folder / "trials.ndjson"
        self._values = values
        self._columns = columns
        with self._output.open("wb") as output:
            self._process = Process(
                program,
                [tools.find(program)],
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

    @property
    def cpu_ns(self) -> int:
        """What it took of its processor from its start to its end, ns."""
        return self._process.cpu_ns

    def wait(self, timeout_seconds: float) -> int | None:
        """The exit code, or None if it still runs then. Raises LabError if it failed."""
        code = self._process.wait(timeout_seconds)
        if code:
            words = self._process.log_tail() or f"exit code {code}"
            raise LabError(f"{self._process.name} failed: {words}")
        return code

    def trials(self, expected: int) -> Trials:
        """What it measured, `expected` trials in their order."""
        rows = [json.loads(line) for line in self._output.read_text().splitlines()]
        rows.sort(key=lambda row: int(row["trial"]))
        if [row["trial"] for row in rows] != list(range(expected)):
            raise LabError(f"{self._process.name} reported {len(rows)} trials of {expected}")
        return trials_of(rows, self._columns, self._values)

    def stop(self) -> None:
        """Ends it. May be called twice."""
        self._process.stop()


def trials_of(
    rows: list[Row], columns: tuple[str, ...], values: Callable[[Row], Mapping[str, Any]]
) -> Trials:
    """The columns of reported trials; those of a failed one are 0, but for `failed`."""
    found: dict[str, list[Any]] = {name: [] for name in (*columns, "failed")}
    for row in rows:
        failed = bool(row.get("error"))
        one = dict.fromkeys(columns, 0) if failed else values(row)
        for name, value in {**one, "failed": failed}.items():
            found[name].append(value)
    return Trials(found, [_connection(row) for row in rows if "start_ns" in row])


def _connection(row: Row) -> Connection:
    sizes = row.get("sizes", {})
    client, server = (
        tuple((str(name), int(length)) for name, length in sizes.get(end, ()))
        for end in ("client", "server")
    )
    late_ns = int(row.get("late_ns", 0))
    port, start_ns = int(row["port"]), int(row["start_ns"])
    return Connection(port, start_ns, late_ns, client, server)

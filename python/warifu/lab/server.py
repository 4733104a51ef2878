# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the servers under measurement have in common."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable

from warifu.lab import interruption
from warifu.lab.errors import LabError
from warifu.lab.processes import Process, Stoppable

START_SECONDS = 10.0
"""How long a server has until it serves."""


class Server(Stoppable):
    """A server under measurement."""

    def __init__(self, process: Process) -> None:
        """`process` has just been started."""
        self._process = process

    @property
    def pid(self) -> int:
        """The process id of the program that was started."""
        return self._process.pid

    def check(self) -> None:
        """Raises LabError if it has ended."""
        if self._process.exit_code() is not None:
            raise self.ended()

    def ended(self) -> LabError:
        """The error of a server that has ended."""
        return LabError(f"{self._process.name} ended during the run{self.words()}")

    def stop(self) -> None:
        """Ends it. May be called twice."""
        self._process.stop()

    @abstractmethod
    def words(self) -> str:
        """What it said last, to end a sentence with; empty if nothing."""

    def wait_until(self, serves: Callable[[], bool]) -> None:
        """Waits until it serves. Raises LabError with its own words if it does not."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.exit_code() is not None:
                raise LabError(f"{self._process.name} did not start{self.words()}")
            if serves():
                return
            interruption.check()
            time.sleep(0.005)
        raise LabError(
            f"{self._process.name} did not start within {START_SECONDS:.0f} s{self.words()}"
        )

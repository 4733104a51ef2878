# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processes that cannot outlive the lab."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from warifu import tools
from warifu.lab import interruption
from warifu.lab.errors import LabError

GRACE_SECONDS = 5.0
"""How long a program has to end after it was asked to, before it is killed."""


class Process:
    """A program of the lab in its own process group, optionally inside a network namespace.

    `setpriv --pdeathsig` makes the kernel send `death_signal` when the lab dies, however it dies
    (prctl(2), PR_SET_PDEATHSIG); a terminal's Ctrl-C does not reach the group, so the lab alone
    decides the order of the shutdown.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        namespace: str | None = None,
        processor: int | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        death_signal: str = "KILL",
        environment: Mapping[str, str] | None = None,
        without: Collection[str] = (),
        folder: Path | None = None,
    ) -> None:
        """Starts the program; stderr (and stdout unless given) go to `log`.

        `environment` is added to this process's own, of which the variables of `without` are left
        out. `folder` is where it runs; None: where this process does.
        """
        starters = [tools.find("setpriv")]
        line: list[str] = [str(starters[0]), "--pdeathsig", death_signal, "--"]
        if namespace is not None:
            starters.append(tools.find("ip"))
            line += [str(starters[-1]), "netns", "exec", namespace]
        if processor is not None:
            starters.append(tools.find("taskset"))
            line += [str(starters[-1]), "-c", str(processor)]
        line += [str(part) for part in command]
        self.name = name
        self.log = log
        self._unread = b""
        self.cpu_ns = 0
        """What it took of the processors with all its threads, ns; known once `wait` saw its
        end."""
        with log.open("ab") as errors:
            self._child = subprocess.Popen(
                line,
                stdin=stdin,
                stdout=errors if stdout is None else stdout,
                stderr=errors,
                env={key: value for key, value in os.environ.items() if key not in without}
                | dict(environment or {}),
                cwd=folder,
                start_new_session=True,
            )
        try:
            self._wait_for_program({starter.resolve() for starter in starters})
        except BaseException:
            self.stop()
            raise

    def _wait_for_program(self, starters: set[Path]) -> None:
        """Returns when the program itself runs, so inside its namespace, or has ended.

        Before that, a search for what runs in the namespace would not find it.
        """
        deadline = time.monotonic() + GRACE_SECONDS
        while self._child.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{self.pid}/exe").readlink() not in starters:
                    return
            time.sleep(0.001)

    @property
    def pid(self) -> int:
        """Its process id; `setpriv` and `ip netns exec` replace themselves by the program."""
        return self._child.pid

    @property
    def stdin(self) -> IO[bytes]:
        """Its standard input, if it was opened as a pipe."""
        if self._child.stdin is None:
            raise LabError(f"{self.name} has no standard input to write to")
        return self._child.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Its standard output, if it was opened as a pipe."""
        if self._child.stdout is None:
            raise LabError(f"{self.name} has no standard output to read")
        return self._child.stdout

    def line(self, deadline: float) -> bytes:
        """The next line of its standard output, which was opened as a pipe, without its end.

        Raises LabError if there is none by `deadline` (`time.monotonic`), or the program has ended.
        """
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0:
                raise LabError(f"{self.name} did not answer in time")
            interruption.check()
            if not select.select([self.stdout], [], [], min(left, 0.1))[0]:
                continue
            chunk = self.stdout.read1(65_536)  # type: ignore[attr-defined]
            if not chunk:
                raise LabError(f"{self.name} has ended: {self.log_tail()}")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def exit_code(self) -> int | None:
        """The exit code (negative: a signal), or None while it runs."""
        return self._child.poll()

    def wait(self, timeout_seconds: float) -> int | None:
        """Waits for its end; None if it still runs then.

        Only where signals raise nothing (`interruption.deferred`): Popen holds a lock meanwhile.
        """
        before = _children_ns()
        try:
            code = self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None
        # Reaped in this call, and nobody else was.
        self.cpu_ns = max(self.cpu_ns, _children_ns() - before)
        return code

    def log_tail(self, lines: int = 3) -> str:
        """The last lines that it wrote, joined to one."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        kept = [line.strip() for line in text.splitlines() if line.strip()]
        return " / ".join(kept[-lines:])

    def children(self) -> list[int]:
        """Process ids of its children."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        try:
            return [int(word) for word in path.read_text().split()]
        except OSError:
            return []

    def stop(self, stop_signal: signal.Signals = signal.SIGTERM) -> None:
        """Asks it to end, kills what is left of its group, and reaps it. May be called twice."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(stop_signal)
            self.wait(GRACE_SECONDS)
        # The group outlives its leader while a worker is left, so its id cannot be reused.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()


def _children_ns() -> int:
    """Processor time of all children that were waited for, ns (getrusage(2))."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((children.ru_utime + children.ru_stime) * 1e9)


class Stoppable(ABC):
    """A program of the lab that is stopped at the end of a `with` block."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it. May be called twice."""

    def __enter__(self) -> Self:
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


def start_time(pid: int) -> int | None:
    """When a process began, clock ticks since boot (proc_pid_stat(5), field 22); None if none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything, so count from its end.
    return int(text.rpartition(")")[2].split()[19])


def is_running(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def cpu_ns(pid: int) -> int:
    """Time that a process's main thread has spent on a processor; 0 if the kernel does not say.

    /proc/PID/schedstat, first number (Linux Documentation/scheduler/sched-stats.rst).
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def kill_and_wait(pids: list[int], timeout_seconds: float = GRACE_SECONDS) -> None:
    """Kills processes that are not our children and waits until they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + timeout_seconds
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)

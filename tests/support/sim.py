# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A served card and its clients, for the tests of the card's ways in."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from warifu import tools

AID = bytes.fromhex("A0000005590010")
SELECT = bytes.fromhex("00A4040C07") + AID
RANDOM = bytes.fromhex("8084000008")
ATR = bytes.fromhex("3B06574152494655")

#: Into the ephemeral pair's place, which is lost at reset.
GENERATE_EPHEMERAL = bytes.fromhex("80B900000384010400")


def ask(verb: str, environment: dict[str, str] | None = None, **request: object) -> dict[str, Any]:
    """Has the program do one thing; its answer."""
    done = subprocess.run(
        [tools.find("warifu-card-server"), verb],
        input=json.dumps(request, default=str),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
    )
    if done.returncode != 0:
        raise RuntimeError(f"{done.returncode}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


class Server:
    """A card that is served until the end of the `with` block."""

    def __init__(
        self, state: Path, environment: dict[str, str] | None = None, **request: object
    ) -> None:
        self.process = subprocess.Popen(
            [tools.find("warifu-card-server"), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"state": state, **request}, default=str))
        self.process.stdin.close()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.wait()}: {self.said()}")
        self.ready: dict[str, Any] = json.loads(line)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def said(self) -> str:
        """What it wrote to stderr, when it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


class Client:
    """A program at the card's socket (crates/iotsafe/card-server/src/frame.rs)."""

    def __init__(self, path: Path | str, timeout_s: float = 20.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        self.socket.connect(str(path))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def transmit(self, apdu: bytes) -> bytes:
        """The response APDU; EOFError where the card went away."""
        self.socket.sendall(struct.pack(">I", len(apdu)) + apdu)
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def reset(self) -> bytes:
        """The answer to reset."""
        return self.transmit(b"")

    def status(self, apdu: bytes) -> int:
        """The status word alone."""
        return int.from_bytes(self.transmit(apdu)[-2:], "big")

    def _exactly(self, length: int) -> bytes:
        got = b""
        while len(got) < length:
            more = self.socket.recv(length - len(got))
            if not more:
                raise EOFError
            got += more
        return got

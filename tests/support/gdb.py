# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program under `warifu m3 run --gdb`, and gdb's side of the protocol (its manual, appendix
"Remote Protocol")."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Halted:
    """`warifu m3 run --gdb 0` in a process, waiting."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self.first = process.stderr.readline()
        found = re.search(r"waiting for gdb on 127\.0\.0\.1:(\d+): gdb-multiarch ", self.first)
        assert found, self.first + process.stderr.read()
        self.port = int(found[1])
        self.out, self.err = "", self.first
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True)
            for name in ("stdout", "stderr")
        ]
        for reader in self._readers:
            reader.start()

    def ended(self) -> tuple[int, str, str]:
        """Its exit code and output, once it has ended."""
        code = self.process.wait(60)
        for reader in self._readers:
            reader.join(60)
        return code, self.out, self.err

    def _read(self, name: str) -> None:
        for line in getattr(self.process, name):
            if name == "stdout":
                self.out += line
            else:
                self.err += line


@contextmanager
def halted(elf: Path, *arguments: str | Path) -> Iterator[Halted]:
    """Starts a program under `--gdb 0`, and kills it at the end."""
    command = [sys.executable, "-m", "warifu.cli", "m3", "run", str(elf), "--gdb", "0"]
    command += map(str, arguments)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, errors="replace") as one:
        try:
            yield Halted(one)
        finally:
            one.kill()


class Client:
    """A client that has connected."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._received = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self._socket.sendall(data)

    def say(self, body: str) -> None:
        """A packet whose answer nobody waits for."""
        self.send(packet(body.encode()))

    def ask(self, body: str) -> str:
        """A packet and its answer."""
        self.say(body)
        return self.answer()

    def answer(self) -> str:
        """The next packet that is not for the console; empty at the end."""
        while True:
            match = re.search(rb"\$([^#]*)#[0-9a-f]{2}", self._received)
            if match is None:
                more = self._socket.recv(65536)
                if not more:
                    return ""
                self._received += more
                continue
            self._received = self._received[match.end() :]
            if not match[1].startswith(b"O") or match[1] == b"OK":
                return match[1].decode()

    def is_closed(self) -> bool:
        """Whether the other side closes the connection."""
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True


def packet(body: bytes) -> bytes:
    """A body in its frame."""
    return b"$" + body + b"#%02x" % (sum(body) % 256)

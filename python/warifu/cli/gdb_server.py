# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 run --gdb`: the connection of a debugger, on this machine's own address."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from collections.abc import Callable
from pathlib import Path

from warifu import _core, m3
from warifu.cli import screen
from warifu.m3 import Options, Run

#: Nobody else's machine reaches it: whoever connects owns the program.
_HOST = "127.0.0.1"
_BYTES = 1 << 16
#: How often, before others are looked at.
_RECEIVED = 64
#: How long a client may leave what it is sent unread, s: gdb reads at once.
_SEND_S = 10.0


def debug(elf: Path, options: Options, port: int, output: Callable[[bytes], object]) -> Run:
    """Runs a program under gdb: it waits at reset until one connects. Port 0 takes a free one.

    Raises what `m3.run` does, and OSError for a port that is taken.
    """
    debugger = m3.debugger(elf, options, output)
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        screen.say(
            f"{elf}: halted at reset; waiting for gdb on {_HOST}:{number}: "
            f"gdb-multiarch {elf} -ex 'target remote :{number}'"
        )
        _Connection(elf, debugger, listener).serve()
    return Run.of(elf, options, debugger.outcome())


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A connection that has ended keeps its port for a minute otherwise.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen(8)
    except OSError as error:
        listener.close()
        code = error.errno or errno.EADDRINUSE
        raise OSError(code, os.strerror(code), f"--gdb {port}") from None
    return listener


class _Connection:
    """At most one client at a time; others are refused."""

    def __init__(self, elf: Path, debugger: _core.M3Debugger, listener: socket.socket) -> None:
        self._elf = elf
        self._debugger = debugger
        self._listener = listener
        self._client: socket.socket | None = None

    def serve(self) -> None:
        """Until the program has ended."""
        try:
            while self._debugger.state != "ended":
                self._take_what_came()
                self._debugger.run()
                self._send()
        finally:
            self._close()

    def _take_what_came(self) -> None:
        watched = [one for one in (self._listener, self._client) if one is not None]
        waits = None if self._debugger.state == "halted" else 0
        ready, _, _ = select.select(watched, [], [], waits)
        # One that has gone makes room for the next.
        for _ in range(_RECEIVED):
            if self._client is None or not select.select([self._client], [], [], 0)[0]:
                break
            self._receive()
        if self._listener in ready:
            self._accept()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            # It has gone already.
            return
        if self._client is not None or self._debugger.state == "alone":
            client.close()
            screen.say(f"{self._elf}: another debugger was refused: there is one, or was")
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A client that does not read would hold the program for ever.
        client.settimeout(_SEND_S)
        self._client = client
        self._debugger.connected()
        screen.say(f"{self._elf}: gdb is connected")

    def _receive(self) -> None:
        if self._client is None:
            return
        try:
            received = self._client.recv(_BYTES)
        except OSError:
            received = b""
        if not received:
            self._lost()
            return
        self._debugger.receive(received)
        self._send()

    def _send(self) -> None:
        if self._client is None:
            return
        try:
            self._client.sendall(self._debugger.take_output())
        except TimeoutError:
            screen.say(f"{self._elf}: gdb reads nothing of what it is sent: it is disconnected")
            self._lost()
            return
        except OSError:
            self._lost()
            return
        problem = self._debugger.take_problem()
        if problem is not None:
            screen.say(f"{self._elf}: gdb's packets cannot be understood: {problem}")
            self._lost()
        elif self._debugger.state == "alone":
            self._close()
            screen.say(f"{self._elf}: gdb has detached; the program runs on")

    def _lost(self) -> None:
        self._close()
        self._debugger.disconnected()
        if self._debugger.state == "halted":
            port = self._listener.getsockname()[1]
            screen.say(
                f"{self._elf}: gdb is gone; the program is halted and waits on {_HOST}:{port}: "
                "connect again, or end it with Ctrl-C"
            )

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()

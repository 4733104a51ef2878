# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A caller of the agent that means the others no good, until it is killed: run as root with the
agent's socket, the user to become, and what to do. The bytes are those of
crates/iotsafe/agent-protocol/src/message.rs."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import socket
import struct
import sys
import time

VERSION = 2
VERIFY_PIN, RANDOM, TOKEN = 2, 11, 12


def frame(call: bytes) -> bytes:
    """A request with a timeout of 20 s."""
    body = bytes([VERSION, 1, 0, 20, 0]) + call
    return struct.pack(">I", len(body)) + body


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def connect(path: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    one.connect(path)
    return one


def flood(path: str) -> None:
    """Hundreds of connections, each with a request for random bytes whose answer nobody reads."""
    held = []
    for _ in range(200):
        # Refused ones are closed by the agent; the others stay.
        with contextlib.suppress(OSError):
            one = connect(path)
            held.append(one)
            one.sendall(frame(bytes([RANDOM]) + varint(4096)))
    time.sleep(0.2)


def half_frames(path: str) -> None:
    """Frames that begin and do not end, a byte now and then."""
    held = []
    for _ in range(50):
        with contextlib.suppress(OSError):
            one = connect(path)
            held.append(one)
            one.sendall(b"\0\0\x20\0")
    for _ in range(10):
        for one in held:
            with contextlib.suppress(OSError):
                one.sendall(b"x")
        time.sleep(0.1)


def wrong_pins(path: str) -> None:
    """PINs, one after the other."""
    with connect(path) as one:
        for pin in itertools.islice(itertools.cycle(range(9999)), 100):
            digits = f"{pin:04}".encode()
            one.sendall(frame(bytes([VERIFY_PIN, 4]) + digits))
            one.recv(4096)


def giant_requests(path: str) -> None:
    """Requests of a mebibyte, tokens of 16 KiB, all the random bytes that one may ask for."""
    with connect(path) as one, contextlib.suppress(OSError):
        one.sendall(struct.pack(">I", 1 << 20) + bytes(1 << 20))
    audience = os.urandom(7000).hex().encode()
    call = bytes([TOKEN, 0, 1]) + varint(len(audience)) + audience + bytes(3) + varint(3600) + b"\0"
    with connect(path) as one:
        one.sendall(frame(call))
        one.recv(4096)
    with connect(path) as one:
        one.sendall(frame(bytes([RANDOM]) + varint(4096)))
        one.recv(8192)


def killed(path: str) -> None:
    """Programs that are killed at any point of a request."""
    child = os.fork()
    if child == 0:
        try:
            giant_requests(path)
        finally:
            os._exit(0)
    time.sleep(random.random() * 0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    path, uid, act = sys.argv[1], int(sys.argv[2]), globals()[sys.argv[3]]
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    while True:
        with contextlib.suppress(OSError):
            act(path)
        time.sleep(0.01)


main()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Connections of many users to the agent's socket, held until stdin ends: run as root, with the
socket and how many users and connections each. Prints a line when all are made."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time

FIRST_UID = 20_000


def hold(path: str, uid: int, count: int, ready: int) -> None:
    """Connections of one user, each with a byte of a frame now and then."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    held = []
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.connect(path)
        with contextlib.suppress(OSError):  # it was refused
            one.send(b"\0\0\x10\0")  # a frame of 4096 bytes begins
        held.append(one)
    os.write(ready, b".")
    while True:
        for one in held:
            with contextlib.suppress(OSError):  # it was closed
                one.send(b"\0")
        time.sleep(0.5)


def main() -> None:
    path, users, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    children = []
    made, ready = os.pipe()
    for number in range(users):
        child = os.fork()
        if child == 0:
            try:
                hold(path, FIRST_UID + number, count, ready)
            finally:
                os._exit(0)
        children.append(child)
    os.close(ready)
    for _ in range(users):
        os.read(made, 1)
    print("ready", flush=True)
    sys.stdin.read()
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)


main()

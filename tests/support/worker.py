# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One end of the connections that are captured: runs the programs it is told on stdin."""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

PORT = 4433


def say(**event: object) -> None:
    print(json.dumps(event), flush=True)


def play(connection: socket.socket, program: list[list[object]]) -> None:
    """Runs a program: send so many bytes, receive so many, wait for so many before
    any are read, close this end, wait so many ms."""
    for word, number in program:
        count = int(str(number))
        if word == "send":
            connection.send(b"x" * count)
        elif word == "receive":
            while count > 0:
                count -= len(connection.recv(count))
        elif word == "await":
            # Unread data moves no window, which would delay acknowledgements; below the mark that
            # the program waits for it does not.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
        elif word == "close":
            connection.shutdown(socket.SHUT_WR)
        elif word == "info":
            tell_info(connection)
        else:
            time.sleep(count / 1000)


def tell_info(connection: socket.socket) -> None:
    """The kernel's estimates (struct tcp_info of linux/tcp.h), us."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    rto, ato = struct.unpack_from("=II", info, 8)
    rtt, rttvar, ssthresh, cwnd = struct.unpack_from("=IIII", info, 68)
    (min_rtt,) = struct.unpack_from("=I", info, 148)
    say(
        event="info",
        rto=rto,
        ato=ato,
        rtt=rtt,
        rttvar=rttvar,
        ssthresh=ssthresh,
        cwnd=cwnd,
        min_rtt=min_rtt,
    )


def serve(address: str) -> None:
    listener = socket.create_server((address, PORT), backlog=16)
    say(event="up")
    for line in sys.stdin:
        order = json.loads(line)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not order["nagle"])
        say(event="listening")
        connection, _ = listener.accept()
        try:
            play(connection, order["program"])
            connection.settimeout(30)
            connection.recv(1)
        except OSError:
            pass
        # Reset, so that nothing of it stays on the link.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()


def connect(address: str) -> None:
    connection = None
    for line in sys.stdin:
        order = json.loads(line)
        if "close" in order and connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
            time.sleep(0.2)
            say(event="closed")
            continue
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not order["nagle"])
        connection.connect((address, PORT))
        play(connection, order["program"])
        say(event="done", time_ns=time.time_ns())


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "server" else connect(sys.argv[2])

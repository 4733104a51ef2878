# SPDX-License-Identifier: Apache-2.0 OR MIT
"""libcoap's client and server over DTLS, with the key and all certificates in the card."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from support import programs
from support.programs import (
    DEVICE,
    OPERATOR,
    PIN,
    TOKEN,
    Authority,
    Device,
    Running,
    free_port,
    run,
)

#: libcoap wants all three on the token where one is, and the PIN beside them.
ON_CARD = (
    "-J", PIN, "-c", f"{TOKEN};object=client;type=cert?pin-value={PIN}",
    "-j", f"{TOKEN};object=client;type=private?pin-value={PIN}",
    "-C", f"{TOKEN};object=server;type=cert?pin-value={PIN}",
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("libcoap", ["coap-client-openssl"], r"coap-client-openssl v(\S+)")


def in_files(pair: tuple[Path, Path], authority: Authority) -> tuple[object, ...]:
    return ("-c", pair[0], "-j", pair[1], "-C", authority.certificate)


def served(device: Device, port: int, *keys: object) -> Running:
    """A server whose DTLS is at the port after that one."""
    command = ("coap-server-openssl", "-A", "127.0.0.1", "-p", port - 1, "-v", 7, *keys)
    return Running(*command, environment=device.environment, log=device.folder / "coap-server.log")


def test_client(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    port = free_port(socket.SOCK_DGRAM)
    with served(device, port, *in_files(operator, authority)) as server:
        server.until("created DTLS endpoint")
        done = run(
            "coap-client-openssl", "-v", 7, *ON_CARD, f"coaps://127.0.0.1:{port}/time",
            environment=device.environment,
        )  # fmt: skip
        server.until(f"CN '{DEVICE}' presented by client")
    assert OPERATOR in done.stdout + done.stderr
    assert len(device.signatures()) == 1


def test_server(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    port = free_port(socket.SOCK_DGRAM)
    with served(device, port, *ON_CARD) as server:
        server.until("created DTLS endpoint")
        done = run(
            "coap-client-openssl", "-v", 7, *in_files(operator, authority),
            f"coaps://127.0.0.1:{port}/time", environment=device.environment,
        )  # fmt: skip
        server.until(f"CN '{OPERATOR}' presented by client")
    assert DEVICE in done.stdout + done.stderr
    assert len(device.signatures()) == 1

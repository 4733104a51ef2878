# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSSL's client and server with the key in a card behind a modem, `csim:` in `WARIFU_CARD`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.programs import (
    DEVICE,
    KEY,
    OPERATOR,
    Authority,
    Device,
    Running,
    free_port,
    module,
    run,
)

ENGINE = ("-engine", "pkcs11", "-keyform", "engine", "-key", KEY)
REQUEST = "GET / HTTP/1.0\r\n\r\n"
#: ISO 7816-4 section 11.1.2; the card has four channels, and nothing resets the one behind a modem.
CHANNELS = 4


@pytest.fixture(params=["all", "ccho"])
def device(
    tmp_path: Path, authority: Authority, request: pytest.FixtureRequest
) -> Iterator[Device]:
    """A card that `warifu card serve --at` serves, and nothing else: behind a modem with AT+CSIM,
    and behind one that has AT+CCHO and AT+CGLA alone."""
    made = Device(tmp_path, authority)
    made.server.stop()
    link = tmp_path / "modem"
    made.address = f"csim:{link}"
    command = (sys.executable, "-m", "warifu.cli", "card", "serve")
    served = Running(
        *command, "--state", made.state, "--at", "--link", link,
        "--at-commands", request.param,
        environment=made.environment, log=tmp_path / "card_serve",
    )  # fmt: skip
    with served:
        served.until("Ctrl-C ends it")
        yield made


def test_listing_leaks_no_channel(device: Device) -> None:
    command = ("pkcs11-tool", "--module", module(), "--list-token-slots")
    for _ in range(CHANNELS + 1):
        assert "token label" in run(*command, environment=device.environment).stdout


def test_client(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", certificate, "-key", key,
        "-CAfile", authority.certificate, "-Verify", "1", "-verify_return_error", "-www",
        environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    client = (
        "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", *ENGINE,
        "-cert", device.certificate, "-CAfile", authority.certificate, "-verify_return_error",
        "-ign_eof",
    )  # fmt: skip
    with server:
        server.until("ACCEPT")
        # s_client ends without C_Finalize; its channel is given back, or the last would find none.
        for handshakes in range(1, CHANNELS + 2):
            done = run(*client, environment=device.environment, stdin=REQUEST)
            assert "New, TLSv1.3" in done.stdout
            assert "HTTP/1.0 200 ok" in done.stdout
            assert f"Subject: CN = {DEVICE}" in done.stdout.replace("CN=", "CN = ")
            assert len(device.signatures()) == handshakes
        assert f"CN = {DEVICE}" in server.until(r"depth=0.*").group()


def test_server(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", *ENGINE,
        "-cert", device.certificate, "-CAfile", authority.certificate, "-Verify", "1",
        "-verify_return_error", "-www",
        environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    client = (
        "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-cert", certificate,
        "-key", key, "-CAfile", authority.certificate, "-verify_return_error",
        "-verify_hostname", "localhost", "-ign_eof",
    )  # fmt: skip
    with server:
        server.until("ACCEPT")
        for handshakes in (1, 2):
            done = run(*client, environment=device.environment, stdin=REQUEST)
            assert "New, TLSv1.3" in done.stdout
            assert f"CN = {DEVICE}" in done.stdout + done.stderr
            assert f"Subject: CN = {OPERATOR}" in done.stdout.replace("CN=", "CN = ")
            assert len(device.signatures()) == handshakes

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSSL's own client and server, each with the key in the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import programs
from support.openssl import ENGINE, REQUEST, client_handshake
from support.programs import DEVICE, OPERATOR, Authority, Device, Running, free_port, run


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("openssl", ["openssl", "version"], r"OpenSSL (\S+)")


@pytest.mark.parametrize("tls", ["-tls1_2", "-tls1_3"])
def test_client(
    device: Device, authority: Authority, operator: tuple[Path, Path], tls: str
) -> None:
    client_handshake(device, authority, operator, tls)
    assert len(device.signatures()) == 1


@pytest.mark.parametrize("tls", ["-tls1_2", "-tls1_3"])
def test_server(
    device: Device, authority: Authority, operator: tuple[Path, Path], tls: str
) -> None:
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", *ENGINE,
        "-cert", device.certificate, "-CAfile", authority.certificate, "-Verify", "1",
        "-verify_return_error", "-www",
        environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    with server:
        server.until("ACCEPT")
        for handshakes in (1, 2):
            done = run(
                "openssl", "s_client", "-connect", f"127.0.0.1:{port}", tls, "-cert", certificate,
                "-key", key, "-CAfile", authority.certificate, "-verify_return_error",
                "-verify_hostname", "localhost", "-ign_eof",
                environment=device.environment, stdin=REQUEST,
            )  # fmt: skip
            assert f"CN = {DEVICE}" in done.stdout + done.stderr
            assert f"Subject: CN = {OPERATOR}" in done.stdout.replace("CN=", "CN = ")
            assert len(device.signatures()) == handshakes

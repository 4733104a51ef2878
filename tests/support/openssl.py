# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSSL's client with the key in the card."""

from __future__ import annotations

from pathlib import Path

from support.programs import DEVICE, KEY, Authority, Device, Running, free_port, run

ENGINE = ("-engine", "pkcs11", "-keyform", "engine", "-key", KEY)
REQUEST = "GET / HTTP/1.0\r\n\r\n"


def client_handshake(
    device: Device, authority: Authority, operator: tuple[Path, Path], tls: str
) -> None:
    """One of a client whose key is in the card, with a server that asks for its certificate."""
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", certificate, "-key", key,
        "-CAfile", authority.certificate, "-Verify", "1", "-verify_return_error", "-www",
        environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    with server:
        server.until("ACCEPT")
        done = run(
            "openssl", "s_client", "-connect", f"127.0.0.1:{port}", tls, *ENGINE,
            "-cert", device.certificate, "-CAfile", authority.certificate, "-verify_return_error",
            "-ign_eof", environment=device.environment, stdin=REQUEST,
        )  # fmt: skip
        assert f"CN = {DEVICE}" in server.until(r"depth=0.*").group()
    assert "HTTP/1.0 200 ok" in done.stdout
    assert f"Subject: CN = {DEVICE}" in done.stdout.replace("CN=", "CN = ")

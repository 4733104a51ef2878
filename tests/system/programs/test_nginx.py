# SPDX-License-Identifier: Apache-2.0 OR MIT
"""nginx with the key in the card: as a server with several workers, and towards its upstream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import programs, web
from support.programs import DEVICE, KEY, OPERATOR, Authority, Device, free_port

WORKERS = 3


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("nginx", ["nginx", "-v"], r"nginx/(\S+)")


@pytest.mark.smoke
def test_all_workers_sign(
    device: Device, authority: Authority, operator: tuple[Path, Path]
) -> None:
    certificate, key = operator
    port = free_port()
    block = web.server(port, device.certificate, f"engine:pkcs11:{KEY}", authority.certificate)
    handshakes, answered = 0, set()
    with web.nginx(device, block, engine=True, workers=WORKERS) as server:
        server.until("start worker process (.*\n)+.*start worker process ")
        # The kernel shares connections out by their ports.
        while len(answered) < WORKERS and handshakes < 200:
            options = ("--cert", certificate, "--key", key)
            said = web.get(device, port, authority.certificate, *options)
            handshakes += 1
            assert said.startswith(f"CN={OPERATOR} SUCCESS ")
            answered.add(int(re.findall(r"worker=(\d+)", said)[0]))
    assert len(answered) == WORKERS
    signatures = device.signatures()
    assert len(signatures) == handshakes
    assert {signature.pid for signature in signatures} == answered


def test_upstream_client_certificate_of_the_card(
    device: Device, authority: Authority, operator: tuple[Path, Path]
) -> None:
    certificate, key = operator
    behind, front = free_port(), free_port()
    upstream = web.server(behind, certificate, key, authority.certificate)
    proxy = f"""
        proxy_pass https://127.0.0.1:{behind};
        proxy_ssl_certificate {device.certificate};
        proxy_ssl_certificate_key "engine:pkcs11:{KEY}";
        proxy_ssl_trusted_certificate {authority.certificate};
        proxy_ssl_verify on;
        proxy_ssl_name localhost;
        proxy_ssl_session_reuse off;"""
    gateway = web.server(front, certificate, key, authority.certificate, proxy)
    with (
        web.nginx(device, upstream, name="upstream") as behind_it,
        web.nginx(device, gateway, engine=True, workers=2) as server,
    ):
        behind_it.until("start worker process ")
        server.until("start worker process ")
        for handshakes in (1, 2, 3):
            options = ("--cert", certificate, "--key", key)
            said = web.get(device, front, authority.certificate, *options)
            assert said.startswith(f"CN={DEVICE} SUCCESS ")
            assert len(device.signatures()) == handshakes

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""nginx with the key in the card: as a server with several workers, and towards its upstream."""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path

import pytest

from support import programs, sim, web
from support.programs import DEVICE, KEY, OPERATOR, Authority, Device, free_port, run

WORKERS = 3
#: Far above what a definite error takes.
NO_HANG_S = 25
#: curl(1): CURLE_SSL_CONNECT_ERROR; 28 would be its own patience.
TLS_REFUSED = 35


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


def test_worker_without_a_channel_refuses_until_a_reload(
    device: Device, authority: Authority, operator: tuple[Path, Path]
) -> None:
    """libp11 waited without end where C_OpenSession failed, and the worker answered nobody, also
    after a reload, which waits for it."""
    certificate, key = operator
    port = free_port()
    block = web.server(port, device.certificate, f"engine:pkcs11:{KEY}", authority.certificate)
    curl = (
        "curl", "--silent", "--show-error", "--max-time", NO_HANG_S, "--cacert",
        authority.certificate, "--cert", certificate, "--key", key, f"https://localhost:{port}/",
    )  # fmt: skip
    with web.nginx(device, block, engine=True, workers=1) as server:
        server.until("start worker process ")
        with contextlib.ExitStack() as others:
            # The fourth is the master's.
            for _ in range(3):
                client = others.enter_context(sim.Client(device.socket))
                assert client.status(sim.SELECT) == 0x9000
            for _ in range(2):
                done = run(*curl, environment=device.environment, check=False, patience_s=60)
                assert done.returncode == TLS_REFUSED, done.stderr
        assert device.signatures() == []
        # libp11 reads a worker's keys once: what it could not read then, it has no more.
        before = len(re.findall("start worker process ", server.said()))
        server.process.send_signal(signal.SIGHUP)
        server.until(f"(?:start worker process (?:.*\n)+?.*){{{before + 1}}}")
        server.until("exited with code 0")
        said = run(*curl, environment=device.environment).stdout
        assert said.startswith(f"CN={OPERATOR} SUCCESS ")


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

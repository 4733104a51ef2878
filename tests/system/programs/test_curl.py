# SPDX-License-Identifier: Apache-2.0 OR MIT
"""curl with the client's key in the card, against nginx."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import programs, web
from support.programs import DEVICE, KEY, Authority, Device, free_port


@pytest.mark.smoke
@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_client(
    device: Device, authority: Authority, operator: tuple[Path, Path], tls: str
) -> None:
    programs.version("curl", ["curl", "--version"], r"curl (\S+)")
    port = free_port()
    block = web.server(port, *operator, authority.certificate)
    with web.nginx(device, block) as server:
        server.until("start worker process ")
        options = ("--engine", "pkcs11", "--key-type", "ENG", "--key", KEY)
        limits = (f"--tlsv{tls}", "--tls-max", tls, "--cert", device.certificate)
        said = web.get(device, port, authority.certificate, *options, *limits)
    assert said.startswith(f"CN={DEVICE} SUCCESS ")
    assert len(device.signatures()) == 1

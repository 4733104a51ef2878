# SPDX-License-Identifier: Apache-2.0 OR MIT
"""wolfSSL's IoT SAFE port at the virtual card behind AT+CSIM: `make wolfssl` builds it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support import web
from support.paths import ROOT
from support.programs import DEVICE, Authority, Device, free_port

CLIENT = ROOT / "target" / "wolfssl" / "client"
VERSION = ROOT / "target" / "wolfssl" / "installed" / "include" / "wolfssl" / "version.h"
#: How long the port waits for more of an answer before it takes it for complete.
IDLE_MS = 5


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_mutual_tls(tmp_path: Path, tls: str, record_property: pytest.RecordProperty) -> None:
    found = re.search(r'LIBWOLFSSL_VERSION_STRING "(\S+)"', VERSION.read_text())
    assert found
    record_property("wolfSSL", found[1])
    authority = Authority(tmp_path)
    certificate, key = authority.pair("server")
    device = Device(tmp_path, authority, pin=None, quirks="wolfssl", at=True)
    port = free_port()
    block = web.server(port, certificate, key, authority.certificate)
    with device.server, web.nginx(device, block) as server:
        server.until("start worker process ")
        command = [CLIENT, device.server.ready["at"], str(port), tls, str(IDLE_MS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"TLSv{tls} ")
    assert f"CN={DEVICE} SUCCESS" in done.stdout

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenVPN with key and certificate in the card, between two network namespaces. Needs root."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs, programs
from support.programs import (
    DEVICE,
    OPERATOR,
    PATIENCE_S,
    PIN,
    Authority,
    Device,
    ProgramFailed,
    Running,
    module,
    run,
)

pytestmark = needs.root

HERE, THERE = "10.77.0.1", "10.77.0.2"
TUNNEL_HERE, TUNNEL_THERE = "10.78.0.1", "10.78.0.2"


def ip(*arguments: object, check: bool = True) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=check, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two namespaces with a link between them."""
    names = (f"warifu-test-{os.getpid()}-a", f"warifu-test-{os.getpid()}-b")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("-n", names[0], "link", "add", "wire", "type", "veth", "peer", "wire", "netns", names[1])
        for name, address in zip(names, (HERE, THERE), strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
        yield names
    finally:
        for name in names:
            ip("netns", "delete", name, check=False)


def openvpn(device: Device, namespace: str, *options: object) -> Running:
    """One end of a tunnel."""
    command = ("ip", "netns", "exec", namespace, "openvpn", "--dev", "tun", "--verb", 4,
               "--proto", "udp", "--tls-version-min", "1.2", *options)  # fmt: skip
    log = device.folder / f"{namespace}.log"
    return Running(*command, environment=device.environment, log=log, folder=device.folder)


def identity(device: Device) -> str:
    """How OpenVPN calls the certificate on the card."""
    done = run("openvpn", "--show-pkcs11-ids", module(), environment=device.environment)
    found = re.findall(rf"DN:\s+CN={DEVICE}\n.*\n\s+Serialized id:\s+(\S+)", done.stdout)
    assert found, done.stdout
    return str(found[0])


def give_pin(management: Path) -> None:
    """Answers OpenVPN's question at its management socket, as its front ends do."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(PATIENCE_S)
            line.connect(str(management))
            break
        except OSError:
            line.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    with line, line.makefile("rw") as talk:
        for said in talk:
            asked = re.match(r">PASSWORD:Need '(.*)' password", said)
            if asked:
                talk.write(f'password "{asked[1]}" {PIN}\n')
                talk.flush()
                return
    raise ProgramFailed("OpenVPN did not ask for a PIN")


def test_client(
    device: Device,
    authority: Authority,
    operator: tuple[Path, Path],
    namespaces: tuple[str, str],
) -> None:
    programs.version("openvpn", ["openvpn", "--version"], r"OpenVPN (\S+)")
    certificate, key = operator
    management = device.folder / "management"
    here = ("--tls-server", "--dh", "none", "--ca", authority.certificate, "--cert", certificate,
            "--key", key, "--local", HERE, "--ifconfig", TUNNEL_HERE, TUNNEL_THERE)  # fmt: skip
    there = ("--tls-client", "--remote", HERE, "--ca", authority.certificate, "--nobind",
             "--pkcs11-providers", module(), "--pkcs11-id", identity(device),
             "--management", management, "unix", "--management-query-passwords",
             "--ifconfig", TUNNEL_THERE, TUNNEL_HERE)  # fmt: skip
    with (
        openvpn(device, namespaces[0], *here) as server,
        openvpn(device, namespaces[1], *there) as client,
    ):
        give_pin(management)
        server.until(f"VERIFY OK: depth=0, CN={DEVICE}")
        server.until("Initialization Sequence Completed")
        client.until(f"VERIFY OK: depth=0, CN={OPERATOR}")
        client.until("Initialization Sequence Completed")
        assert len(device.signatures()) == 1

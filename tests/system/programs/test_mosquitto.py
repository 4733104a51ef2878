# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mosquitto's broker and its clients, with the key in the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import programs
from support.mosquitto import broker, client
from support.programs import DEVICE, KEY, OPERATOR, Authority, Device, Running, free_port, run


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("mosquitto", ["mosquitto", "-h"], r"mosquitto version (\S+)")
    programs.version("mosquitto_pub", ["mosquitto_pub", "--version"], r"version (\S+)")


@pytest.mark.smoke
def test_publisher(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    certificate, key = operator
    port = free_port()
    # mosquitto_pub looks for a file of the key's name before it asks the engine.
    (device.folder / KEY).touch()
    in_files = ("--cert", certificate, "--key", key)
    on_card = ("--cert", device.certificate, "--tls-engine", "pkcs11", "--keyform", "engine",
               "--key", KEY)  # fmt: skip
    with broker(device, port, authority, f"certfile {certificate}\nkeyfile {key}") as server:
        server.until("mosquitto version .* running")
        listen = client("mosquitto_sub", port, authority, *in_files, "-C", 1)
        log = device.folder / "sub.log"
        with Running(*listen, environment=device.environment, log=log) as subscriber:
            server.until("Sending SUBACK")
            publish = client("mosquitto_pub", port, authority, *on_card, "-m", "23.5 kWh")
            run(*publish, environment=device.environment, folder=device.folder)
            subscriber.until("23.5 kWh")
        server.until(f"New client connected .* u'{DEVICE}'")
    assert len(device.signatures()) == 1


def test_broker(device: Device, authority: Authority, operator: tuple[Path, Path]) -> None:
    certificate, key = operator
    port = free_port()
    keys = f"certfile {device.certificate}\ntls_engine pkcs11\ntls_keyform engine\nkeyfile {KEY}"
    with broker(device, port, authority, keys) as server:
        server.until("mosquitto version .* running")
        for handshakes in (1, 2):
            own = ("--cert", certificate, "--key", key, "-m", "23.5 kWh")
            publish = client("mosquitto_pub", port, authority, *own)
            run(*publish, environment=device.environment)
            assert len(device.signatures()) == handshakes
        server.until(f"New client connected .* u'{OPERATOR}'")

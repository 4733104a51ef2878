# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mosquitto's broker and its clients."""

from __future__ import annotations

import os

from support.programs import Authority, Device, Running


def broker(device: Device, port: int, authority: Authority, keys: str) -> Running:
    """A broker that names its clients by their certificates."""
    file = device.folder / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\ncafile {authority.certificate}\n{keys}\n"
        "require_certificate true\nuse_identity_as_username true\nlog_type all\n"
        f"log_dest stderr\n{'user root' if os.geteuid() == 0 else ''}\n"
    )
    log = device.folder / "mosquitto.log"
    return Running("mosquitto", "-c", file, environment=device.environment, log=log)


def client(program: str, port: int, authority: Authority, *own: object) -> list[object]:
    """A command line of mosquitto_pub or mosquitto_sub."""
    return [program, "-h", "localhost", "-p", port, "--cafile", authority.certificate,
            "-t", "meter", *own]  # fmt: skip

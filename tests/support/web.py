# SPDX-License-Identifier: Apache-2.0 OR MIT
"""nginx, configured for a test."""

from __future__ import annotations

import os
from pathlib import Path

from support.programs import Device, Running, run

#: What a server answers: who the client is, whether that was verified, who answers.
WHO = 'return 200 "$ssl_client_s_dn $ssl_client_verify worker=$pid\\n";'


def nginx(
    device: Device, servers: str, *, engine: bool = False, workers: int = 1, name: str = "nginx"
) -> Running:
    """nginx with these `server` blocks; with the module if its keys are in the card."""
    folder = device.folder / name
    folder.mkdir()
    own = ("PKCS11_MODULE_PATH", "WARIFU_CARD", "WARIFU_PKCS11_TRACE")
    # Workers keep only the variables that are named.
    with_card = "ssl_engine pkcs11;" + "".join(f"env {variable};" for variable in own)
    user = "user root;" if os.geteuid() == 0 else ""
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} worker_processes {workers}; pid {folder}/pid;\n"
        f"error_log stderr info;\n{with_card if engine else ''}\n"
        "events { worker_connections 64; }\n"
        f"http {{ access_log off; {paths}\n{servers}\n}}\n"
    )
    command = ("nginx", "-p", folder, "-c", folder / "nginx.conf")
    return Running(*command, environment=device.environment, log=device.folder / f"{name}.log")


def server(port: int, certificate: Path, key: object, authority: Path, location: str = WHO) -> str:
    """A server that wants a client's certificate."""
    return f"""
    server {{
        listen 127.0.0.1:{port} ssl reuseport;
        ssl_certificate {certificate};
        ssl_certificate_key "{key}";
        ssl_client_certificate {authority};
        ssl_verify_client on;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets off;
        ssl_session_cache off;
        location / {{ {location} }}
    }}"""


def get(device: Device, port: int, authority: Path, *options: object) -> str:
    """What curl gets from a server on this machine."""
    url = f"https://localhost:{port}/"
    return run(
        "curl", "--silent", "--show-error", "--cacert", authority, *options, url,
        environment=device.environment,
    ).stdout  # fmt: skip

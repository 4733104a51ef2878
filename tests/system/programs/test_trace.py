# SPDX-License-Identifier: Apache-2.0 OR MIT
"""WARIFU_PKCS11_TRACE: where a handshake's time goes, in both of its forms."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from support import programs, web
from support.programs import KEY, PIN, Authority, Device, Running, free_port, run

LIST = ("pkcs11-tool", "--module", programs.module(), "--list-objects")
LINE = re.compile(
    r"\d+\.\d{6} \d+ \d+ +\d+\.\d{3} ms (?:call C_\w+ CKR_\w+|apdu [A-Z -]+ [0-9A-F]{8} "
    r"\d+ B > \d+ B (?:[0-9A-F]{4}|no answer))"
)


def events(path: Path) -> list[dict[str, Any]]:
    """A trace in Chrome's form."""
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def test_trace_lines_of_calls_and_commands(device: Device) -> None:
    run(*LIST, "--login", "--pin", PIN, environment=device.environment)
    lines = device.trace.read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    said = device.trace.read_text()
    with_pin = "VERIFY 01200001 13 B > 2 B 9000"
    for what in ("C_Initialize CKR_OK", "C_Login CKR_OK", "SELECT 01A40400", with_pin):
        assert said.count(what) == 1, what
    assert PIN.encode().hex() not in said
    assert "C_Finalize CKR_OK" in lines[-1]


def test_trace_on_a_full_disk_is_reported_once(device: Device) -> None:
    environment = device.environment | {"WARIFU_PKCS11_TRACE": "/dev/full"}
    said = run(*LIST, "--login", "--pin", PIN, environment=environment).stderr
    lines = [line for line in said.splitlines() if "trace" in line]
    why = "No space left on device (os error 28)"
    assert lines == [f"warifu-pkcs11: /dev/full: the trace lacks events: {why}"]


def test_commands_lie_within_their_call(device: Device, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    environment = device.environment | {"WARIFU_PKCS11_TRACE": str(trace)}
    run(*LIST, "--login", "--pin", PIN, environment=environment)
    found = events(trace)
    assert [one["args"]["name"] for one in found if one["ph"] == "M"] == ["pkcs11-tool"]
    (login,) = (one for one in found if one.get("name") == "C_Login")
    # Without data it only asks how many tries are left.
    verify = next(one for one in found if "VERIFY" in one["name"] and "13 B" in str(one["args"]))
    # Microseconds as Chrome has them, of which a quarter is what a double of today's time holds.
    assert login["ts"] <= verify["ts"] + 0.25
    assert verify["ts"] + verify["dur"] <= login["ts"] + login["dur"] + 0.5
    assert verify["tid"] == login["tid"]


def test_trace_of_many_processes_and_a_killed_one(
    device: Device, authority: Authority, operator: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = operator
    trace = tmp_path / "trace.json"
    port = free_port()
    block = web.server(port, device.certificate, f"engine:pkcs11:{KEY}", authority.certificate)
    device.trace = trace
    with web.nginx(device, block, engine=True, workers=2) as server:
        server.until("start worker process (.*\n)+.*start worker process ")
        clients = [
            subprocess.Popen(
                ["curl", "-s", "--cacert", authority.certificate, "--cert", certificate, "--key",
                 key, f"https://localhost:{port}/"],
                stdout=subprocess.DEVNULL, env=device.environment,
            )
            for _ in range(12)
        ]  # fmt: skip
        endless = "while pkcs11-tool --module $PKCS11_MODULE_PATH --list-objects; do :; done"
        shell = Running(
            "sh", "-c", endless, environment=device.environment, log=tmp_path / "endless"
        )
        assert {client.wait(timeout=30) for client in clients} == {0}
        with shell:
            shell.until("(Private|Public) Key")
            # All of its group at once, wherever they are.
            shell.kill_all(signal.SIGKILL)
    found = events(trace)
    signed = [one for one in found if one["name"] == "COMPUTE SIGNATURE - UPDATE"]
    assert len(signed) == 12
    assert {one["args"]["name"] for one in found if one["ph"] == "M"} >= {"nginx", "pkcs11-tool"}

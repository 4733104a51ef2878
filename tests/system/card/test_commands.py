# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu card` as a person types it: what is wrong is one line, and nothing is done."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs, sim
from support.sim import Client, Server
from warifu import tools

USAGE, ENVIRONMENT = 2, 3


def warifu(
    folder: Path, *words: object, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warifu.cli", *(str(word) for word in words)]
    return subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, text=True, check=False,
        env=os.environ | {"XDG_DATA_HOME": str(folder / "data")} | environment, timeout=60,
    )  # fmt: skip


def refused(done: subprocess.CompletedProcess[str], code: int = USAGE) -> str:
    """The one line."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


@needs.program("pkcs11-tool")
@pytest.mark.parametrize("quirks", ["strict", "wolfssl", "orange", "thales"])
def test_token_has_one_name(tmp_path: Path, quirks: str) -> None:
    """`warifu card list` and PKCS#11, whatever the applet shows of its identifier."""
    state, path = tmp_path / "card.state", tmp_path / "card.sock"
    label = sim.ask("create", state=state, quirks=quirks, label="meter-7")["label"]
    module = tools.find("libwarifu_pkcs11.so")
    with Server(state, socket=path):
        done = subprocess.run(
            ["pkcs11-tool", "--module", str(module), "--list-token-slots"],
            capture_output=True, text=True, check=True, timeout=60,
            env=os.environ | {"WARIFU_CARD": f"unix:{path}"},
        )  # fmt: skip
    (shown,) = re.findall(r"token label +: (.*)", done.stdout)
    assert shown == label
    assert shown == ("iot-safe" if quirks == "thales" else "meter-7")


@pytest.mark.parametrize("option", [("--pin-tries", "5"), ("--pin-scope", "every-key")])
@pytest.mark.parametrize("verb", ["create", "reset"])
def test_pin_options_without_a_pin(tmp_path: Path, verb: str, option: tuple[str, str]) -> None:
    line = refused(warifu(tmp_path, "card", verb, "--state", "card.state", *option))
    assert f"{option[0]} without a PIN: add --pin or --pin-file" in line
    assert not (tmp_path / "card.state").exists()


def test_pin_file(tmp_path: Path) -> None:
    (tmp_path / "pin").write_text("1234\nthe PIN of meter 7\n")
    pin = ("--state", "card.state", "--pin-file", "pin")
    assert warifu(tmp_path, "card", "create", *pin, "--pin-tries", "5").returncode == 0
    done = warifu(tmp_path, "card", "csr", "CN=device-1", *pin)
    assert done.returncode == 0, done.stderr
    listing = sim.ask("list", state=tmp_path / "card.state")
    assert listing["pin"] == {"scope": "signing", "tries_max": 5, "tries_left": 5}


def test_csr_overwrites_no_other_file(tmp_path: Path) -> None:
    state = tmp_path / "card.state"
    assert warifu(tmp_path, "card", "create", "--state", state).returncode == 0
    kept = state.read_bytes()
    csr = ("card", "csr", "CN=device-1", "--state", state, "-o")
    assert "not a certificate request" in refused(warifu(tmp_path, *csr, state))
    assert state.read_bytes() == kept
    for _ in range(2):
        assert warifu(tmp_path, *csr, "device-1.csr").returncode == 0


def test_labels_and_serials_of_two_cards(tmp_path: Path) -> None:
    module = tools.find("libwarifu_pkcs11.so")
    seen = []
    for name, label in (("one", ()), ("two", ("--label", "meter-7"))):
        state, path = tmp_path / f"{name}.state", tmp_path / f"{name}.sock"
        done = warifu(tmp_path, "card", "create", "--state", state, *label, "--format", "json")
        assert done.returncode == 0, done.stderr
        listing = sim.ask("list", state=state)
        with Server(state, socket=path):
            said = subprocess.run(
                ["pkcs11-tool", "--module", module, "--list-slots"], capture_output=True, text=True,
                check=True, env=os.environ | {"WARIFU_CARD": f"unix:{path}"}, timeout=60,
            ).stdout  # fmt: skip
        lines = [line.partition(":") for line in said.splitlines()]
        fields = {key.strip(): value.strip() for key, _, value in lines}
        assert fields["serial num"] == listing["serial"]
        seen.append((fields["token label"], fields["serial num"]))
    assert [label for label, _ in seen] == ["warifu", "meter-7"]
    assert seen[0][1] != seen[1][1]
    line = refused(warifu(tmp_path, "card", "create", "--state", "x", "--label", "zähler 7"))
    assert "expected 1 to 22 visible ASCII characters" in line


def test_create_over_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "card.state").touch(mode=0o600)
    line = refused(warifu(tmp_path, "card", "create", "--state", "card.state"))
    assert line.endswith("card.state: the file exists and is empty: remove it")


def test_named_folder_must_exist(tmp_path: Path) -> None:
    line = refused(warifu(tmp_path, "card", "create", "--state", "typo/card.state"), ENVIRONMENT)
    assert line.startswith("warifu: typo: No such file or directory")
    assert line.endswith("check the name, or create the folder")
    assert warifu(tmp_path, "card", "create").returncode == 0
    assert (tmp_path / "data" / "warifu").stat().st_mode & 0o777 == 0o700
    line = refused(warifu(tmp_path, "card", "csr", "CN=device-1", "-o", "typo/device-1.csr"))
    assert "typo is not a folder: create it, or choose another" in line
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [("CN=", "CN has 0 characters"), (f"CN={'d' * 65}", "CN has 65 characters: expected 1 to 64")],
)
def test_invalid_csr_subject(tmp_path: Path, subject: str, expected: str) -> None:
    assert warifu(tmp_path, "card", "create").returncode == 0
    line = refused(warifu(tmp_path, "card", "csr", subject, "-o", "device-1.csr"))
    assert expected in line
    assert not (tmp_path / "device-1.csr").exists()


def test_socket_in_use_and_socket_of_a_killed_server(tmp_path: Path) -> None:
    state, other, path = tmp_path / "1.state", tmp_path / "2.state", tmp_path / "card.sock"
    sim.ask("create", state=state)
    sim.ask("create", state=other)
    csr = ("card", "csr", "CN=device-1", "--socket", path)
    assert "no card is served at this socket" in refused(warifu(tmp_path, *csr), ENVIRONMENT)
    with Server(state, socket=path) as server:
        line = refused(warifu(tmp_path, "card", "serve", "--state", other, "--socket", path))
        assert "card.sock: another server is using it: choose another --socket" in line
        line = refused(
            warifu(tmp_path, "card", "serve", "--state", state, "--socket", "x.sock"), ENVIRONMENT
        )
        assert f"is in use by process {server.process.pid}: stop its server" in line
        server.stop(signal.SIGKILL)
    assert path.exists()
    assert "no card is served at this socket" in refused(warifu(tmp_path, *csr), ENVIRONMENT)
    with Server(other, socket=path), Client(path) as client:
        assert client.status(sim.SELECT) == 0x9000

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu trace --costs`, and what of it a manifest holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.commands import Run, one_line
from warifu import _core
from warifu.cli.errors import OK, USAGE

RECIPES = """
name = "lib-1"
description = "a library"
source = "counted"
kind = "measured"

[[recipe]]
operation = "client.send.ClientHello"
when = { tls = "1.3" }
instructions = 5000
call = [{ primitive = "ecdh.keygen", count = 1 }]

[[recipe]]
operation = "client.receive.ServerHello"
when = { tls = "1.3" }
call = [{ primitive = "hkdf", count = 3 }]
"""
BOARD = """
name = "board"
description = "a board"
library = "lib-1"

[[primitive]]
name = "instruction"
warm = "20 ns"
[[primitive]]
name = "ecdh.derive.x25519"
warm = "900 us"
[[primitive]]
name = "sign.ecdsa_secp256r1"
warm = "45 ms"
[[operation]]
name = "client.receive.EncryptedExtensions"
warm = "7 us"
"""
QUESTION = ("--device", "board", "--server", "xeon-2-5-ghz-vm", "--link", "loopback",
            "--group", "x25519", "--key-store", "software")  # fmt: skip
SENT = ("ChangeCipherSpec", "Certificate", "CertificateVerify", "Finished", "ApplicationData")
RECEIVED = (
    *("CertificateRequest", "Certificate", "CertificateVerify", "Finished"),
    *("NewSessionTicket", "ApplicationData"),
)
REST = [
    *(f"client.send.{name}" for name in SENT),
    *(f"client.receive.{name}" for name in RECEIVED),
    *(f"client.system.{name}" for name in ("connect", "wake", "write", "interface")),
]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A device of a few primitives, and its library's recipes; the file of the device."""
    for folder, name, text in (("recipes", "lib-1", RECIPES), ("devices", "board", BOARD)):
        (tmp_path / "profiles" / folder).mkdir(parents=True)
        (tmp_path / "profiles" / folder / f"{name}.toml").write_text(text)
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles" / "devices" / "board.toml"


def complete(board: Path) -> None:
    """Adds all that a full handshake of TLS 1.3 needs."""
    entries = []
    for name in REST:
        choices = [f"{key} = {json.dumps(words)}" for key, words in _core.cost_choices(name)]
        when = f"when = {{ {', '.join(choices)} }}\n" if choices else ""
        entries.append(f'[[operation]]\nname = "{name}"\nwarm = "1 us"\n{when}')
    primitive = '[[primitive]]\nname = "hmac.sha-256"\nwarm = "30 us"\n'
    board.write_text(BOARD + primitive + "".join(entries))


def test_own_figures_recipes_and_what_is_missing(warifu: Run, board: Path) -> None:
    code, out, err = warifu("trace", *QUESTION, "--costs")
    assert (code, err) == (OK, "")
    lines = [re.sub(r" {2,}", "  ", line) for line in out.splitlines()]
    assert lines[0] == "client board"
    start = lines.index("  send.ClientHello  1.00 ms  recipe of lib-1")
    assert lines[start + 1 : start + 3] == [
        "  ecdh.keygen.x25519  900 us  1 call, by ecdh.derive",
        "  instructions  100 us  10.0% of it",
    ]
    assert "  receive.EncryptedExtensions  7.00 us  own figure" in lines
    start = lines.index("  receive.ServerHello  no cost  lacks")
    assert lines[start + 1] == "  hkdf.sha-256"
    assert "  sign  45.0 ms  its primitive" in lines
    assert "  send.Finished  no cost  no figure and no recipe" in lines
    assert '  [[primitive]] name = "hkdf.sha-256"' in lines
    assert "server xeon-2-5-ghz-vm" in lines
    assert max(map(len, out.splitlines()[:40])) <= 80
    # The error of a prediction is short, and says where the whole list is.
    code, out, err = warifu("predict", *QUESTION)
    assert code == USAGE and out == ""
    assert "and " in one_line(err) and "`warifu trace --costs` lists all of them" in err
    assert len(err) < 600


def test_costs_of_each_operation_in_the_manifest(warifu: Run, board: Path, tmp_path: Path) -> None:
    complete(board)
    code, _, err = warifu("predict", *QUESTION, "--out", tmp_path / "out")
    assert code == OK, err
    manifest = json.loads((tmp_path / "out" / "predicted" / "manifest.json").read_text())
    assert [p["name"] for p in manifest["profiles"] if p["kind"] == "recipe"] == ["lib-1"]
    by_name = {cost["operation"]: cost for cost in manifest["costs"]}
    assert by_name["client.send.ClientHello"] == {
        "device": "board", "operation": "client.send.ClientHello", "source": {"recipe": "lib-1"},
        "count": 1, "mean_ns": 1_000_000.0, "remainder": 0.1,
    }  # fmt: skip
    assert by_name["client.receive.ServerHello"]["mean_ns"] == 90_000.0
    assert by_name["client.receive.ServerHello"]["remainder"] == 0.0
    assert by_name["client.receive.EncryptedExtensions"]["source"] == "own"
    assert by_name["client.sign"]["source"] == "primitive"
    assert by_name["server.sign"]["device"] == "xeon-2-5-ghz-vm"
    figures = {figure["name"]: figure for figure in manifest["figures"]}
    assert figures["lib-1 client.send.ClientHello"]["what"]["of"] == "recipe"
    assert figures["board hkdf.sha-256"]["value"] == "by hmac.sha-256"
    assert manifest["cases"][0]["evidence"] == "assumed"


def test_figure_that_leaves_its_algorithm_open(warifu: Run, board: Path) -> None:
    complete(board)
    text = board.read_text()
    board.write_text(text.replace('certificate = ["ecdsa_secp256r1", "rsa-2048"], ', "", 1))
    code, _, err = warifu("predict", *QUESTION)
    assert code == USAGE
    assert 'add when = { certificate = "ecdsa_secp256r1" } to it' in one_line(err)


@pytest.mark.parametrize("device", ["nrf52840", "rp2040", "stm32g071", "esp32"])
@pytest.mark.parametrize("costs", [(), ("--costs",)])
def test_traces_of_shipped_devices_fit_80_columns(
    warifu: Run, device: str, costs: tuple[str, ...]
) -> None:
    ends = ("--device", device, "--server", "xeon-2-5-ghz-vm", "--link", "nb-iot")
    suites = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
    for choices in (("--stack", "https/tls1.2"), *(("--cipher-suite", suite) for suite in suites)):
        code, out, err = warifu("trace", *ends, *choices, *costs)
        assert code == OK, err
        assert 60 < max(map(len, out.splitlines())) <= 80, out

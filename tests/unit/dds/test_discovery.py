# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds discovery`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warifu._core import WarifuError, dds_discovery

MS = 1_000_000


@pytest.fixture(autouse=True)
def this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile of this host without P-256, whether or not the machine is calibrated."""
    file = tmp_path / "devices" / "this-host.toml"
    file.parent.mkdir()
    _, text, _ = device(1)
    without = text.replace("sign.ecdsa_secp256r1", "sign.ed25519")
    file.write_text(without.replace('"slow"', '"this-host"'))
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path))
    return file


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warifu.cli", "dds", "discovery", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(*arguments: str) -> list[dict[str, Any]]:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["tables"][0]["rows"]
    return found


def device(keygen_ms: int) -> tuple[str, str, str]:
    costs = {
        "ecdh.keygen.secp256r1": keygen_ms, "ecdh.derive.secp256r1": 2,
        "sign.ecdsa_secp256r1": 3, "verify.ecdsa_secp256r1": 4,
    }  # fmt: skip
    text = (
        'name = "slow"\ndescription = "a stand-in"\nsource = "a test"\nkind = "measured"\n'
        'idle_threshold = "5 ms"\n'
    )
    for name, ms in costs.items():
        text += f'[[primitive]]\nname = "{name}"\nwarm = "{ms} ms"\n'
    return "slow", text, "slow.toml"


def test_a_row_for_each_number_of_nodes() -> None:
    found = rows("--nodes", "2,20", "--rtt", "200 ms")
    assert [row["nodes"] for row in found] == [2, 20]
    assert [row["handshakes"] for row in found] == [1, 190]
    # By hand in crates/predict/sim/src/discovery.rs.
    assert all(row["least_ns"] == 911 * MS for row in found)
    assert all(row["most_ns"] == 1_211 * MS for row in found)


def test_without_security_two_round_trips() -> None:
    (row,) = rows("--nodes", "2", "--rtt", "0.05 s", "--plain")
    assert row["least_ns"] == row["most_ns"] == 101 * MS
    assert row["handshakes"] == 0


def test_limits_are_said() -> None:
    said = run("--nodes", "2").stdout
    assert "computing left out" in said.splitlines()[0]
    assert "Simulated" in said
    assert "Authentication takes no time here" in said
    assert "this-host is not used: " in said
    assert "xeon-2-5-ghz-vm is not used: " in said
    plain = run("--nodes", "2", "--plain").stdout
    assert "left out" not in plain
    assert "is not used" not in plain


def test_this_host_is_taken_if_it_has_the_primitives(this_host: Path) -> None:
    _, text, _ = device(1)
    this_host.write_text(text.replace('"slow"', '"this-host"'))
    (row,) = rows("--nodes", "2")
    assert row["device"] == "this-host"
    assert row["least_ns"] == dds_discovery(2, 0, secured=True, device=device(1))[0]
    assert "on this-host" in run("--nodes", "2").stdout.splitlines()[0]


def test_more_nodes_take_a_raspberry_pi_longer() -> None:
    few, many = rows("--nodes", "2,20", "--device", "raspberry-pi-3")
    assert many["least_ns"] > few["least_ns"] + 50 * MS
    assert many["most_ns"] > few["most_ns"] + 50 * MS


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--nodes", "1"], "expected numbers from 2 to 1000"),
        (["--nodes", "2,,3"], "expected numbers from 2 to 1000"),
        (["--rtt", "fast"], "expected a time up to 60 s"),
        (["--rtt", "61 s"], "expected a time up to 60 s"),
        (["--device", "nobody"], "nobody is no device profile"),
    ],
)
def test_mistake_in_the_command_line(arguments: list[str], expected: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.replace("│", " ").split())


def test_authentication_takes_the_device_s_time_at_each_node_in_turn() -> None:
    least, _, _ = dds_discovery(2, 0, secured=True, device=device(1))
    # Key pair; certificate, key pair, signature; three verified, the secret, a signature.
    assert least == (111 + 1 + (4 + 1 + 3) + (3 * 4 + 2 + 3)) * MS
    of_nodes = [dds_discovery(n, 0, secured=True, device=device(1))[0] for n in (2, 5, 10, 20)]
    assert of_nodes == sorted(of_nodes)
    assert of_nodes[3] > 5 * (of_nodes[0] - 111 * MS)
    slower, _, _ = dds_discovery(2, 0, secured=True, device=device(11))
    assert slower == least + 2 * 10 * MS


def test_device_without_the_primitives_is_refused() -> None:
    name, text, file = device(1)
    without = text.replace("sign.ecdsa_secp256r1", "sign.ed25519")
    expected = r"slow.toml: primitive has no cost for sign.ecdsa_secp256r1: calibrate"
    with pytest.raises(WarifuError, match=expected):
        dds_discovery(2, 0, secured=True, device=(name, without, file))


def test_numbers_beyond_all_use_are_refused() -> None:
    for nodes, rtt_ns in ((1, 0), (1_001, 0), (2, 61 * 10**9)):
        with pytest.raises(ValueError, match="expected"):
            dds_discovery(nodes, rtt_ns, secured=True)

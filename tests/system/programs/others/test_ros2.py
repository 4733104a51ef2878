# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Plain ROS 2 from its wheels, locked by hash: the probe's two nodes. `make programs` runs them.

WARIFU_ROS2_PYTHON names a Python that has them already.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import dds_probes, needs
from support.dds_probes import MARK

INSTALL_SECONDS = 480
MESSAGES = 30
PROBE = dds_probes.FOLDER / "ros2.py"
LOCK = Path(__file__).with_name("ros2.lock")

pytestmark = [needs.root, needs.program("ip"), needs.program("tcpdump"), needs.python(3, 11)]


@pytest.fixture(scope="module")
def ros2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with ROS 2."""
    if given := os.environ.get("WARIFU_ROS2_PYTHON"):
        return Path(given)
    folder = tmp_path_factory.mktemp("ros2")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # One of them has no wheel, and is built with what the environment has.
    subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
         "--require-hashes", "--no-build-isolation", "-r", LOCK],
        check=True, timeout=INSTALL_SECONDS,
    )  # fmt: skip
    return folder / "bin" / "python"


def test_two_nodes_answer_each_other_in_plain_text(ros2: Path, tmp_path: Path) -> None:
    common = ["--bytes", "256", "--count", str(MESSAGES), "--timeout", "40"]
    samples = tmp_path / "samples"
    pair = dds_probes.run(
        [ros2, PROBE, "ping", *common, "--samples", samples],
        [ros2, PROBE, "pong", *common],
        capture=tmp_path / "wire.pcap",
        seconds=180,
    )
    assert pair.code == 0, pair.err
    ping, pong = pair.reports["ping"], pair.reports["pong"]
    assert ping["sent"] == ping["received"] == pong["received"] == MESSAGES
    assert len(samples.read_text().splitlines()) == MESSAGES
    assert 0 < pong["one_way_ns"]["median"] < ping["round_trip_ns"]["maximum"]
    # The wheels' Fast DDS has no DDS Security, and nothing goes by shared memory.
    assert (tmp_path / "wire.pcap").read_bytes().count(MARK) >= 2 * MESSAGES


def test_a_node_alone_says_that_nobody_matched(ros2: Path) -> None:
    done = subprocess.run(
        [ros2, PROBE, "ping", "--timeout", "2", "--topic", "nobody_is_here"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "nobody matched within 2 s" in done.stderr

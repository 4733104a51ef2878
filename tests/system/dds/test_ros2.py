# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Plain ROS 2 from its wheels on PyPI, in an environment of their own: the probe's two nodes.

The wheels (some 100 with what they need) are installed for this test alone; WARIFU_ROS2_PYTHON
names a Python that has them already.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support import dds_probes, needs
from support.dds_probes import MARK

WHEELS = ("ros-kilted-rclpy", "ros-kilted-rmw-fastrtps-cpp", "ros-kilted-std-msgs")
INSTALL_SECONDS = 480
MESSAGES = 30
PROBE = dds_probes.FOLDER / "ros2.py"

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.python(3, 11),
    needs.found("installed()", "ROS 2's wheels, which pip did not get from the package index"),
]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="warifu-ros2-")  # goes with this process


@functools.cache
def installed() -> Path | None:
    """A Python with ROS 2; None where its wheels cannot be had, and pip's words are shown."""
    if given := os.environ.get("WARIFU_ROS2_PYTHON"):
        return Path(given)
    folder = Path(_folder().name)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*pip, "--retries", "1", "--timeout", "20", *WHEELS],
            capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"ROS 2's wheels were not there after {INSTALL_SECONDS} s")
        return None
    if done.returncode != 0:
        print(f"ROS 2's wheels cannot be installed: {done.stderr.strip()}")
        return None
    return folder / "bin" / "python"


@pytest.fixture
def ros2() -> Path:
    """A Python with ROS 2."""
    python = installed()
    assert python is not None
    return python


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

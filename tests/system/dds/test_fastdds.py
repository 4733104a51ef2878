# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Our plugin in Cyclone DDS, and Fast DDS with its builtin one: the probes send each other samples.

Cyclone begins the handshake, and sends its optional fields: the other way round the builtin plugins
do not understand each other either (Cyclone DDS 0.10 with Fast DDS 2.9, `Begin handshake reply
failed`). Who begins follows from the hash of the subjects' names: /cyclone comes before /fast.
"""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest

from support import dds_matrix, dds_probes, needs
from support.cyclone import End, ours
from support.dds_matrix import GOVERNANCE, all_came_back, ping_pong
from support.dds_probes import MARK
from warifu.dds.keystore import create

HEADERS = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

pytestmark = [
    needs.root,
    needs.program("idlc"),
    needs.program("g++"),
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.file(HEADERS, "libfastrtps-dev"),
]

GOVERNANCES = (
    "as-sros2",
    "all-signed",
    "all-encrypted",
    "signed-by-origin",
    "encrypted-by-origin",
    "submessages-by-origin",
    "messages-by-origin",
    "messages-alone",
    "samples-and-submessages",
)
"""Where the builtin plugins understand each other. They do not where samples or submessages alone
are protected (data or metadata ENCRYPT, all else NONE)."""


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("probes")
    names = {"cyclone": "cyclonedds-probe", "fastdds": "fastdds-probe"}
    return {which: dds_probes.build(folder, name) for which, name in names.items()}


@pytest.mark.parametrize("name", GOVERNANCES)
def test_ours_talks_with_fast_dds(probes: dict[str, Path], tmp_path: Path, name: str) -> None:
    seen = []
    for cell in dds_matrix.with_fast_dds(probes, tmp_path, name):
        assert cell.works, f"{cell.role}:\n{cell.said}"
        assert cell.problems == (), f"{cell.role}:\n{cell.said}"
        seen.append(cell.role)
    assert seen == ["control pings", "control pongs", "pings", "pongs"]


def test_the_probes_talk_in_plain_text(probes: dict[str, Path], tmp_path: Path) -> None:
    pair, wire = ping_pong(probes, tmp_path / "plain", End(), None, "cyclone")
    assert all_came_back(pair), pair.err
    assert MARK in wire


@pytest.mark.parametrize("probe", ["cyclone", "fastdds"])
def test_a_probe_names_the_option_that_is_wrong(probes: dict[str, Path], probe: str) -> None:
    done = subprocess.run(
        [probes[probe], "ping", "--bytes", "15"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--bytes is 15: expected a number from 16 to 8388608" in done.stderr


def test_samples_alone_are_read_by_both_where_the_builtin_plugin_fails(
    probes: dict[str, Path], tmp_path: Path
) -> None:
    governance = GOVERNANCE["samples-alone"]
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/cyclone", "/fast"], governance, now=now)
    for pings in ("cyclone", "fastdds"):
        end = End(made["/cyclone"], ours())
        pair, wire = ping_pong(probes, tmp_path / pings, end, made["/fast"], pings)
        assert all_came_back(pair), f"{pings} pings:\n{pair.out}\n{pair.err}"
        assert MARK not in wire

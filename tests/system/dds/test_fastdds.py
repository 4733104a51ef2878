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
from support.cyclone import BUILTIN, End, ours
from support.dds_matrix import (
    CYCLONE,
    FAST_DDS,
    GOVERNANCE,
    NONE,
    ROUND_TRIPS,
    SIGN,
    all_came_back,
    ping_pong,
)
from support.dds_nonces import datagrams, samples
from support.dds_probes import MARK
from warifu.dds import counters
from warifu.dds.governance import Basic, Governance, Protection
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
    "submessages-alone",
    "submessages-and-nothing-else",
)
"""Where the builtin plugins understand each other. They do not where samples alone are protected
(data ENCRYPT, all else NONE)."""

SIGNS_OF_LIFE, PROTECTED_SIGNS_OF_LIFE = bytes.fromhex("000200c2"), bytes.fromhex("ff0200c2")
"""Writers of ParticipantMessageData (DDS Security 1.1, section 7.3.7.1)."""


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


def test_keys_of_128_bit(probes: dict[str, Path], tmp_path: Path) -> None:
    for cell in dds_matrix.with_fast_dds(probes, tmp_path, "as-sros2", key_bits=128):
        assert cell.works, f"{cell.role}:\n{cell.said}"
        assert cell.problems == (), f"{cell.role}:\n{cell.said}"


@pytest.mark.parametrize("plugin", ["builtin", "ours"])
@pytest.mark.parametrize("liveliness", [SIGN, NONE])
def test_protected_signs_of_life(
    probes: dict[str, Path], tmp_path: Path, plugin: str, liveliness: Protection
) -> None:
    """Fast DDS's. Cyclone DDS 0.10.2 sends its own as if liveliness were not protected, with its
    builtin plugin as with ours, which is not asked about them."""
    governance = Governance(Basic.ENCRYPT, SIGN, NONE, SIGN, liveliness)
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/cyclone", "/fast"], governance, now=now)
    file = tmp_path / "counters.jsonl"
    counted = ((counters.VARIABLE, str(file)),) if plugin == "ours" else ()
    end = End(made["/cyclone"], ours() if plugin == "ours" else BUILTIN, counted)
    often = ("--lease-ms", "500", "--period-us", "10000")
    pair, wire = ping_pong(probes, tmp_path / "run", end, made["/fast"], "cyclone", arguments=often)
    assert all_came_back(pair), f"{pair.out}\n{pair.err}"
    found = [one for message in datagrams(wire) for one in samples(message)]
    of_life = {
        (one.vendor, one.writer, one.is_signed)
        for one in found
        if one.writer in (SIGNS_OF_LIFE, PROTECTED_SIGNS_OF_LIFE)
    }
    cyclones = (CYCLONE, SIGNS_OF_LIFE, False)
    if liveliness == NONE:
        assert of_life == {(FAST_DDS, SIGNS_OF_LIFE, False), cyclones}
    else:
        assert of_life == {(FAST_DDS, PROTECTED_SIGNS_OF_LIFE, True), cyclones}
    if plugin == "ours":
        counts = counters.by_site(counters.read(file))
        assert counts["decode_datawriter_submessage"].calls >= ROUND_TRIPS
        # Submessages may come before their keys: they are sent again.
        refused = {
            (one.site, cause)
            for one in counts.values()
            for cause, count in one.refused.items()
            if count
        }
        assert refused <= {("preprocess_secure_submsg", "unknown_key")}


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

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

from support import cyclone, dds_probes, needs
from support.cyclone import BUILTIN, End, ours
from support.dds_probes import MARK, Pair
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

HEADERS = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

pytestmark = [
    needs.root,
    needs.program("idlc"),
    needs.program("g++"),
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.file(HEADERS, "libfastrtps-dev"),
]

SIGN, ENCRYPT, NONE = Protection.SIGN, Protection.ENCRYPT, Protection.NONE
SIGN_ORIGIN = Protection.SIGN_WITH_ORIGIN_AUTHENTICATION
ENCRYPT_ORIGIN = Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION

GOVERNANCE = {
    "as-sros2": Governance(),
    "all-signed": Governance(Basic.SIGN, SIGN, SIGN, SIGN, SIGN),
    "all-encrypted": Governance(Basic.ENCRYPT, ENCRYPT, ENCRYPT, ENCRYPT, ENCRYPT),
    "signed-by-origin": Governance(Basic.SIGN, SIGN_ORIGIN, SIGN_ORIGIN, SIGN_ORIGIN, SIGN_ORIGIN),
    "submessages-by-origin": Governance(
        Basic.ENCRYPT, ENCRYPT_ORIGIN, NONE, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN
    ),
    "messages-by-origin": Governance(Basic.ENCRYPT, ENCRYPT, ENCRYPT_ORIGIN, ENCRYPT, ENCRYPT),
    "messages-alone": Governance(Basic.NONE, NONE, ENCRYPT, NONE, NONE),
}
"""Where the builtin plugins understand each other. They do not where samples or submessages alone
are protected (data or metadata ENCRYPT, all else NONE)."""

ROUND_TRIPS = 200


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("probes")
    names = {"cyclone": "cyclonedds-probe", "fastdds": "fastdds-probe"}
    return {which: dds_probes.build(folder, name) for which, name in names.items()}


def talk(
    probes: dict[str, Path],
    folder: Path,
    cyclone_end: End,
    fast: Enclave | None,
    pings: str,
) -> tuple[Pair, bytes]:
    """A ping and its pong, and what was captured meanwhile."""
    folder.mkdir()
    config = folder / "cyclone.xml"
    # By configuration: no property of a participant's asks for the optional fields.
    config.write_text(cyclone.configuration(cyclone_end, dds_probes.INTERFACE))
    enclave: dict[str, list[str | Path]] = {
        "cyclone": [],
        "fastdds": [] if fast is None else ["--enclave", fast.folder],
    }
    common = ["--bytes", "256", "--count", str(ROUND_TRIPS), "--timeout", "20"]
    pongs = "fastdds" if pings == "cyclone" else "cyclone"
    pair = dds_probes.run(
        [probes[pings], "ping", *common, *enclave[pings]],
        [probes[pongs], "pong", *common, *enclave[pongs]],
        capture=folder / "wire.pcap",
        environment={
            "CYCLONEDDS_URI": f"file://{config}",
            "LD_LIBRARY_PATH": str(cyclone.plugins()),
        },
    )
    return pair, (folder / "wire.pcap").read_bytes()


def works(pair: Pair) -> bool:
    """All came back."""
    ping = pair.reports.get("ping", {})
    return pair.code == 0 and ping.get("sent") == ping.get("received") == ROUND_TRIPS


@pytest.mark.parametrize("name", GOVERNANCE)
def test_ours_talks_with_fast_dds(probes: dict[str, Path], tmp_path: Path, name: str) -> None:
    governance = GOVERNANCE[name]
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/cyclone", "/fast"], governance, now=now)
    for pings in ("cyclone", "fastdds"):
        for plugin in (BUILTIN, ours()):
            end = End(made["/cyclone"], plugin)
            which = "control" if plugin == BUILTIN else "ours"
            folder = tmp_path / f"{pings}-{which}"
            pair, wire = talk(probes, folder, end, made["/fast"], pings)
            assert works(pair), f"{which}, {pings} pings:\n{pair.out}\n{pair.err}"
            kinds = {governance.data, governance.metadata, governance.rtps}
            is_encrypted = any(kind.startswith("ENCRYPT") for kind in kinds)
            assert (MARK in wire) != is_encrypted


def test_the_probes_talk_in_plain_text(probes: dict[str, Path], tmp_path: Path) -> None:
    pair, wire = talk(probes, tmp_path / "plain", End(), None, "cyclone")
    assert works(pair), pair.err
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
    governance = Governance(Basic.ENCRYPT, NONE, NONE, NONE, NONE)
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/cyclone", "/fast"], governance, now=now)
    for pings in ("cyclone", "fastdds"):
        end = End(made["/cyclone"], ours())
        pair, wire = talk(probes, tmp_path / pings, end, made["/fast"], pings)
        assert works(pair), f"{pings} pings:\n{pair.out}\n{pair.err}"
        assert MARK not in wire

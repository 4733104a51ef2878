# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Our plugin in Cyclone DDS, and Fast DDS with its builtin one: the probes send each other samples.

Cyclone begins the handshake, and sends its optional fields: the other way round the builtin plugins
do not understand each other either (Cyclone DDS 0.10 with Fast DDS 2.9, `Begin handshake reply
failed`). Who begins follows from the hash of the subjects' names: /cyclone comes before /fast.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import cyclone, needs
from support.cyclone import BUILTIN, PLAIN_SAMPLE, End, ours
from support.paths import ROOT
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

PROBES = ROOT / "dds" / "probes"
HEADERS = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

pytestmark = [
    needs.root,
    needs.program("idlc"),
    needs.program("g++"),
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

SECONDS = "20"
"""At most: who is not ready for an announcement waits for the next, some seconds."""
ROUND_TRIPS = "200"


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    with cyclone.network() as name:
        yield name


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the two probes."""
    folder = tmp_path_factory.mktemp("probes")
    for command in (
        ["idlc", "-l", "c", PROBES / "sample.idl"],
        ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", PROBES / "cyclone.c", "sample.c",
         "-lddsc", "-o", "cyclone"],
        ["g++", "-O1", "-std=c++17", "-Wall", "-Wextra", "-Werror", PROBES / "fastdds.cpp",
         "-lfastrtps", "-lfastcdr", "-o", "fastdds"],
    ):  # fmt: skip
        subprocess.run(command, cwd=folder, check=True)
    return folder


class Talk:
    """A ping and its pong, and what was captured meanwhile."""

    def __init__(
        self,
        network: str,
        probes: Path,
        folder: Path,
        cyclone_end: End,
        enclave: Enclave,
        pings: str,
    ) -> None:
        folder.mkdir()
        config = folder / "cyclone.xml"
        config.write_text(cyclone.configuration(cyclone_end))
        commands = {
            "cyclone": lambda *arguments: [probes / "cyclone", *arguments],
            "fastdds": lambda *arguments: [probes / "fastdds", *arguments, enclave.folder],
        }
        pongs = "fastdds" if pings == "cyclone" else "cyclone"
        with cyclone.captured(network, folder / "lo.pcap"):
            pong, ping = (
                cyclone.start(network, config, folder / f"{name}.log", commands[name](*arguments))
                for name, arguments in (
                    (pongs, ("pong", SECONDS)),
                    (pings, ("ping", SECONDS, "256", ROUND_TRIPS)),
                )
            )
            self.code = ping.wait(60)
            pong.kill()
            pong.wait()
        self.said = {
            name: (folder / f"{name}.log").read_text(errors="replace") for name in commands
        }
        self.wire = (folder / "lo.pcap").read_bytes()
        lines = [line for line in self.said[pings].splitlines() if line.startswith("{")]
        self.end = json.loads(lines[-1]) if lines else {"sent": 0, "received": 0}

    @property
    def works(self) -> bool:
        """All came back, but for a few that were sent before both ends had matched."""
        received, sent = self.end["received"], self.end["sent"]
        return self.code == 0 and received == int(ROUND_TRIPS) and sent <= received + 20


@pytest.mark.parametrize("name", GOVERNANCE)
def test_ours_talks_with_fast_dds(network: str, probes: Path, tmp_path: Path, name: str) -> None:
    governance = GOVERNANCE[name]
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/cyclone", "/fast"], governance, now=now)
    for pings in ("cyclone", "fastdds"):
        for plugin in (BUILTIN, ours()):
            end = End(made["/cyclone"], plugin)
            which = "control" if plugin == BUILTIN else "ours"
            folder = tmp_path / f"{pings}-{which}"
            talk = Talk(network, probes, folder, end, made["/fast"], pings)
            assert talk.works, f"{which}, {pings} pings, {talk.end}:\n{talk.said}"
            kinds = {governance.data, governance.metadata, governance.rtps}
            is_encrypted = any(kind.startswith("ENCRYPT") for kind in kinds)
            assert (PLAIN_SAMPLE in talk.wire) != is_encrypted


def test_the_probes_talk_in_plain_text(network: str, probes: Path, tmp_path: Path) -> None:
    (tmp_path / "cyclone.xml").write_text(cyclone.configuration(End()))
    with cyclone.captured(network, tmp_path / "lo.pcap"):
        pong, ping = (
            cyclone.start(network, tmp_path / "cyclone.xml", tmp_path / f"{name}.log", command)
            for name, command in (
                ("pong", [probes / "fastdds", "pong", SECONDS]),
                ("ping", [probes / "cyclone", "ping", SECONDS, "256", ROUND_TRIPS]),
            )
        )
        assert ping.wait(60) == 0
        pong.kill()
        pong.wait()
    assert PLAIN_SAMPLE in (tmp_path / "lo.pcap").read_bytes()


@pytest.mark.parametrize("probe", ["cyclone", "fastdds"])
def test_a_probe_says_how_it_is_used(probes: Path, probe: str) -> None:
    done = subprocess.run([probes / probe, "ping"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: {probe} ping SECONDS PAYLOAD_BYTES COUNT")

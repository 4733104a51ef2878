# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Topics of one participant's under AEADs of their own: two Cyclone processes with our plugin."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.cyclone import ours
from support.dds_probes import MARK, Pair
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.program("idlc"),
]

ENCRYPTED = {"AEGIS-128L": b"wa\x01\x01", "Ascon-AEAD128": b"wa\x03\x01"}
"""Transformation kinds (docs/reference/dds.md)."""
COUNT = 50
BOTH = Governance(
    Basic.ENCRYPT, Protection.ENCRYPT, Protection.NONE, Protection.ENCRYPT, Protection.ENCRYPT
)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dds_probes.build(tmp_path_factory.mktemp("probes"), "cyclonedds-probe")


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Enclave, Enclave]:
    keystore = tmp_path_factory.mktemp("keystore") / "keys"
    now = datetime.datetime.now(datetime.UTC)
    made = create(keystore, ["/asks", "/answers"], BOTH, now=now)
    return made["/asks"], made["/answers"]


def talk(
    probe: Path,
    ends: tuple[Enclave, Enclave],
    capture: Path,
    asks: tuple[str, ...],
    answers: tuple[str, ...],
) -> tuple[Pair, bytes]:
    library, init = ours()
    common = ["--count", str(COUNT), "--crypto", f"{library}:{init}", "--timeout", "6"]
    pair = dds_probes.run(
        [probe, "ping", *common, "--enclave", ends[0].folder, *asks],
        [probe, "pong", *common, "--enclave", ends[1].folder, *answers],
        capture=capture,
        environment={"LD_LIBRARY_PATH": str(cyclone.plugins())},
    )
    return pair, capture.read_bytes()


def test_each_topic_is_sent_under_its_own_aead(
    probe: Path, ends: tuple[Enclave, Enclave], tmp_path: Path
) -> None:
    chosen = ("--aead", "AEGIS-128L", "--answer-aead", "Ascon-AEAD128")
    pair, wire = talk(probe, ends, tmp_path / "wire.pcap", chosen, chosen)
    assert pair.code == 0, pair.err
    assert pair.reports["ping"]["received"] == pair.reports["pong"]["received"] == COUNT
    # Each message there, and each back: the payload, and the submessage around it.
    for kind in ENCRYPTED.values():
        assert wire.count(kind) >= 2 * COUNT
    assert MARK not in wire


def test_a_topic_without_choice_keeps_its_participants_aead(
    probe: Path, ends: tuple[Enclave, Enclave], tmp_path: Path
) -> None:
    chosen = ("--answer-aead", "Ascon-AEAD128")
    pair, wire = talk(probe, ends, tmp_path / "wire.pcap", chosen, chosen)
    assert pair.code == 0, pair.err
    assert pair.reports["ping"]["received"] == COUNT
    assert wire.count(ENCRYPTED["Ascon-AEAD128"]) >= 2 * COUNT
    assert ENCRYPTED["AEGIS-128L"] not in wire


@pytest.mark.parametrize("other", ["Ascon-AEAD128", None])
def test_a_topic_whose_ends_differ_is_not_read(
    probe: Path, ends: tuple[Enclave, Enclave], tmp_path: Path, other: str | None
) -> None:
    answers = () if other is None else ("--aead", other)
    pair, wire = talk(
        probe, ends, tmp_path / "wire.pcap", ("--aead", "AEGIS-128L"), answers
    )  # fmt: skip
    assert pair.code != 0
    assert pair.reports.get("pong", {}).get("received", 0) == 0
    theirs = "DDS:Crypto:AES_GCM_GMAC" if other is None else f"Warifu:Crypto:{other}"
    assert "of class Warifu:Crypto:AEGIS-128L, ours of " + theirs in pair.err
    assert MARK not in wire


def test_a_topic_under_an_aead_that_nobody_knows_is_not_written(
    probe: Path, ends: tuple[Enclave, Enclave], tmp_path: Path
) -> None:
    pair, wire = talk(probe, ends, tmp_path / "wire.pcap", ("--aead", "ROT-13"), ())
    # Cyclone DDS 0.10 gives the program a writer all the same, which matches nobody.
    assert pair.code != 0
    assert pair.reports.get("pong", {}).get("received", 0) == 0
    assert 'warifu.dds.aead is "ROT-13": expected one of' in pair.err
    assert MARK not in wire

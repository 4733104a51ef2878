# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The datagrams that `warifu trace` predicts are those that Cyclone DDS sends, to the byte."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.dds_sessions import Kinds, ends, rtps_lengths, traced

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.program("idlc"),
]

COUNT = 30
NONE, SIGN, ENCRYPT = "NONE", "SIGN", "ENCRYPT"
SIGN_ORIGIN, ENCRYPT_ORIGIN = (
    "SIGN_WITH_ORIGIN_AUTHENTICATION",
    "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
)

GOVERNANCE = [
    (NONE, NONE, NONE),
    (SIGN, NONE, NONE),
    (ENCRYPT, NONE, NONE),
    (NONE, SIGN, NONE),
    (NONE, ENCRYPT, NONE),
    (NONE, SIGN_ORIGIN, NONE),
    (NONE, ENCRYPT_ORIGIN, NONE),
    (NONE, NONE, SIGN),
    (NONE, NONE, ENCRYPT),
    (NONE, NONE, SIGN_ORIGIN),
    (NONE, NONE, ENCRYPT_ORIGIN),
    (ENCRYPT, ENCRYPT, SIGN),
    (ENCRYPT, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN),
]
"""data, metadata, rtps."""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dds_probes.build(tmp_path_factory.mktemp("probes"), "cyclonedds-probe")


def predicted(stack: str, kinds: Kinds | None, sample_bytes: int) -> int:
    """By the emulation, B a datagram."""
    said = traced(stack, kinds, sample_bytes)
    found = re.findall(r"^all +(?:client|server) +1 +1 +(\d+) ", said, re.MULTILINE)
    assert len(found) == 2
    assert found[0] == found[1]
    return int(found[0])


def seen(
    probe: Path,
    folder: Path,
    kinds: Kinds | None,
    sample_bytes: int,
    aead: str | None = None,
) -> Counter[int]:
    """Lengths of all RTPS datagrams of a session of `COUNT` samples and their answers."""
    folder.mkdir()
    of_asks, of_answers = ends(folder, kinds, aead)
    common = ["--bytes", str(sample_bytes), "--count", str(COUNT), "--timeout", "8"]
    pair = dds_probes.run(
        [probe, "ping", *common, "--period-us", "5000", *of_asks],
        [probe, "pong", *common, *of_answers],
        capture=folder / "wire.pcap",
        environment={"LD_LIBRARY_PATH": str(cyclone.plugins())},
    )
    assert pair.code == 0, pair.err
    assert pair.reports["ping"]["received"] == COUNT
    return Counter(length for _, length in rtps_lengths((folder / "wire.pcap").read_bytes()))


@pytest.mark.parametrize("kinds", GOVERNANCE, ids="-".join)
def test_datagram_of_each_kind_of_protection(probe: Path, tmp_path: Path, kinds: Kinds) -> None:
    length = predicted("dds/builtin", kinds, 61)
    found = seen(probe, tmp_path / "run", kinds, 61)
    # There and back; discovery and acknowledgements have other lengths, or come a few times.
    assert 2 * COUNT <= found[length] <= 2 * COUNT + 8, f"{length}: {found.most_common(6)}"


@pytest.mark.parametrize("aead", cyclone.INIT)
def test_datagram_of_each_aead(probe: Path, tmp_path: Path, aead: str) -> None:
    kinds = (ENCRYPT, ENCRYPT, ENCRYPT_ORIGIN)
    length = predicted(f"dds/warifu/{aead}", kinds, 100)
    found = seen(probe, tmp_path / "run", kinds, 100, aead)
    assert 2 * COUNT <= found[length] <= 2 * COUNT + 8, f"{length}: {found.most_common(6)}"


@pytest.mark.parametrize("sample_bytes", [16, 17, 64, 1000, 13432])
def test_datagram_of_each_length_in_plain_text(
    probe: Path, tmp_path: Path, sample_bytes: int
) -> None:
    length = predicted("dds/none", None, sample_bytes)
    found = seen(probe, tmp_path / "run", None, sample_bytes)
    assert 2 * COUNT <= found[length] <= 2 * COUNT + 8, f"{length}: {found.most_common(6)}"


def test_longest_encrypted_sample_goes_in_one_piece_and_no_longer_one(
    probe: Path, tmp_path: Path
) -> None:
    kinds = (ENCRYPT, NONE, NONE)
    length = predicted("dds/builtin", kinds, 13432)
    assert seen(probe, tmp_path / "longest", kinds, 13432)[length] >= 2 * COUNT
    # The next goes in two parts, each encrypted.
    assert predicted("dds/builtin", kinds, 13433) > length + 44
    # The next would be 4 B longer, if it went in one piece.
    assert seen(probe, tmp_path / "longer", kinds, 13436)[length + 4] < COUNT

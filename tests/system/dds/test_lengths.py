# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The datagrams that `warifu trace` predicts are those that Cyclone DDS sends, to the byte."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.dds_sessions import Kinds, ends

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
    names = ("data", "metadata", "rtps")
    settings = {"pattern.response_body": f"{sample_bytes} B"} | {
        f"stack.{name}_protection": kind for name, kind in zip(names, kinds or (), strict=False)
    }
    command = [sys.executable, "-m", "warifu.cli", "trace", "--stack", stack]
    # Profiles that are shipped: of a trace they are but names.
    for name, value in (settings | {"device": "gr-peach", "server": "gr-peach"}).items():
        command += ["--set", f"{name}={value}" if " " not in value else f'{name}="{value}"']
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
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
    return Counter(lengths((folder / "wire.pcap").read_bytes()))


def lengths(capture: bytes) -> Iterator[int]:
    """Those of the RTPS messages in a capture of Ethernet (pcap-savefile(5)), as UDP's headers have
    them: IP may carry one in several packets, of which the first counts."""
    at = 24
    while at + 16 <= len(capture):
        (kept,) = struct.unpack_from("<I", capture, at + 8)
        frame = capture[at + 16 : at + 16 + kept]
        at += 16 + kept
        udp = frame[14 + 4 * (frame[14] & 15) :]
        if frame[12:14] == b"\x08\x00" and udp[8:12] == b"RTPS":
            (length,) = struct.unpack_from(">H", udp, 4)
            yield length - 8


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

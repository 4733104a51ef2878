# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The datagrams of samples that go in parts are, one by one, those that `warifu trace` predicts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.dds_sessions import Kinds, ends, rtps_lengths, traced
from warifu.dds import counters

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.program("idlc"),
]

COUNT = 3
KIB = 1024
HEADERS = 128
"""Of each packet: more than Ethernet, IP, UDP and RTPS have in theirs."""

NONE, SIGN, ENCRYPT = "NONE", "SIGN", "ENCRYPT"
ORIGIN = "ENCRYPT_WITH_ORIGIN_AUTHENTICATION"

GOVERNANCE: dict[str, Kinds | None] = {
    "plain": None,
    "data": (ENCRYPT, NONE, NONE),
    "data-metadata": (ENCRYPT, ENCRYPT, NONE),
    "sros2": (ENCRYPT, ENCRYPT, SIGN),
    "rtps": (NONE, NONE, ENCRYPT),
    "origin": (ENCRYPT, ORIGIN, ORIGIN),
}
"""data, metadata, rtps; None without security."""

SAMPLES = {13_433: 1, 50 * KIB: 4, 150 * KIB: 12, 1024 * KIB: 78}
"""Datagrams by length, B: the first and the last hold two parts in their only or last one."""

EDGES = (
    ("plain", 14_548),
    ("plain", 14_549),
    ("plain", 14_580),
    ("plain", 14_581),
    ("data-metadata", 14_236),
    ("data-metadata", 14_240),
    ("sros2", 14_324),
    ("sros2", 14_328),
    ("rtps", 14_552),
    ("rtps", 14_584),
)
"""Where the last part, or the heartbeat behind it, finds no room in a datagram any more."""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dds_probes.build(tmp_path_factory.mktemp("probes"), "cyclonedds-probe")


def predicted(stack: str, kinds: Kinds | None, sample_bytes: int) -> tuple[list[int], list[int]]:
    """Lengths of the datagrams there and of those back, B, in their order."""
    said = traced(stack, kinds, sample_bytes)
    there = re.findall(r"^ +(?:DATA|HEARTBEAT)\S*.* (\d+) \+ (\d+) -->$", said, re.MULTILINE)
    back = re.findall(r"^ +<-- (?:DATA|HEARTBEAT)\S*.* (\d+) \+ (\d+)$", said, re.MULTILINE)
    of_there, of_back = (
        [int(content) + int(more) for content, more in found] for found in (there, back)
    )
    assert of_there
    return of_there, of_back


def seen(
    probe: Path, folder: Path, kinds: Kinds | None, sample_bytes: int, aead: str | None = None
) -> tuple[list[int], list[int]]:
    """Lengths of the datagrams there and of those back in a session of `COUNT` samples."""
    folder.mkdir()
    of_asks, of_answers = ends(folder, kinds, aead)
    common = ["--bytes", str(sample_bytes), "--count", str(COUNT), "--timeout", "20"]
    pair = dds_probes.run(
        [probe, "ping", *common, "--period-us", "20000", *of_asks],
        [probe, "pong", *common, *of_answers],
        capture=folder / "wire.pcap",
        snaplen=HEADERS,
        environment={
            "LD_LIBRARY_PATH": str(cyclone.plugins()),
            counters.VARIABLE: str(folder / "plugin.jsonl"),
        },
    )
    assert pair.code == 0, pair.err
    assert pair.reports["ping"]["received"] == COUNT
    found = list(rtps_lengths((folder / "wire.pcap").read_bytes()))
    asks, answers = ([length for of, length in found if of == end] for end in (1, 2))
    return asks, answers


def agree(found: tuple[list[int], list[int]], expected: tuple[list[int], list[int]]) -> None:
    """Each direction has what was expected, `COUNT` times, in its order. Discovery,
    acknowledgements and repairs come between, and have other lengths."""
    for lengths, datagrams_expected in zip(found, expected, strict=True):
        # A heartbeat alone looks like those that come by the clock: counted, not placed.
        parts = [length for length in datagrams_expected if length > KIB]
        assert [length for length in lengths if length in parts] == parts * COUNT
        small = Counter(length for length in datagrams_expected if length <= KIB)
        for length, times in small.items():
            assert lengths.count(length) >= times * COUNT


@pytest.mark.parametrize("sample_bytes", SAMPLES)
@pytest.mark.parametrize("name", GOVERNANCE)
def test_datagrams_of_a_large_sample(
    probe: Path, tmp_path: Path, name: str, sample_bytes: int
) -> None:
    kinds = GOVERNANCE[name]
    expected = predicted("dds/none" if kinds is None else "dds/builtin", kinds, sample_bytes)
    assert expected[0] == expected[1]
    assert len(expected[0]) == SAMPLES[sample_bytes]
    agree(seen(probe, tmp_path / "run", kinds, sample_bytes), expected)


@pytest.mark.parametrize(("name", "sample_bytes"), EDGES)
def test_last_part_beside_another_or_not(
    probe: Path, tmp_path: Path, name: str, sample_bytes: int
) -> None:
    kinds = GOVERNANCE[name]
    expected = predicted("dds/none" if kinds is None else "dds/builtin", kinds, sample_bytes)
    agree(seen(probe, tmp_path / "run", kinds, sample_bytes), expected)


def test_plugin_is_called_for_each_part(probe: Path, tmp_path: Path) -> None:
    kinds = GOVERNANCE["sros2"]
    expected = predicted("dds/warifu/AEGIS-256", kinds, 50 * KIB)
    agree(seen(probe, tmp_path / "run", kinds, 50 * KIB, "AEGIS-256"), expected)
    counted = counters.by_site(counters.read(tmp_path / "run" / "plugin.jsonl"))
    # Four parts, from both ends.
    calls = 4 * 2 * COUNT
    for site in ("encode_serialized_payload", "decode_serialized_payload"):
        assert counted[site].calls == calls
        assert sum(counted[site].refused.values()) == 0
    # Parts and their heartbeats; other submessages and messages come beside.
    assert counted["encode_datawriter_submessage"].calls >= 2 * calls
    assert counted["encode_rtps_message"].calls >= calls

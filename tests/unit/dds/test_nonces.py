# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The reader of crypto headers that the soak test trusts: it finds what is wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from support.dds_nonces import Header, Nonces, datagrams, headers

PREFIX = bytes(range(12))
RTPS = b"RTPS\x02\x01\x01\x10" + PREFIX
KIND = bytes([0, 0, 0, 4])


def submessage(kind: int, content: bytes, flags: int = 1) -> bytes:
    return struct.pack("<BBH", kind, flags, len(content)) + content


def crypto(session: int, count: int, key: int = 7) -> bytes:
    return KIND + struct.pack(">IIQ", key, session, count)


def encrypted(session: int, count: int, text: bytes = b"c" * 32) -> bytes:
    body = submessage(0x30, struct.pack(">I", len(text)) + text)
    return submessage(0x31, crypto(session, count)) + body + submessage(0x32, bytes(20))


def data(session: int, count: int) -> bytes:
    """A DATA submessage with inline QoS, whose payload is encrypted."""
    qos = struct.pack("<HHIHH", 0x70, 4, 0, 1, 0)
    payload = crypto(session, count, key=8) + struct.pack(">I", 16) + bytes(16) + bytes(20)
    head = struct.pack("<HHIIiI", 0, 16, 0, 0, 0, 1)
    return submessage(0x15, head + qos + payload, flags=1 | 2 | 4)


def capture(*messages: bytes) -> bytes:
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    for message in messages:
        ip = b"\x45" + bytes(19)
        frame = bytes(12) + b"\x08\x00" + ip + bytes(8) + message
        file += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    return file


def found(*messages: bytes) -> list[Header]:
    return [one for message in datagrams(capture(*messages)) for one in headers(message)]


def problems(windows: Iterable[list[Header]], most_blocks: int = 1000) -> list[str]:
    nonces = Nonces(most_blocks)
    for window in windows:
        nonces.add(window)
    return nonces.problems


def test_headers_of_each_kind_are_found() -> None:
    signed = submessage(0x33, crypto(3, 9, key=1)) + data(5, 1) + submessage(0x34, bytes(20))
    one, other = found(RTPS + submessage(0x09, bytes(8)) + encrypted(2, 11), RTPS + signed)[:2]
    assert (one.site, one.session, one.count, one.key_id) == ("submessage", 2, 11, 7)
    assert one.blocks == 2 + 1, "32 octets, and one for the tag"
    assert one.sender == PREFIX
    assert (other.site, other.session, other.count, other.key_id) == ("message", 3, 9, 1)
    assert other.blocks == -(-len(data(5, 1)) // 16) + 1
    (payload,) = [header for header in found(RTPS + signed) if header.site == "payload"]
    assert (payload.session, payload.count, payload.key_id, payload.blocks) == (5, 1, 8, 2)


def test_plain_text_has_none() -> None:
    plain = struct.pack("<HHIIiI", 0, 16, 0, 0, 0, 1) + b"\x00\x01\x00\x00" + bytes(40)
    assert found(RTPS + submessage(0x15, plain, flags=5)) == []


@pytest.mark.parametrize("cut", range(0, 90, 3))
def test_what_is_cut_off_is_no_error(cut: int) -> None:
    whole = RTPS + encrypted(1, 1) + data(1, 1)
    assert len(found(whole[: len(whole) - cut])) <= 2


@pytest.mark.parametrize("length", range(1, 24))
def test_sample_that_is_shorter_than_its_head_has_no_header(length: int) -> None:
    assert found(RTPS + submessage(0x15, b"\0" * length, flags=1 | 2 | 4)) == []


def test_counts_that_go_on_are_right() -> None:
    first = found(*(RTPS + encrypted(1 + at // 50, 100 + at) for at in range(200)))
    # Threads send in another order than that of their nonces.
    first[3], first[4] = first[4], first[3]
    second = found(*(RTPS + encrypted(5, 300 + at) for at in range(50)))
    assert problems([first, second]) == []


def test_count_and_session_wrap() -> None:
    near = (1 << 64) - 2
    run = [
        RTPS + encrypted((0xFFFFFFFF + at // 2) % (1 << 32), (near + at) % (1 << 64))
        for at in range(6)
    ]
    assert problems([found(*run)]) == []


def test_same_octets_twice_are_no_second_use() -> None:
    nonces = Nonces(1000)
    nonces.add(found(RTPS + encrypted(1, 1), RTPS + encrypted(1, 1)))
    assert nonces.problems == []
    assert nonces.repeated == 1


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ([[(1, 1, b"a" * 16), (1, 1, b"b" * 16)]], "twice"),
        ([[(1, 1, b"a" * 16), (1, 9, b"b" * 16)], [(1, 9, b"c" * 16)]], "after"),
        ([[(1, 1, b"a" * 16), (2, 1, b"b" * 16)]], "in two sessions"),
        ([[(2, 1, b"a" * 16), (1, 2, b"b" * 16)]], "session -1 after 0"),
        ([[(2, 1, b"a" * 16)], [(1, 2, b"b" * 16)]], "session -1 after 0"),
        ([[(1, 1, b"a" * 8000), (1, 2, b"b" * 8001)]], "blocks or more"),
    ],
)
def test_what_is_wrong_is_said(windows: list[list[tuple[int, int, bytes]]], said: str) -> None:
    made = [found(*(RTPS + encrypted(*one) for one in window)) for window in windows]
    (problem, *_) = problems(made)
    assert said in problem
    assert "00000007" in problem


def test_a_message_longer_than_a_session_has_it_for_itself() -> None:
    assert problems([found(RTPS + encrypted(1, 1, bytes(20_000)))]) == []

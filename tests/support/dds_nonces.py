# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Crypto headers of DDS Security in a capture, and whether any nonce has been used twice.

Headers are those of payloads, submessages and RTPS messages (DDS Security 1.1, sections 7.3.6 and
9.5.3.3.4), as far as they are in plain text: inside something encrypted nothing is seen. A nonce
is a session's id and a count that goes on across sessions; that is how our plugin gives them out.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_GLOBAL, _RECORD = 24, 16
_ETHERNET, _UDP, _IPV4 = 14, 8, 0x0800
_RTPS_HEADER = 20
_DATA, _SEC_BODY, _SEC_PREFIX, _SEC_POSTFIX = 0x15, 0x30, 0x31, 0x32
_SRTPS_PREFIX, _SRTPS_POSTFIX = 0x33, 0x34
_LITTLE, _INLINE_QOS, _HAS_DATA = 1, 2, 4
_SENTINEL = 1
"""PID_SENTINEL ends inline QoS (RTPS 2.2, section 9.4.2.11)."""
_BLOCK, _FOOTER = 16, 20
_NONCES = {bytes([0, 0, 0, kind]): 12 for kind in (1, 2, 3, 4)} | {
    b"wa" + bytes([aead, mode]): length
    for aead, length in ((1, 16), (2, 32), (3, 16), (4, 15), (5, 12))
    for mode in (0, 1)
}
"""Octets by transformation kind; those that begin with "wa" are our own (docs/reference/dds.md)."""
_ENCRYPTING = {bytes([0, 0, 0, 2]), bytes([0, 0, 0, 4])} | {
    kind for kind in _NONCES if kind[:2] == b"wa" and kind[3] == 1
}


@dataclass(frozen=True)
class Header:
    """What begins something protected."""

    sender: bytes
    """The GUID prefix of the RTPS message."""
    site: str
    """`payload`, `submessage` or `message`."""
    kind: bytes
    key_id: int
    session: int
    count: int
    modulus: int
    """What the count wraps at."""
    blocks: int
    """Of 16 B, its tag among them: what its session is charged with, at least."""
    digest: int
    """Of what stands behind the nonce: the same message sent twice has the same, within a
    process."""


def datagrams(capture: bytes) -> Iterator[bytes]:
    """RTPS messages in a capture of Ethernet, which Linux's loopback is as well
    (pcap-savefile(5))."""
    order = "<" if capture[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = _GLOBAL
    while at + _RECORD <= len(capture):
        (kept,) = struct.unpack_from(f"{order}I", capture, at + 8)
        frame = capture[at + _RECORD : at + _RECORD + kept]
        at += _RECORD + kept
        if len(frame) <= _ETHERNET or struct.unpack_from(">H", frame, 12) != (_IPV4,):
            continue
        message = frame[_ETHERNET + (frame[_ETHERNET] & 15) * 4 + _UDP :]
        if message[:4] == b"RTPS":
            yield message


def headers(message: bytes) -> Iterator[Header]:
    """All that are in plain text in an RTPS message."""
    sender = message[8:_RTPS_HEADER]
    parts = list(_submessages(message))
    for number, (kind, flags, start, end) in enumerate(parts):
        if kind == _DATA:
            begin = _payload(message, flags, start, end)
            if begin is not None:
                yield from _header(message, "payload", sender, begin, None, end)
        elif kind == _SEC_PREFIX and number + 1 < len(parts):
            body, _, first, last = parts[number + 1]
            # A length stands before what is encrypted; what is signed has a header of its own.
            length = last - first + (-4 if body == _SEC_BODY else 4)
            yield from _header(message, "submessage", sender, start, length, last)
        elif kind == _SRTPS_PREFIX:
            last = next((at - 4 for what, _, at, _ in parts if what == _SRTPS_POSTFIX), end)
            yield from _header(message, "message", sender, start, last - end, last)


@dataclass(frozen=True)
class Sample:
    """A DATA submessage that can be seen: in plain text, or signed."""

    vendor: bytes
    writer: bytes
    """The entity's id, which is fixed for those that discovery and liveliness have (RTPS 2.2,
    table 9.2; DDS Security 1.1, section 7.3.7.1)."""
    is_signed: bool
    """As a submessage."""


def samples(message: bytes) -> Iterator[Sample]:
    """All that are in plain text in an RTPS message."""
    is_signed = False
    for kind, _, start, _ in _submessages(message):
        if kind in (_SEC_PREFIX, _SEC_POSTFIX):
            is_signed = kind == _SEC_PREFIX
        elif kind == _DATA:
            yield Sample(message[6:8], message[start + 8 : start + 12], is_signed)


def _submessages(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Id, flags, and where the content begins and ends."""
    at = _RTPS_HEADER
    while at + 4 <= len(message):
        kind, flags = message[at], message[at + 1]
        (length,) = struct.unpack_from("<H" if flags & _LITTLE else ">H", message, at + 2)
        end = at + 4 + length if length else len(message)
        if end > len(message):
            return
        yield kind, flags, at + 4, end
        at = end


def _payload(message: bytes, flags: int, start: int, end: int) -> int | None:
    """Where a DATA submessage's payload begins, if it has one; one that is cut off has none."""
    if not flags & _HAS_DATA or start + 4 > end:
        return None
    order = "<" if flags & _LITTLE else ">"
    (to_qos,) = struct.unpack_from(f"{order}H", message, start + 2)
    at = start + 4 + to_qos
    while flags & _INLINE_QOS and at + 4 <= end:
        parameter, length = struct.unpack_from(f"{order}HH", message, at)
        at += 4 + length
        if parameter == _SENTINEL:
            break
    return at if at < end else None


def _header(
    message: bytes, site: str, sender: bytes, at: int, length: int | None, end: int
) -> Iterator[Header]:
    """The one that begins there, if it is one: a payload in plain text has another. Without a
    length, what stands before the footer, and behind a length where it is encrypted, counts."""
    kind = message[at : at + 4]
    octets = _NONCES.get(kind)
    if octets is None or at + 8 + octets > end:
        return
    key_id, session = struct.unpack_from(">II", message, at + 4)
    count = int.from_bytes(message[at + 12 : at + 8 + octets])
    if length is None:
        is_encrypted = kind in _ENCRYPTING
        before = 8 + -(-octets // 4) * 4 + (4 if is_encrypted else 0)
        length = max(end - at - before - _FOOTER, 0)
    blocks = -(-length // _BLOCK) + 1
    modulus = 1 << 8 * (octets - 4)
    digest = hash(message[at + 8 + octets : end])
    yield Header(sender, site, kind, key_id, session, count, modulus, blocks, digest)


@dataclass
class Key:
    """What is known of one sender's key."""

    site: str
    origin: int
    """Its first count, from which others are reckoned: they wrap."""
    first_session: int
    last_count: int = -1
    last_session: int = 0
    seen: int = 0
    blocks: int = 0
    renewals_seen: int = 0
    fullest: int = 0
    """Blocks of the session of which most was seen within a capture."""


@dataclass
class Nonces:
    """Takes captures of one run, one after the other, and says what is wrong."""

    most_blocks: int
    """What one session may protect."""
    keys: dict[tuple[bytes, int], Key] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    repeated: int = 0
    """Messages that were sent, or captured, twice, octet by octet: no second use of a nonce."""

    def add(self, found: Iterable[Header]) -> None:
        """One capture's headers; all of them are later than those before."""
        by_key: dict[tuple[bytes, int], list[Header]] = defaultdict(list)
        for header in found:
            by_key[header.sender, header.key_id].append(header)
        for name, its in by_key.items():
            first = its[0]
            key = self.keys.setdefault(name, Key(first.site, first.count, first.session))
            self._add(f"{first.site} key {name[1]:08x} of {name[0].hex()}", key, its)

    def _add(self, name: str, key: Key, found: list[Header]) -> None:
        used: dict[tuple[int, int], Header] = {}
        for header in found:
            # Threads may send in another order than that in which they got their nonces.
            count = _after(header.count, key.origin, header.modulus)
            session = _after(header.session, key.first_session, 1 << 32)
            other = used.setdefault((count, session), header)
            if other is not header and other.digest == header.digest:
                self.repeated += 1
            elif other is not header:
                self.problems.append(f"{name}: nonce {session}/{count} twice")
        in_order = sorted(used)
        blocks: dict[int, int] = defaultdict(int)
        last = key.last_session
        if in_order[0][0] <= key.last_count:
            self.problems.append(f"{name}: count {in_order[0][0]} after {key.last_count}")
        for before, after in itertools.pairwise(in_order):
            if before[0] == after[0]:
                self.problems.append(f"{name}: count {after[0]} in two sessions")
        for count, session in in_order:
            if session < last:
                self.problems.append(f"{name}: session {session} after {last}")
            key.renewals_seen += session > last and key.seen > 0
            last = max(last, session)
            blocks[session] += used[count, session].blocks
            key.seen += 1
            key.blocks += used[count, session].blocks
        messages = Counter(session for _, session in in_order)
        for session, total in blocks.items():
            # One message may be longer than a session, which it then has for itself.
            if total > self.most_blocks and messages[session] > 1:
                self.problems.append(f"{name}: session {session} has {total} blocks or more")
        key.fullest = max(key.fullest, *blocks.values())
        key.last_session, key.last_count = last, in_order[-1][0]

    def busiest(self) -> Key:
        """The key whose sessions are renewed most."""
        return max(self.keys.values(), key=lambda key: key.last_session)


def _after(number: int, origin: int, modulus: int) -> int:
    """How far behind another; negative if a little before."""
    distance = (number - origin) % modulus
    return distance - modulus if distance > modulus // 2 else distance

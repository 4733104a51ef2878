# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What Warifu's cryptographic plugin counted, as it writes it when a domain ends.

A line of JSON for each function of each domain (dds/warifu-dds-crypto/src/shell/counters.rs).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warifu.files import FileRefused, read_text

VARIABLE = "WARIFU_DDS_COUNTERS"
"""Names the file that the plugin adds its lines to."""

PROTECTS = {
    "encode_serialized_payload": "payloads",
    "encode_datawriter_submessage": "writers' submessages",
    "encode_datareader_submessage": "readers' submessages",
    "encode_rtps_message": "RTPS messages",
}
"""The functions that protect something, and what."""

#: A line has some 250 B, and a domain nine of them.
_BYTES_MAX = 16_000_000
_LINE_MAX = 4096
_NUMBER_MAX = 2**64 - 1
_NUMBERS = ("process", "calls", "bytes", "time_ns")


class CountersDamaged(Exception):  # noqa: N818 - what happened, not what it is
    """A line is not what the plugin writes; the text is one line that names it."""


@dataclass(frozen=True)
class Count:
    """One function's, in one domain of a process."""

    process: int
    """Its id."""
    aead: str
    """The domain's; a topic may have another."""
    site: str
    calls: int
    bytes: int
    """Given to it: plain where it protects, protected where it reads."""
    time_ns: int
    refused: Mapping[str, int]
    """Calls by cause."""


def read(file: Path) -> list[Count]:
    """The lines of a file; none where there is no file, since no domain has ended orderly.

    Raises CountersDamaged, and OSError.
    """
    try:
        text = read_text(file, _BYTES_MAX, follow=False)
    except FileNotFoundError:
        return []
    except FileRefused as refused:
        raise CountersDamaged(str(refused)) from None
    lines = enumerate(text.splitlines(), 1)
    return [_count(line, f"{file.name}, line {number}") for number, line in lines]


def _count(line: str, where: str) -> Count:
    try:
        if len(line) > _LINE_MAX:
            raise ValueError
        row = json.loads(line)
        numbers = {name: row[name] for name in _NUMBERS}
        refused = dict(row["refused"])
        whole = all(_is_number(number) for number in (*numbers.values(), *refused.values()))
        if not (whole and isinstance(row["aead"], str) and isinstance(row["site"], str)):
            raise TypeError
    except (KeyError, RecursionError, TypeError, ValueError):
        raise CountersDamaged(
            f"{where}: is not a line of the plugin's counters: is it of another version, or was "
            "the disk full?"
        ) from None
    return Count(aead=row["aead"], site=row["site"], refused=refused, **numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _NUMBER_MAX


def by_site(counts: Iterable[Count]) -> dict[str, Count]:
    """Domains of a process put together, in the order in which they come."""
    found: dict[str, Count] = {}
    for one in counts:
        before = found.get(one.site)
        found[one.site] = one if before is None else _sum(before, one)
    return found


def _sum(a: Count, b: Count) -> Count:
    causes = [*a.refused, *(cause for cause in b.refused if cause not in a.refused)]
    refused = {cause: a.refused.get(cause, 0) + b.refused.get(cause, 0) for cause in causes}
    aead = a.aead if a.aead == b.aead else f"{a.aead}, {b.aead}"
    return Count(
        a.process, aead, a.site, a.calls + b.calls, a.bytes + b.bytes, a.time_ns + b.time_ns,
        refused,
    )  # fmt: skip

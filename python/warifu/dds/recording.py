# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads the file that a probed process leaves (dds/evp-probe/src/record.rs), which describes its
own layout. Another program wrote it: what does not fit is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu.files import FileRefused, read_bytes

_DESCRIPTION_BYTES = 4096
#: The probe's have 2 MB.
_MOST_BYTES = 16 * 1024 * 1024
_NUMBER = 8
#: Of a site; the probe has 280, eight an octave, and 64-bit times have no more than 512.
_MOST_BUCKETS = 512
#: Of functions and algorithms, all sites together, and of libraries; the probe has 128 KiB and 4.
_MOST_TEXT_BYTES = 1 << 20
#: Of one function; templates have long names.
_MOST_WORD_BYTES = 32 * 1024

PARTS = ("context", "init", "update", "final", "tag")
"""Where the time of an operation goes."""

OPERATIONS = ("encrypt", "decrypt", "mac", "sign", "verify", "random")
"""What is told apart."""

# What readers rely on, of each list of numbers that a file names.
_STANDS = {"now", "first_message", "last_message"}
_NUMBERS = {
    "pid", "begun_ns", "sites_left_out", "messages", "messages_failed", "messages_ns",
    "call_cost_ps", "call_inside_ps", "message_cost_ps", "calls", "foreign_calls", "inner_updates",
    "process_ns", "flushes",
}  # fmt: skip
_TOTALS = {"operations", "failed", "bytes", "aad_bytes", "ns", "in_message", "in_message_ns"}
_AT_SITE = {
    "class", "operations", "failed", "bytes", "aad_bytes", "ns", "in_message", "minimum_ns",
    "maximum_ns", *(f"{part}_{what}" for part in PARTS for what in ("calls", "ns")),
}  # fmt: skip
_OF_MESSAGE = {"ns", "encryptions", "macs", "randoms", "bytes", "crypto_ns"}


class RecordingDamaged(Exception):  # noqa: N818 - what happened, not what it is
    """Not what the probe writes; its text is one line."""


_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    OverflowError,
    RecursionError,
    struct.error,
)


@dataclass(frozen=True)
class Site:
    """Operations of one kind that one chain of functions began."""

    operation: str
    algorithm: str
    frames: tuple[str, ...]
    """`library!Class::function` or `library+0xoffset`, the caller of OpenSSL first."""
    numbers: Mapping[str, int]
    histogram: Sequence[int]

    @property
    def count(self) -> int:
        """Operations."""
        return self.numbers["operations"]

    @property
    def of_openssl(self) -> bool:
        """Whether OpenSSL itself called: certificates, and seeds of its random generator."""
        return self.frames[:1] != () and self.frames[0].startswith(("libcrypto", "libssl"))


@dataclass(frozen=True)
class Recording:
    """What one process did."""

    executable: str
    build: str
    swap: str
    numbers: Mapping[str, int]
    totals: Mapping[str, Mapping[str, Mapping[str, int]]]
    """By when they were taken (now, first_message, last_message), and by operation."""
    libraries: tuple[str, ...]
    sites: tuple[Site, ...]
    messages: tuple[Mapping[str, int], ...]
    """The first 16,384."""

    @property
    def name(self) -> str:
        """Of the program."""
        return Path(self.executable).name or "?"


def read(path: Path) -> Recording:
    """Reads a recording, also that of a process which still runs or was killed.

    Raises RecordingDamaged, also for what is no file, a link or too long; OSError.
    """
    try:
        return _recording(read_bytes(path, _MOST_BYTES, follow=False))
    except FileRefused as refused:
        raise RecordingDamaged(str(refused)) from None
    except _DAMAGE as error:
        raise RecordingDamaged(
            f"{path}: not a recording of this version's probe ({error}): run the command again"
        ) from None


def _recording(content: bytes) -> Recording:
    about: dict[str, Any] = json.loads(content[:_DESCRIPTION_BYTES].split(b"\0", 1)[0])
    if (about["format"], about["version"]) != ("warifu-evp-probe", 1):
        raise ValueError("of another version")
    if len(content) != about["bytes"]:
        raise ValueError(f"{len(content)} bytes instead of {about['bytes']}")
    layout = about["numbers"]
    for names, needed in (
        (layout["names"], _NUMBERS),
        (about["totals"]["stands"], _STANDS),
        (about["totals"]["classes"], set(OPERATIONS)),
        (about["totals"]["names"], _TOTALS),
        (about["sites"]["names"], _AT_SITE),
        (about["messages"]["names"], _OF_MESSAGE),
    ):
        if not all(isinstance(name, str) for name in names):
            raise ValueError("names that are no text")
        if not needed <= set(names):
            raise ValueError(f"without {', '.join(sorted(needed - set(names)))}")
    text = _text(content, about["text"])
    libraries = _text(content, about["libraries"])
    numbers = _named(content, layout["at"], layout["names"])
    return Recording(
        str(about["executable"]),
        str(about["build"]),
        str(about["swap"]),
        numbers,
        _totals(content, about["totals"]),
        tuple(filter(None, libraries.split(b"\0", 1)[0].decode(errors="replace").splitlines())),
        tuple(_sites(content, about["sites"], about["totals"]["classes"], text)),
        tuple(_messages(content, about["messages"], numbers["messages"])),
    )


def _numbers(content: bytes, at: int, count: int) -> tuple[int, ...]:
    if at < 0:
        raise ValueError("a negative place")
    return struct.unpack_from(f"<{count}Q", content, at)


def _within(content: bytes, at: int, count: int, size: int) -> None:
    if at < 0 or count < 0 or size <= 0 or at + count * size > len(content):
        raise ValueError("longer than its file")


def _text(content: bytes, layout: Any) -> bytes:  # noqa: ANN401 - as JSON has it
    at, size = layout["at"], layout["bytes"]
    if size > _MOST_TEXT_BYTES:
        raise ValueError(f"{size} bytes of text")
    _within(content, at, size, 1)
    return content[at : at + size]


def _named(content: bytes, at: int, names: Sequence[str]) -> dict[str, int]:
    return dict(zip(names, _numbers(content, at, len(names)), strict=True))


def _totals(content: bytes, layout: Any) -> dict[str, dict[str, dict[str, int]]]:  # noqa: ANN401
    at = layout["at"]
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for stand in layout["stands"]:
        totals[stand] = {}
        for operation in layout["classes"]:
            totals[stand][operation] = _named(content, at, layout["names"])
            at += _NUMBER * len(layout["names"])
    return totals


def _sites(
    content: bytes,
    layout: Any,  # noqa: ANN401 - as JSON has it
    operations: Sequence[str],
    text: bytes,
) -> list[Site]:
    sites = []
    _within(content, layout["at"], layout["count"], layout["bytes"])
    _refuse_overlaps(layout)
    depth = sum(name.startswith("frame") and name.endswith("_at") for name in layout["names"])
    words = ["algorithm", *(f"frame{level}" for level in range(depth))]
    left = _MOST_TEXT_BYTES
    for index in range(layout["count"]):
        at = layout["at"] + index * layout["bytes"]
        # A site that is being made is not counted yet.
        if _numbers(content, at, 1) == (0,):
            continue
        numbers = _named(content, at + layout["numbers_at"], layout["names"])
        histogram = _numbers(content, at + layout["histogram_at"], layout["buckets"])
        # Each has its own text (record.rs, `put`): together they are no longer than all of it.
        left -= sum(numbers[f"{word}_bytes"] for word in words)
        if left < 0:
            raise ValueError("names longer than its text")
        algorithm, *frames = (_word(text, numbers, word) for word in words)
        kind = operations[numbers["class"]]
        sites.append(Site(kind, algorithm, tuple(filter(None, frames)), numbers, histogram))
    return sites


def _refuse_overlaps(layout: Any) -> None:  # noqa: ANN401 - as JSON has it
    """A site is its key, its numbers and its histogram, in this order, and no site reads what is
    another's: so that there are no more of them than the file has room for."""
    if not 0 <= layout["buckets"] <= _MOST_BUCKETS:
        raise ValueError(f"{layout['buckets']} buckets")
    numbers_end = layout["numbers_at"] + _NUMBER * len(layout["names"])
    end = layout["histogram_at"] + _NUMBER * layout["buckets"]
    if not _NUMBER <= layout["numbers_at"] <= numbers_end <= layout["histogram_at"] <= end:
        raise ValueError("numbers of a site in the place of others")
    if end > layout["bytes"]:
        raise ValueError("a site longer than its place")


def _word(text: bytes, numbers: Mapping[str, int], name: str) -> str:
    at, size = numbers[f"{name}_at"], numbers[f"{name}_bytes"]
    if size > _MOST_WORD_BYTES:
        raise ValueError(f"a name of {size} bytes")
    return text[at : at + size].decode(errors="replace")


def _messages(content: bytes, layout: Any, seen: int) -> list[dict[str, int]]:  # noqa: ANN401
    size = _NUMBER * len(layout["names"])
    _within(content, layout["at"], layout["count"], size)
    return [
        _named(content, layout["at"] + index * size, layout["names"])
        for index in range(min(seen, layout["count"]))
    ]


def quantile_ns(histogram: Sequence[int], share: float) -> float | None:
    """The middle of the bucket that holds this share of the times; None without any. Buckets are
    an eighth of an octave, so that it is within 6 % (record.rs, `bucket`)."""
    total = sum(histogram)
    if total == 0:
        return None
    before = 0
    for index, count in enumerate(histogram):
        before += count
        if before >= share * total and count:
            return (_lowest(index) + _lowest(index + 1)) / 2
    return None


def _lowest(bucket: int) -> float:
    if bucket < 8:
        return float(bucket)
    octave, eighth = divmod(bucket, 8)
    return float((8 + eighth) << (octave - 1))

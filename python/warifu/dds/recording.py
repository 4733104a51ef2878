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

PARTS = ("context", "init", "update", "final", "tag")
"""Where the time of an operation goes."""

OPERATIONS = ("encrypt", "decrypt", "mac", "sign", "verify", "random")
"""What is told apart."""

# What readers rely on, of each list of numbers that a file names.
_STANDS = {"now", "first_message", "last_message"}
_NUMBERS = {
    "pid", "begun_ns", "sites_left_out", "messages", "messages_failed", "messages_ns",
    "call_cost_ps", "call_inside_ps", "message_cost_ps", "calls", "foreign_calls", "inner_updates",
    "process_ns",
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
        if not needed <= set(names):
            raise ValueError(f"without {', '.join(sorted(needed - set(names)))}")
    text_at, text_bytes = about["text"]["at"], about["text"]["bytes"]
    text = content[text_at : text_at + text_bytes]
    libraries = content[about["libraries"]["at"] :][: about["libraries"]["bytes"]]
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
    for index in range(layout["count"]):
        at = layout["at"] + index * layout["bytes"]
        numbers = _named(content, at + layout["numbers_at"], layout["names"])
        # A site that is being made is not counted yet.
        if _numbers(content, at, 1) == (0,):
            continue
        histogram = _numbers(content, at + layout["histogram_at"], layout["buckets"])

        def word(name: str, of: Mapping[str, int] = numbers) -> str:
            return text[of[f"{name}_at"] :][: of[f"{name}_bytes"]].decode(errors="replace")

        depth = sum(name.startswith("frame") and name.endswith("_at") for name in numbers)
        frames = tuple(filter(None, (word(f"frame{level}") for level in range(depth))))
        kind = operations[numbers["class"]]
        sites.append(Site(kind, word("algorithm"), frames, numbers, histogram))
    return sites


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

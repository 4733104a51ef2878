# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a benchmark says: times of primitives, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Code(StrEnum):
    """The kind of code behind a figure."""

    ASSEMBLY = "assembly"
    C = "c"
    HARDWARE = "hardware"


_BY_DEFINITION = "a call by"


@dataclass(frozen=True)
class Figure:
    """The time of a primitive, by its name in a profile (crates/core/model/src/primitive.rs)."""

    primitive: str
    call_ns: float
    """A call's part that does not depend on its bytes."""
    byte_ns: float = 0.0
    code: Code | None = None
    """None where nothing is known of it."""
    derived: str = ""
    """How it follows from what was measured, where it was not measured itself."""

    @property
    def is_read(self) -> bool:
        """Whether it was read, not derived; the part of a call by an algorithm's definition is
        small beside the bytes'."""
        return not self.derived or self.derived.startswith(_BY_DEFINITION)

    def at(self, count: int) -> float:
        """The time of a call with so many bytes, ns."""
        return self.call_ns + count * self.byte_ns


@dataclass(frozen=True)
class LeftOut:
    """What an output says and a profile does not take."""

    what: str
    why: str


@dataclass(frozen=True)
class Output:
    """The output of one run of a benchmark."""

    tool: str
    """`wolfCrypt benchmark`."""
    figures: tuple[Figure, ...]
    version: str | None = None
    """As the output states it."""
    library: str | None = None
    """The library whose recipes fit, as profiles name it."""
    clock_hz: int | None = None
    core: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    lines: int = 0
    """How many lines were understood, used or not."""
    units: str = ""
    """What its units were taken for, where they may be either."""

    @property
    def source(self) -> str:
        """The tool, its version and its units."""
        return ", ".join(filter(None, (self.tool, self.version, self.units)))


@dataclass
class Collected:
    """Figures while they are read: the best of each primitive, the others left out."""

    figures: dict[str, Figure] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    lines: int = 0

    def add(self, figure: Figure, what: str) -> None:
        """Takes a figure; one that its primitive has already stays, as measured first."""
        self.lines += 1
        if figure.primitive in self.figures:
            self.leave(what, f"{figure.primitive} was given before")
        else:
            self.figures[figure.primitive] = figure

    def leave(self, what: str, why: str, *, understood: bool = False) -> None:
        """Leaves something out."""
        self.lines += understood
        self.left_out.append(LeftOut(what, why))

    def output(self, tool: str, **known: object) -> Output | None:
        """All of it, if any line was understood."""
        if not self.lines:
            return None
        figures = tuple(self.figures.values())
        made = Output(tool, figures, left_out=tuple(self.left_out), lines=self.lines)
        return replace(made, **known)  # type: ignore[arg-type]


NO_CASE = "no case uses it yet"
"""Why a primitive that works is left out."""

#: Bytes of a block that a call costs beside those of its message, where a benchmark gave one length
#: alone.
HASH_BLOCK = {"sha-256": 64, "sha-384": 128, "sha-512": 128}
#: GCM enciphers a block for the tag and hashes one of lengths and one of associated data (NIST SP
#: 800-38D section 7.1), each half of a block's work.
GCM_CALL_BYTES = 40
#: ChaCha20-Poly1305 makes Poly1305's key, a block of 64 B, and hashes lengths and associated data
#: (RFC 8439 section 2.8).
CHACHA_CALL_BYTES = 80


def of_stream(primitive: str, byte_ns: float, code: Code | None = None) -> Figure:
    """A hash or cipher of which the time of a byte in a long message is known: a call costs what
    the algorithm's definition adds to each message."""
    family, _, algorithm = primitive.rpartition(".")
    if family in {"hash", "hmac"}:
        block = HASH_BLOCK[algorithm]
        # RFC 2104: two hashes, each with a block of the key before its message.
        blocks, why = (1, "FIPS 180-4's padding") if family == "hash" else (4, "RFC 2104")
        how = f"{_BY_DEFINITION} {why}: {blocks} block"
        return Figure(primitive, blocks * block * byte_ns, byte_ns, code, how)
    if family.startswith("aead"):
        extra = CHACHA_CALL_BYTES if "CHACHA" in algorithm else GCM_CALL_BYTES
        why = f"{_BY_DEFINITION} the algorithm's definition: {extra} B more"
        return Figure(primitive, extra * byte_ns, byte_ns, code, why)
    return Figure(primitive, 0.0, byte_ns, code)


def of_block(primitive: str, ns: float, size: int, code: Code | None = None) -> Figure:
    """A hash or cipher of which the time of a message of one size is known."""
    whole = of_stream(primitive, 1.0, code)
    return replace(whole, call_ns=whole.call_ns * ns / whole.at(size), byte_ns=ns / whole.at(size))


def of_sizes(primitive: str, times: Iterable[tuple[int, float]], code: Code | None) -> Figure:
    """A hash or cipher of which the times of messages of several sizes (B, ns) are known: a line
    through the shortest and the longest."""
    known = sorted(times)
    (short, short_ns), (long, long_ns) = known[0], known[-1]
    if short == long:
        return of_block(primitive, long_ns, long, code)
    byte_ns = max(0.0, (long_ns - short_ns) / (long - short))
    return Figure(primitive, max(0.0, short_ns - short * byte_ns), byte_ns, code)

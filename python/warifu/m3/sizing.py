# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a program takes of flash and memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from warifu import _core
from warifu.m3.running import DEFAULT_CHIP, naming


@dataclass(frozen=True)
class Section:
    """A section of the file that the chip gets to see; `kind` is text, rodata, data or bss."""

    name: str
    kind: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Symbol:
    """A symbol's bytes; `name` is empty for what of a section has none (padding, literals)."""

    name: str
    section: str
    kind: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Region:
    """A memory of the chip and what of it is taken."""

    name: str
    bytes: int
    used: int


@dataclass(frozen=True)
class Sizes:
    """Every byte once: aliases and symbols within symbols do not count again."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    """The largest first."""
    regions: tuple[Region, ...]
    totals: dict[str, int]
    """By kind."""
    flash: int
    """text, rodata and data."""
    memory: int
    """data and bss."""


def size(program: Path | str, chip: str = DEFAULT_CHIP) -> Sizes:
    """Measures an ELF file. Raises WarifuError where it is none, and OSError."""
    path = Path(program)
    with naming(path):
        found = json.loads(_core.m3_size(path.read_bytes(), chip))
    return Sizes(
        tuple(Section(**one) for one in found["sections"]),
        tuple(Symbol(**one) for one in found["symbols"]),
        tuple(Region(**one) for one in found["regions"]),
        found["totals"],
        found["flash"],
        found["memory"],
    )

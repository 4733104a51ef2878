# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program's use of flash and RAM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from warifu import _core
from warifu.m3.chips import DEFAULT_CHIP, text_of
from warifu.m3.running import naming, read_program


@dataclass(frozen=True)
class Section:
    """A section that is loaded or allocated; `kind` is text, rodata, data or bss."""

    name: str
    kind: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Symbol:
    """A symbol's bytes; `name` is empty for bytes without a symbol (padding, literals)."""

    name: str
    section: str
    kind: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Region:
    """A memory of the chip and its use."""

    name: str
    bytes: int
    used: int


@dataclass(frozen=True)
class Sizes:
    """The sizes of a program. Each byte counts once, also under aliases and nested symbols."""

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
    """Measures an ELF file. Raises WarifuError if it is not a program, and OSError."""
    path, chip_file = Path(program), text_of(chip)
    with naming(path):
        found = json.loads(_core.m3_size(read_program(path), chip, chip_file))
    return Sizes(
        tuple(Section(**one) for one in found["sections"]),
        tuple(Symbol(**one) for one in found["symbols"]),
        tuple(Region(**one) for one in found["regions"]),
        found["totals"],
        found["flash"],
        found["memory"],
    )

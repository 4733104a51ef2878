# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Chips: the built-in ones by name, others by the TOML file that describes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from warifu import _core
from warifu.files import FileRefused, read_text

CHIPS: tuple[str, ...] = tuple(_core.m3_chips())
"""The chips whose memory maps are built in."""

DEFAULT_CHIP = "mps2-an385"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Memory:
    """A memory of a chip."""

    name: str
    address: int
    bytes: int
    writable: bool
    lines: bool
    """Whether its wait states are those of a flash that reads lines."""


@dataclass(frozen=True)
class Chip:
    """A chip, as its file describes it."""

    name: str
    source: str
    memories: tuple[Memory, ...]
    vector_table: int


def chip(name: str) -> Chip:
    """A built-in chip by its name, or that of a file `FILE.toml`. Raises WarifuError for an unknown
    or invalid one, and OSError."""
    found = json.loads(_describe(name, text_of(name)))
    memories = tuple(Memory(**one) for one in found["memories"])
    return Chip(found["name"], found["source"], memories, found["vector_table"])


def text_of(name: str) -> str | None:
    """The text of a chip's file; None for a built-in chip. Raises as `chip` does."""
    if not name.endswith(".toml"):
        _describe(name, None)
        return None
    try:
        text = read_text(Path(name), _MAX_BYTES)
    except FileRefused as error:
        raise _core.WarifuError(str(error)) from None
    _describe(name, text)
    return text


def identity(name: str) -> str:
    """What results say of a chip: its name, with a hash of its file unless it is built in."""
    text = text_of(name)
    if text is None:
        return name
    return f"{chip(name).name}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _describe(name: str, text: str | None) -> str:
    try:
        described: str = _core.m3_chip(name, text)
    except _core.WarifuError as error:
        raise _core.WarifuError(f"{name}: {error}" if text is not None else str(error)) from None
    return described

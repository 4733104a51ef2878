# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lists of leaks that somebody looked at and allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warifu import _core
from warifu.files import FileRefused, read_text
from warifu.m3.tainting import Leak

KINDS = (
    "branch", "target", "load-address", "store-address", "condition", "multiply", "divide",
    "output",
)  # fmt: skip
_MAX_BYTES = 1 << 20
_ENTRY = re.compile(r"(?P<function>[^\s+]+)(\+(?P<offset>0x[0-9a-f]{1,8}|[0-9]{1,9}))?")


@dataclass(frozen=True)
class Allowed:
    """An entry: leaks of a kind in a function, at an offset of it, or both."""

    line: int
    function: str
    offset: int | None
    kind: str | None

    def holds(self, leak: Leak) -> bool:
        """Whether it allows a leak."""
        return (
            leak.at.function == self.function
            and self.offset in (None, leak.at.offset)
            and self.kind in (None, leak.kind)
        )

    def __str__(self) -> str:
        """As it stands in the file."""
        offset = "" if self.offset is None else f"+{self.offset:#x}"
        return f"{self.function}{offset}{'' if self.kind is None else ' ' + self.kind}"


@dataclass(frozen=True)
class AllowList:
    """The entries of a file."""

    path: Path
    entries: tuple[Allowed, ...] = ()

    @staticmethod
    def read(path: Path) -> AllowList:
        """Reads a file: an entry a line, `FUNCTION KIND`, `FUNCTION+OFFSET` or both; `#` begins a
        comment. Raises WarifuError for any other line, and OSError."""
        try:
            text = read_text(path, _MAX_BYTES)
        except FileRefused as error:
            raise _core.WarifuError(str(error)) from None
        entries: dict[str, Allowed] = {}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            entry = _entry(number, words)
            if entry is None:
                raise _core.WarifuError(
                    f"{path}: line {number}: expected FUNCTION KIND or FUNCTION+OFFSET, such as "
                    f"`lookup load-address` or `lookup+0x1c`; kinds are {', '.join(KINDS)}"
                )
            if str(entry) in entries:
                before = entries[str(entry)].line
                raise _core.WarifuError(
                    f"{path}: line {number}: {entry} is in line {before} already: remove one"
                )
            entries[str(entry)] = entry
        return AllowList(path, tuple(entries.values()))

    def others(self, leaks: Iterable[Leak]) -> tuple[Leak, ...]:
        """The leaks that no entry allows."""
        return tuple(leak for leak in leaks if not any(one.holds(leak) for one in self.entries))

    def stale(self, leaks: Iterable[Leak]) -> tuple[Allowed, ...]:
        """The entries that allow none of the leaks."""
        found = tuple(leaks)
        return tuple(one for one in self.entries if not any(map(one.holds, found)))


def _entry(number: int, words: list[str]) -> Allowed | None:
    place = _ENTRY.fullmatch(words[0])
    kind = words[1] if len(words) > 1 else None
    if place is None or len(words) > 2 or kind not in (None, *KINDS):
        return None
    offset = None if place["offset"] is None else int(place["offset"], 0)
    if offset is None and kind is None:
        return None
    return Allowed(number, place["function"], offset, kind)

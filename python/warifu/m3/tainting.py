# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where a program's secrets show in time: branches, addresses, operands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import _core
from warifu.m3.running import Options, Output, Run, naming, whole
from warifu.m3.sizing import size

_MOST_BYTES = 2**32 - 1


@dataclass(frozen=True)
class Place:
    """An instruction."""

    address: int
    instruction: str
    function: str
    described: str
    """Its address with the function's name and its offset there."""
    line: str
    """File and line, `file.c:12`; empty where they are not known."""

    @staticmethod
    def of(found: Mapping[str, Any]) -> Place:
        """From what `_core` tells."""
        line = found["line"]
        return Place(
            found["address"],
            found["instruction"],
            found["function"],
            found["described"],
            "" if line is None else f"{line['file']}:{line['line']}",
        )


@dataclass(frozen=True)
class Leak:
    """An instruction whose time, or whose way, depends on a secret."""

    kind: str
    """`branch`, `target`, `load-address`, `store-address`, `condition`, `multiply`, `divide`."""
    at: Place
    count: int
    """How often it was executed with a secret."""
    brought_by: Place | None
    """The load that brought the secret into a register."""
    secret: str
    """Which secret, in words; empty where it is not known."""


@dataclass(frozen=True)
class Taint:
    """All leaks of a run, by address."""

    run: Run
    leaks: tuple[Leak, ...]
    #: How many bytes were made secret in all; where none were, no leaks mean nothing.
    poisoned: int

    def by_function(self) -> list[tuple[str, int]]:
        """Functions with how many places leak in each, the most first."""
        return Counter(one.at.function for one in self.leaks).most_common()


def taint(
    program: Path | str,
    secrets: Sequence[tuple[str, int | None]] = (),
    since: str = "main",
    options: Options | None = None,
    output: Output | None = None,
) -> Taint:
    """Runs an ELF file and follows its secrets.

    What the program poisons itself (WARIFU_POISON) is secret, and `secrets`: names of objects, with
    their bytes where the file does not say, from each beginning of the function `since` on. Raises
    as `run` does, WarifuError where there is no such object or function or several of them, and
    TypeError or ValueError for a pair that is none.
    """
    path, options = Path(program), options or Options()
    for one in secrets:
        _refuse_no_pair(one)
    _refuse_ambiguous(path, {name for name, _ in secrets}, options.chip)
    with naming(path):
        found = _core.m3_taint(path.read_bytes(), options.request(), list(secrets), since, output)
    leaks = json.loads(found["taint"])["leaks"]
    return Taint(Run.of(path, options, found), tuple(map(_leak, leaks)), found["poisoned"])


def _refuse_no_pair(one: object) -> None:
    if not isinstance(one, tuple) or len(one) != 2 or not isinstance(one[0], str):
        raise TypeError(f"secrets has {one!r}: expected pairs such as ('key', None), ('key', 32)")
    if one[1] is not None:
        whole(f"secrets: the bytes of {one[0]}", one[1], 1, _MOST_BYTES)


def _refuse_ambiguous(path: Path, names: set[str], chip: str) -> None:
    """Of several variables of one name (static ones of several files) none may be passed over."""
    symbols = size(path, chip).symbols if names else ()
    for name in sorted(names):
        found = [one for one in symbols if one.name == name]
        # A function of that name is code, beside constants that the linker put there.
        data = [one for one in found if one.kind != "text"] or found
        if len(data) > 1:
            places = ", ".join(f"{one.address:#010x} ({one.bytes} bytes)" for one in data)
            raise _core.WarifuError(
                f"{path}: the program has {len(data)} objects {name}, at {places}: rename the "
                "secret one, or poison it in the program (WARIFU_POISON)"
            )


def _leak(found: Mapping[str, Any]) -> Leak:
    brought_by = found["brought_by"]
    return Leak(
        found["kind"],
        Place.of(found["at"]),
        found["count"],
        None if brought_by is None else Place.of(brought_by),
        found["secret"],
    )

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Taint tracking: leaks of secrets through branches, addresses and operand-dependent timing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import _core
from warifu.m3.running import Options, Output, Run, naming, read_program, whole_number
from warifu.m3.sizing import size

_MAX_BYTES = 2**32 - 1


@dataclass(frozen=True)
class Place:
    """An instruction."""

    address: int
    instruction: str
    function: str
    described: str
    """Its address with symbol and offset."""
    offset: int
    """Its offset in its function."""
    line: str
    """File and line, `file.c:12`; empty if unknown."""

    @staticmethod
    def of(found: Mapping[str, Any]) -> Place:
        """From the result of `_core`."""
        line = found["line"]
        return Place(
            found["address"],
            found["instruction"],
            found["function"],
            found["described"],
            found["offset"],
            "" if line is None else f"{line['file']}:{line['line']}",
        )


@dataclass(frozen=True)
class Leak:
    """An instruction whose timing, address or branch depends on a secret."""

    kind: str
    """`branch`, `target`, `load-address`, `store-address`, `condition`, `multiply`, `divide`; of
    outputs `output`."""
    at: Place
    count: int
    """Executions with a secret."""
    loaded_by: Place | None
    """The instruction that loaded the secret into a register."""
    secret: str
    """A description of the secret; empty if unknown."""


@dataclass(frozen=True)
class Taint:
    """All leaks of a run, by address."""

    run: Run
    leaks: tuple[Leak, ...]
    outputs: tuple[Leak, ...]
    """Instructions that sent secret bytes to the console, a UART, ITM or the pipe. They do not leak
    by time: a ciphertext comes from secrets as well."""
    #: Bytes made secret in total. If none were, the absence of leaks means nothing.
    poisoned: int

    def by_function(self) -> list[tuple[str, int]]:
        """Functions with the number of leaks in each, the largest first."""
        return Counter(one.at.function for one in self.leaks).most_common()


def taint(
    program: Path | str,
    secrets: Sequence[tuple[str, int | None]] = (),
    since: str = "main",
    options: Options | None = None,
    output: Output | None = None,
) -> Taint:
    """Runs an ELF file and tracks its secrets.

    Bytes become secret when the program poisons them (WARIFU_POISON), and at each start of the
    function `since` if `secrets` names them: variables, with their bytes if the file does not give
    them. Raises as `run` does, WarifuError for unknown or ambiguous names, and TypeError or
    ValueError for invalid pairs.
    """
    path, options = Path(program), options or Options()
    for one in secrets:
        _refuse_no_pair(one)
    _refuse_ambiguous(path, {name for name, _ in secrets}, options.chip)
    request = options.request()
    with naming(path):
        found = _core.m3_taint(read_program(path), request, list(secrets), since, output)
    report = json.loads(found["taint"])
    leaks, outputs = (tuple(map(_leak, report[key])) for key in ("leaks", "outputs"))
    return Taint(Run.of(path, options, found), leaks, outputs, found["poisoned"])


def _refuse_no_pair(one: object) -> None:
    if not isinstance(one, tuple) or len(one) != 2 or not isinstance(one[0], str):
        raise TypeError(f"secrets has {one!r}: expected pairs such as ('key', None), ('key', 32)")
    if one[1] is not None:
        whole_number(f"secrets: the bytes of {one[0]}", one[1], 1, _MAX_BYTES)


def _refuse_ambiguous(path: Path, names: set[str], chip: str) -> None:
    """Raises WarifuError for a name that several variables have (static ones of several files)."""
    symbols = size(path, chip).symbols if names else ()
    for name in sorted(names):
        found = [one for one in symbols if one.name == name]
        # Variables, or constants that the linker placed in .text; functions do not count.
        data = [one for one in found if one.kind != "text"] or found
        if len(data) > 1:
            places = ", ".join(f"{one.address:#010x} ({one.bytes} bytes)" for one in data)
            raise _core.WarifuError(
                f"{path}: the program has {len(data)} variables named {name}, at {places}: rename "
                "the secret one, or poison it in the program (WARIFU_POISON)"
            )


def _leak(found: Mapping[str, Any]) -> Leak:
    loaded_by = found["loaded_by"]
    return Leak(
        found["kind"],
        Place.of(found["at"]),
        found["count"],
        None if loaded_by is None else Place.of(loaded_by),
        found["secret"],
    )

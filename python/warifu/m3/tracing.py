# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Execution traces: a line an instruction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from warifu import _core, files
from warifu.m3.running import MAX_U64, Options, Output, Run, naming, read_program, whole_number

LIMIT = 1_000_000
"""Instructions traced unless a run is told otherwise: some 90 MB."""


@dataclass(frozen=True)
class Part:
    """Which part of a run is traced: everything, from one place to another, or calls.

    A place is a symbol, one with an offset (`main+0x1c`), or an address (`0x08000100`).
    """

    since: str | None = None
    """Begin at each arrival there."""
    until: str | None = None
    """End at the arrival there, which is not traced."""
    call: str | None = None
    """Each call of this function, with what it calls; not with the other two."""
    limit: int = LIMIT
    """Instructions at most."""

    def __post_init__(self) -> None:
        """Raises ValueError or TypeError."""
        whole_number("limit", self.limit, 1, MAX_U64)
        if self.call is not None and (self.since is not None or self.until is not None):
            raise ValueError("call: excludes since and until: give one or the other")


@dataclass(frozen=True)
class Trace:
    """A trace that was written."""

    run: Run
    lines: int
    """Instructions traced."""
    cut: bool
    """Whether the limit cut it off."""


def trace(
    program: Path | str,
    file: Path | BinaryIO,
    part: Part | None = None,
    options: Options | None = None,
    output: Output | None = None,
) -> Trace:
    """Runs an ELF file and writes a trace to `file`, which appears when it is whole: when the run
    has ended, or with KeyboardInterrupt. After any other error it is as it was. An open binary file
    gets the lines as they come.

    Raises as `run` does, WarifuError also for places that the program does not have, and
    `files.FileRefused` for a file that is a device, a pipe or a socket, the program or its chip's
    file.
    """
    path, options, part = Path(program), options or Options(), part or Part()
    with naming(path):
        content = read_program(path)
    interrupt: KeyboardInterrupt | None = None
    with _opened(file, (path, *options.files())) as to:
        to.write(_head(path, options).encode())
        try:
            found = _traced(path, content, part, options, to.write, output)
        except KeyboardInterrupt as error:
            # What there is of it is worth reading.
            interrupt = error
            to.write(b"# interrupted\n")
        else:
            seen = Trace(Run.of(path, options, found), found["lines"], found["cut"])
            to.write(_foot(seen).encode())
    if interrupt is not None:
        raise interrupt
    return seen


@contextlib.contextmanager
def _opened(file: Path | BinaryIO, inputs: tuple[Path, ...]) -> Iterator[BinaryIO]:
    """A file that appears when it is whole, or what is open already."""
    if not isinstance(file, Path):
        yield file
        file.flush()
        return
    files.refuse_same(file, inputs)
    files.refuse_to_replace(file)
    with files.replacing(file) as to:
        yield to


def _traced(
    path: Path,
    content: bytes,
    part: Part,
    options: Options,
    write: Callable[[bytes], object],
    output: Output | None,
) -> dict[str, Any]:
    traced = {"since": part.since, "until": part.until, "call": part.call, "limit": part.limit}
    with naming(path):
        return _core.m3_trace(content, options.request(), traced, write, output)


def _head(path: Path, options: Options) -> str:
    where = f"{path.name} on {options.chip}"
    where = "".join(letter if letter.isprintable() else "?" for letter in where)
    return (
        f"# {where}: cycle (high reading) at which the instruction begins, "
        "address, place, instruction, what it wrote\n"
    )


def _foot(seen: Trace) -> str:
    cut = ", where the limit cut it off" if seen.cut else ""
    return f"# {seen.lines} instructions traced{cut}\n# {seen.run.message}\n"

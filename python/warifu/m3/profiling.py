# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Profiles: cycles by function, line and call; stack depth; heap use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import _core
from warifu.m3.running import Cycles, Options, Output, Run, naming, read_program


@dataclass(frozen=True)
class Function:
    """Totals of a function; tail calls count as calls, recursion counts once in `inclusive`."""

    name: str
    address: int
    calls: int
    instructions: int
    exclusive: Cycles
    """In the function itself."""
    inclusive: Cycles
    """Including nested calls."""
    stack: int
    """Its largest frame, bytes."""


@dataclass(frozen=True)
class Line:
    """A source line; `file` is empty and `line` 0 for code without debugging information."""

    file: str
    line: int
    function: str
    instructions: int
    cycles: Cycles


@dataclass(frozen=True)
class Edge:
    """Calls from one function to another; `caller` is empty at the start of a call stack."""

    caller: str
    callee: str
    calls: int
    inclusive: Cycles


@dataclass(frozen=True)
class Stack:
    """A stack at its deepest: the main one, or a thread's."""

    top: int
    lowest: int
    bytes: int
    frames: tuple[tuple[str, int], ...]
    """The functions on it, the outermost first, each with its bytes."""


@dataclass(frozen=True)
class Heap:
    """newlib's heap; bytes as requested by the program, `grown` including the allocator's data."""

    peak: int
    live: int
    """Not freed at the end."""
    allocations: int
    failures: int
    grown: int


@dataclass(frozen=True)
class Section:
    """The part of a run from one mark to the next, or to the end."""

    name: str
    to: str
    instructions: int
    cycles: Cycles
    stack: int
    """The deepest stack, bytes."""
    heap: int
    """The most bytes allocated at one time."""


@dataclass(frozen=True)
class Profile:
    """The profile of a run."""

    run: Run
    functions: tuple[Function, ...]
    """The most expensive first."""
    lines: tuple[Line, ...]
    """The most expensive first."""
    edges: tuple[Edge, ...]
    stacks: tuple[Stack, ...]
    """The main stack first."""
    heap: Heap | None
    """None if the program does not contain newlib's allocator."""
    sections: tuple[Section, ...]
    asleep: Cycles
    """Spent asleep (WFI, WFE, sleep-on-exit)."""
    notes: tuple[str, ...]
    """Limitations of the figures, such as calls nested too deep to track."""
    folded: str
    """Folded stacks for flame graphs: one call path a line, with its cycles."""
    flame_graph: str
    """The flame graph, SVG; empty if nothing was executed."""

    @property
    def exceptions(self) -> Cycles:
        """Cycles of exception entry and return. No line has them; in `functions` they count for the
        handlers."""
        low, high = (
            sum(getattr(one.cycles, end) for one in self.lines) + getattr(self.asleep, end)
            for end in ("low", "high")
        )
        return self.run.cycles - Cycles(low, high)


def profile(
    program: Path | str, options: Options | None = None, output: Output | None = None
) -> Profile:
    """Runs an ELF file under the profiler; a run that fails has a profile too.

    Raises as `run` does.
    """
    path, options = Path(program), options or Options()
    request = options.request()
    with naming(path):
        found = _core.m3_profile(read_program(path), request, output)
    seen = json.loads(found["profile"])
    run = Run.of(path, options, found)
    return Profile(
        run,
        tuple(_function(one) for one in seen["functions"]),
        tuple(_line(one) for one in seen["lines"]),
        tuple(Edge(**{**one, "inclusive": Cycles(*one["inclusive"])}) for one in seen["edges"]),
        tuple(
            Stack(**{**one, "frames": tuple((name, size) for name, size in one["frames"])})
            for one in seen["stacks"]
        ),
        None if seen["heap"] is None else Heap(**seen["heap"]),
        tuple(_sections(run, seen["sections"])),
        Cycles(*seen["asleep"]),
        tuple(seen["notes"]),
        found["folded"],
        found["flame_graph"],
    )


def _function(one: Mapping[str, Any]) -> Function:
    bands = {name: Cycles(*one[name]) for name in ("exclusive", "inclusive")}
    return Function(**{**one, **bands})


def _line(one: Mapping[str, Any]) -> Line:
    return Line(
        one["file"], one["line"], one["function"], one["instructions"], Cycles(*one["cycles"])
    )


def _sections(run: Run, seen: list[Mapping[str, int]]) -> list[Section]:
    """Sections end where the next one begins."""
    found = []
    for index, (mark, one) in enumerate(zip(run.marks, seen, strict=True)):
        last = index + 1 == len(seen)
        end = run.cycles if last else run.marks[index + 1].at
        instructions = run.instructions if last else seen[index + 1]["instructions"]
        to = "the end" if last else run.marks[index + 1].name
        found.append(
            Section(
                mark.name,
                to,
                instructions - one["instructions"],
                end - mark.at,
                one["stack"],
                one["heap"],
            )
        )
    return found

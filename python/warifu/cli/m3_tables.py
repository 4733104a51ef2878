# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of `warifu m3`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from posixpath import normpath
from typing import TYPE_CHECKING

from warifu.cli.screen import counted
from warifu.report.table import Column, Table, Value

#: The row of cycles that belong to no line.
_EXCEPTIONS = "(exception entry and return)"
#: Functions named in a note at most.
_MAX_NAMED = 10
#: Columns of the table of leaks, which is as wide as a terminal.
_PLACE, _INSTRUCTION, _SECRET = 20, 14, 20
#: And of that of chips.
_MEMORIES, _SOURCE = 32, 33

if TYPE_CHECKING:
    from warifu.m3 import Chip, Cycles, Leak, Profile, Run, Sizes, Taint
    from warifu.m3.tainting import Place


def run(done: Run, mhz: float | None) -> list[Table]:
    """The totals of a run, and of each of its sections."""
    tables = [_whole(done, mhz)]
    if done.marks:
        tables.append(_sections(done, mhz))
    return tables


def _whole(done: Run, mhz: float | None) -> Table:
    heads = [Column("what", number=False), Column("low"), Column("high")]
    table = Table(f"{done.program.name} on {done.options.chip}", heads)
    count = f"{done.instructions:,}"
    table.add(
        ["instructions", count, count],
        {"what": "instructions", "low": done.instructions, "high": done.instructions, "unit": "1"},
    )
    table.add(
        ["cycles", f"{done.cycles.low:,}", f"{done.cycles.high:,}"],
        {"what": "cycles", "low": done.cycles.low, "high": done.cycles.high, "unit": "cycles"},
    )
    if mhz is not None:
        low, high = done.cycles.milliseconds(mhz)
        table.add(
            [f"ms at {mhz:g} MHz", f"{low:,.3f}", f"{high:,.3f}"],
            {"what": "time", "low": low * 1e6, "high": high * 1e6, "unit": "ns"},
        )
    table.notes += notes(done)
    return table


def _sections(done: Run, mhz: float | None) -> Table:
    columns = [Column("from mark", number=False), Column("to", number=False), Column("cycles")]
    table = Table("between marks", [*columns, *([Column("ms")] if mhz else [])])
    after = [*done.marks[1:], None]
    for mark, following in zip(done.marks, after, strict=True):
        took = (done.cycles if following is None else following.at) - mark.at
        to = "the end" if following is None else following.name
        record: dict[str, Value] = {"from": mark.name, "to": to, "low": took.low, "high": took.high}
        table.add([mark.name, to, str(took), *([span(took, mhz)] if mhz else [])], record)
    return table


def span(took: Cycles, mhz: float) -> str:
    """Milliseconds, as a band where it is one."""
    low, high = took.milliseconds(mhz)
    ends = f"{low:,.3f}", f"{high:,.3f}"
    return ends[1] if ends[0] == ends[1] else " to ".join(ends)


def notes(done: Run) -> list[str]:
    """Notes that apply to every figure."""
    found = [f"Kind: {done.kind}. Low and high are two readings of the chip's published rules."]
    if done.options.wait_states:
        waits = ", ".join(f"{name} {cycles}" for name, cycles in done.options.wait_states.items())
        how = " of each code word and data access" if done.options.plain_wait_states else ""
        found.append(f"Wait states{how}, whose effect is assumed: {waits}.")
    if done.other_core is not None:
        found.append(other_core(done.other_core))
    if done.lost_marks:
        marks = counted(done.lost_marks, "later mark was", "later marks were")
        found.append(f"{marks} dropped: there were too many.")
    return found


def other_core(name: str) -> str:
    """A note for programs of another core."""
    return f"Built for {name}: instructions and timing here are a Cortex-M3's, not that core's."


def profile(seen: Profile, by: str, top: int, mhz: float | None) -> list[Table]:
    """The totals of a run, its profile, stacks and heap."""
    where = {"function": _functions, "line": _lines, "call": _calls}[by](seen, top)
    tables = [_whole(seen.run, mhz), where]
    if seen.sections:
        tables.append(_profiled_sections(seen, mhz))
    return [*tables, _memory(seen)]


def _functions(seen: Profile, top: int) -> Table:
    heads = (
        "calls",
        "instructions",
        "exclusive cycles",
        "share",
        "inclusive cycles",
        "stack, B",
    )
    table = Table("functions", [Column("function", number=False), *map(Column, heads)])
    for one in seen.functions[:top]:
        table.add(
            [one.name, f"{one.calls:,}", f"{one.instructions:,}", str(one.exclusive),
             _share(one.exclusive, seen.run.cycles), str(one.inclusive), f"{one.stack:,}"],
            {"function": one.name, "address": one.address, "calls": one.calls,
             "instructions": one.instructions, **_band("exclusive", one.exclusive),
             **_band("inclusive", one.inclusive), "stack_bytes": one.stack},
        )  # fmt: skip
    if seen.asleep.high:
        share = _share(seen.asleep, seen.run.cycles)
        table.add(
            ["(asleep)", "", "", str(seen.asleep), share, "", ""],
            {"function": None, **_band("exclusive", seen.asleep)},
        )
    _left_out(table, len(seen.functions), top)
    return table


def _lines(seen: Profile, top: int) -> Table:
    heads = [Column("line", number=False), Column("function", number=False)]
    table = Table(
        "source lines", [*heads, Column("instructions"), Column("cycles"), Column("share")]
    )
    for one in seen.lines[:top]:
        place = f"{normpath(one.file)}:{one.line}" if one.line else "(compiled without -g)"
        table.add(
            [place, one.function, f"{one.instructions:,}", str(one.cycles),
             _share(one.cycles, seen.run.cycles)],
            {"file": one.file, "line": one.line, "function": one.function,
             "instructions": one.instructions, **_band("cycles", one.cycles)},
        )  # fmt: skip
    for what, cycles in ((_EXCEPTIONS, seen.exceptions), ("(asleep)", seen.asleep)):
        if cycles.high:
            table.add(
                ["", what, "", str(cycles), _share(cycles, seen.run.cycles)],
                {"file": None, "line": None, "function": what, "instructions": 0,
                 **_band("cycles", cycles)},
            )  # fmt: skip
    _left_out(table, len(seen.lines), top)
    return table


def _calls(seen: Profile, top: int) -> Table:
    table = Table("calls", [Column("from", number=False), Column("to", number=False),
                  Column("calls"), Column("cycles"), Column("cycles per call")])  # fmt: skip
    edges = sorted(seen.edges, key=lambda edge: (-edge.inclusive.high, edge.caller, edge.callee))
    for one in edges[:top]:
        each = f"{one.inclusive.high / one.calls:,.0f}" if one.calls else ""
        table.add(
            [one.caller or "(the chip)", one.callee, f"{one.calls:,}", str(one.inclusive), each],
            {"caller": one.caller, "callee": one.callee, "calls": one.calls,
             **_band("inclusive", one.inclusive)},
        )  # fmt: skip
    table.notes.append(
        "Inclusive cycles of all calls. (the chip) stands for the caller of the reset handler, of "
        "exception handlers and of threads."
    )
    _left_out(table, len(edges), top)
    return table


def _profiled_sections(seen: Profile, mhz: float | None) -> Table:
    heads = ["instructions", "cycles", *(["ms"] if mhz else []), "stack, B", "heap, B"]
    table = Table("between marks", [Column("from mark", number=False), Column("to", number=False),
                  *map(Column, heads)])  # fmt: skip
    for one in seen.sections:
        time = [span(one.cycles, mhz)] if mhz else []
        table.add(
            [one.name, one.to, f"{one.instructions:,}", str(one.cycles), *time, f"{one.stack:,}",
             f"{one.heap:,}" if seen.heap else "none"],
            {"from": one.name, "to": one.to, "instructions": one.instructions,
             **_band("cycles", one.cycles), "stack_bytes": one.stack,
             "heap_bytes": one.heap if seen.heap else None},
        )  # fmt: skip
    table.notes.append("Stack and heap are the peaks within the section.")
    return table


def _memory(seen: Profile) -> Table:
    table = Table("peak memory", [Column("what", number=False), Column("bytes"),
                  Column("details", number=False)])  # fmt: skip
    for index, stack in enumerate(seen.stacks):
        name = "stack" if index == 0 else f"stack of thread {index}"
        frames = ", ".join(f"{function} {size}" for function, size in stack.frames)
        record: dict[str, Value] = {"what": name, "bytes": stack.bytes, "frames": frames}
        table.add([name, f"{stack.bytes:,}", frames], record)
    if seen.heap is not None:
        heap = seen.heap
        rows = (
            (
                "heap",
                heap.peak,
                f"{counted(heap.allocations, 'allocation')}, {heap.failures:,} failed",
            ),
            ("heap with allocator data", heap.grown, "growth by _sbrk"),
            ("not freed", heap.live, ""),
        )
        for name, size, of in rows:
            table.add([name, f"{size:,}", of], {"what": name, "bytes": size, "frames": of})
    return table


def leaks(found: Taint, judged: Sequence[Leak], top: int | None) -> Table:
    """Leaks that are not allowed, and outputs of secrets: all by address, or the `top` most
    frequent of each."""
    table = Table(
        f"leaks in {found.run.program.name}",
        [Column("leak", number=False), Column("place", number=False, wrap=_PLACE),
         Column("instruction", number=False, wrap=_INSTRUCTION), Column("times"),
         Column("secret", number=False, wrap=_SECRET)],
    )  # fmt: skip
    outputs = [one for one in found.outputs if one not in judged]
    shown = [*_most(judged, top), *_most(outputs, top)]
    for one in shown:
        by = one.loaded_by
        table.add(
            [one.kind, _place(one.at, _PLACE), f"{one.at.address:#010x}: {one.at.instruction}",
             f"{one.count:,}", _origin(one)],
            {"kind": one.kind, "function": one.at.function, "offset": one.at.offset,
             "line": one.at.line, "instruction": one.at.instruction, "address": one.at.address,
             "count": one.count, "loaded_by": None if by is None else by.instruction,
             "loaded_by_address": None if by is None else by.address,
             "loaded_by_line": None if by is None else by.line, "secret": one.secret},
        )  # fmt: skip
    table.notes.append(_by_function(judged))
    allowed = len([one for one in found.leaks if one not in judged])
    if allowed:
        are = "is" if allowed == 1 else "are"
        table.notes.append(
            f"{counted(allowed, 'known leak')}, which --allow names, {are} not shown."
        )
    if outputs:
        places = counted(len(outputs), "place outputs", "places output")
        table.notes.append(
            f"{places} secret bytes. That is no leak by time: WARIFU_UNPOISON what may be public, "
            "and --forbid-output makes the others leaks."
        )
    _left_out(table, len(judged) + len(outputs), len(shown))
    table.notes.append("Kind: emulated. Only code that this run executed was checked.")
    return table


def _place(at: Place, width: int) -> str:
    """Function and line, in lines of a terminal's table."""
    function = f"{at.function}+{at.offset:#x}" if at.function else at.described
    return f"{function} {_file(at.line, width)}".rstrip()


def _origin(leak: Leak) -> str:
    """A secret, and what loaded it."""
    words = re.sub(r"\S*/\S+", lambda path: _file(path[0], _SECRET), leak.secret)
    by = leak.loaded_by
    if by is None:
        return words
    return f"{words}; loaded by {by.instruction} at {_file(by.line, _SECRET) or by.described}"


def _file(path: str, width: int) -> str:
    """A file's path, of which no more than the end is shown where it is too long."""
    path = normpath(path) if path else ""
    if len(path) <= width:
        return path
    parts = path.split("/")
    kept = parts[-1]
    for part in reversed(parts[:-1]):
        if len(f".../{part}/{kept}") > width:
            break
        kept = f"{part}/{kept}"
    return f".../{kept}"


def _most(leaks: Sequence[Leak], top: int | None) -> Sequence[Leak]:
    if top is None or top >= len(leaks):
        return leaks
    return sorted(leaks, key=lambda one: -one.count)[:top]


def _by_function(leaks: Sequence[Leak]) -> str:
    if not leaks:
        return "No leak in this run."
    functions = Counter(one.at.function for one in leaks).most_common()
    named = ", ".join(f"{name or '(no function)'} {n}" for name, n in functions[:_MAX_NAMED])
    more = len(functions) - _MAX_NAMED
    of_more = f" and {counted(more, 'more function')}" if more > 0 else ""
    return f"{counted(len(leaks), 'leak')}: {named}{of_more}."


def chips(known: Sequence[Chip]) -> Table:
    """Chips with their memories."""
    table = Table("chips", [Column("chip", number=False),
                  Column("memories", number=False, wrap=_MEMORIES),
                  Column("source", number=False, wrap=_SOURCE)])  # fmt: skip
    for one in known:
        memories = "; ".join(
            f"{memory.name} {memory.bytes // 1024} KiB at {memory.address:#010x}"
            for memory in one.memories
        )
        table.add(
            [one.name, memories, one.source],
            {"chip": one.name, "memories": memories, "source": one.source},
        )
    return table


def sizes(name: str, found: Sizes, chip: str, top: int) -> list[Table]:
    """Sections, symbols, and use of the chip's memories."""
    totals = Table(f"{name}: bytes", [Column("what", number=False), Column("bytes")])
    for what, size in (*found.totals.items(), ("flash", found.flash), ("memory", found.memory)):
        totals.add([what, f"{size:,}"], {"what": what, "bytes": size})
    totals.notes.append("flash is text, rodata and data; memory is data and bss.")
    regions = Table(f"memories of {chip}", [Column("memory", number=False), Column("bytes used"),
                    Column("of"), Column("share")])  # fmt: skip
    for region in found.regions:
        share = f"{region.used / region.bytes:.1%}"
        regions.add(
            [region.name, f"{region.used:,}", f"{region.bytes:,}", share],
            {"memory": region.name, "used": region.used, "bytes": region.bytes},
        )
    sections = Table("sections", [Column("section", number=False), Column("kind", number=False),
                     Column("address"), Column("bytes")])  # fmt: skip
    for section in found.sections:
        sections.add(
            [section.name, section.kind, f"{section.address:#010x}", f"{section.bytes:,}"],
            {"section": section.name, "kind": section.kind, "address": section.address,
             "bytes": section.bytes},
        )  # fmt: skip
    return [totals, regions, sections, _symbols(found, top)]


def _symbols(found: Sizes, top: int) -> Table:
    table = Table("symbols", [Column("symbol", number=False), Column("section", number=False),
                  Column("bytes")])  # fmt: skip
    for one in found.symbols[:top]:
        table.add(
            [one.name or "(no symbol)", one.section, f"{one.bytes:,}"],
            {"symbol": one.name, "section": one.section, "kind": one.kind, "address": one.address,
             "bytes": one.bytes},
        )  # fmt: skip
    _left_out(table, len(found.symbols), top)
    return table


def _left_out(table: Table, count: int, top: int) -> None:
    if count > top:
        table.notes.append(f"{counted(count - top, 'more row')}: --top {count} shows all.")


def _band(name: str, cycles: Cycles) -> dict[str, int]:
    return {f"{name}_low": cycles.low, f"{name}_high": cycles.high}


def _share(part: Cycles, whole: Cycles) -> str:
    return f"{part.high / whole.high:.1%}" if whole.high else ""

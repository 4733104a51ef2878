# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `warifu m3` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warifu.report.table import Column, Table

if TYPE_CHECKING:
    from warifu.m3 import Cycles, Options, Run


def run(done: Run, mhz: float | None) -> list[Table]:
    """What a run took, and each of its marked sections."""
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
    table.notes += notes(done.options)
    return table


def _sections(done: Run, mhz: float | None) -> Table:
    columns = [Column("from mark", number=False), Column("to", number=False), Column("cycles")]
    table = Table("between marks", [*columns, *([Column("ms")] if mhz else [])])
    after = [*done.marks[1:], None]
    for mark, following in zip(done.marks, after, strict=True):
        took = (done.cycles if following is None else following.at) - mark.at
        to = "the end" if following is None else following.name
        record = {"from": mark.name, "to": to, "low": took.low, "high": took.high}
        table.add([mark.name, to, str(took), *([span(took, mhz)] if mhz else [])], record)
    return table


def span(took: Cycles, mhz: float) -> str:
    """Milliseconds, as a band where it is one."""
    low, high = took.milliseconds(mhz)
    return f"{high:,.3f}" if took.low == took.high else f"{low:,.3f} to {high:,.3f}"


def notes(options: Options) -> list[str]:
    """What is to be known of every figure."""
    found = ["Kind: emulated. Low and high are two readings of the chip's published rules."]
    if options.wait_states:
        waits = ", ".join(f"{name} {cycles}" for name, cycles in options.wait_states.items())
        found.append(f"Wait states (assumed, so the cycles are): {waits}.")
    return found

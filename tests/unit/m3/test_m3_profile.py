# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 profile`, `taint` and `size`: tables and files. Their figures are tested in
crates/m3/tests."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.paths import ROOT
from warifu import m3

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]


def tables(text: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of JSON tables by title."""
    return {one["title"]: one["rows"] for one in json.loads(text)["tables"]}


def test_profile_by_function(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    code, out, _ = warifu("m3", "profile", elf, "--format", "json", "--top", "100")
    assert code == 0
    found = tables(out)
    run = m3.run(elf)
    functions = {row["function"]: row for row in found["functions"]}
    assert sum(row["exclusive_high"] for row in found["functions"]) == run.cycles.high
    assert functions["leaf"]["calls"] == 6
    assert functions["wide"]["stack_bytes"] >= 512
    assert [row["from"] for row in found["between marks"]] == ["leaves", "deep", "jumps", "ticks"]
    (stack,) = found["peak memory"]
    assert stack["frames"].startswith("start_c ") and "wide" in stack["frames"]


def test_profile_by_line(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    source = ROOT / "crates/m3/test-programs/profile/calls.c"
    _, out, _ = warifu("m3", "profile", elf, "--by", "line", "--top", "1000", "--format", "csv")
    lines = next(part for part in out.split("\n\n") if part.startswith("file,"))
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert sum(int(row["instructions"]) for row in rows) == m3.run(elf).instructions
    wide = [row for row in rows if row["function"] == "wide" and row["file"].endswith("calls.c")]
    texts = {source.read_text().splitlines()[int(row["line"]) - 1].strip() for row in wide}
    assert "here[0] = 1;" in texts and "leaf();" in texts


def test_lines_and_exceptions_sum_to_run(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    run = m3.run(elf)
    _, out, _ = warifu("m3", "profile", elf, "--by", "line", "--top", "1000", "--format", "json")
    rows = tables(out)["source lines"]
    for end, whole in (("low", run.cycles.low), ("high", run.cycles.high)):
        assert sum(row[f"cycles_{end}"] for row in rows) == whole
    (entries,) = (row for row in rows if row["function"] == "(exception entry and return)")
    # Five interrupts (exception_entry and exception_return in rules.toml).
    assert (entries["cycles_low"], entries["cycles_high"]) == (5 * (12 + 10), 5 * (12 + 12))
    _, out, _ = warifu("m3", "profile", elf, "--by", "line")
    assert "(exception entry and return)" in out


def test_profile_by_call(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    _, out, _ = warifu("m3", "profile", elf, "--by", "call", "--format", "json", "--top", "100")
    calls = {(row["caller"], row["callee"]): row for row in tables(out)["calls"]}
    assert calls["recursive", "recursive"]["calls"] == 5
    assert calls["", "sys_tick"]["calls"] == 5


def test_top_counts_omitted_rows(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    count = len(m3.profile(elf).functions)
    _, out, _ = warifu("m3", "profile", elf, "--top", "3")
    assert f"{count - 3} more rows: --top {count} shows all." in out


def test_flame_graph_and_folded_stacks(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    picture, folded = tmp_path / "f.svg", tmp_path / "f.txt"
    assert warifu("m3", "profile", elf, "--flame-graph", picture, "--folded", folded)[0] == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    stacks = dict(line.rsplit(" ", 1) for line in folded.read_text().splitlines())
    seen = m3.profile(elf)
    whole = sum(map(int, stacks.values())) + seen.asleep.high
    assert whole == seen.run.cycles.high
    assert int(stacks["start_c;main;wide;leaf"]) > 0


def test_too_many_call_paths_warn(warifu: Run, bare: Compile) -> None:
    elf = bare("call_paths.elf", "profile/call_paths.c")
    code, out, err = warifu("m3", "profile", elf, "--format", "json", "--top", "100")
    assert (code, err.count("warning: there are more than 65536 call paths")) == (0, 1)
    assert len(m3.profile(elf).notes) == 1
    of = {row["function"]: row["calls"] for row in tables(out)["functions"]}
    assert of["left"] + of["right"] == 2**18 - 1
    elf = bare("calls.elf", "profile/calls.c")
    assert m3.profile(elf).notes == () and "warning" not in warifu("m3", "profile", elf)[2]


def test_newlib_heap(compiled: Compile) -> None:
    elf = compiled(
        "heap.elf", "-O2", "profile/heap.c", "--specs=nano.specs", "--specs=rdimon.specs"
    )
    heap = m3.profile(elf).heap
    assert heap is not None
    # The program never frees 200 bytes; the others are the library's own.
    own = heap.live - 200
    assert (heap.peak, heap.failures) == (3300 + own, 1) and own < 1000


LEAKY = """
#include "warifu_m3.h"
unsigned key[4] = {1, 2, 3, 4}, other[2] = {5, 6}, table[8];
__attribute__((noipa)) static unsigned looks_up(unsigned index) { return table[index]; }
__attribute__((noipa)) static unsigned clean(unsigned word) { return word * 3 + 1; }
int main(void)
{
#ifdef POISON
    WARIFU_POISON(key, sizeof key);
#endif
    volatile unsigned sink = clean(key[0]) + clean(other[0]) + looks_up(other[1]);
    (void)sink;
#ifdef LEAK
    sink = looks_up(key[1]);
    for (int i = 0; i < 3; i++)
        sink = looks_up(key[2]) + (key[2] > sink ? 3 : 4);
#endif
#ifdef FAULTS
    __asm__ volatile("udf #1");
#endif
#ifndef CODE
#define CODE 0
#endif
    return CODE;
}
"""


@pytest.mark.parametrize("leaks", [False, True])
@pytest.mark.parametrize("poisoned", [False, True])
def test_taint_reports_leaks(
    warifu: Run, bare: Compile, tmp_path: Path, leaks: bool, poisoned: bool
) -> None:
    source = tmp_path / "leaky.c"
    source.write_text(LEAKY)
    flags = [*(["-DLEAK"] if leaks else []), *(["-DPOISON"] if poisoned else [])]
    elf = bare(f"leaky{leaks}{poisoned}.elf", str(source), *flags)
    secret = [] if poisoned else ["--secret", "key"]
    code, out, err = warifu("m3", "taint", elf, *secret, "--format", "json")
    assert out, err
    rows = json.loads(out)["tables"][0]["rows"]
    assert code == (1 if leaks else 0), err
    found = {(row["kind"], row["function"]): row for row in rows}
    assert (("load-address", "looks_up") in found) == bool(found) == leaks
    if leaks:
        row = found["load-address", "looks_up"]
        assert "leaky.c:" in row["line"] and "leaky.c:" in row["loaded_by_line"]
        assert "key" in row["secret"]


@pytest.mark.parametrize(
    ("flags", "leaks", "code"),
    [
        ((), False, 0),
        (("-DCODE=42",), False, 0),
        (("-DCODE=1",), False, 0),
        (("-DCODE=42", "-DLEAK"), True, 1),
        (("-DLEAK",), True, 1),
        (("-DFAULTS",), False, 122),
        (("-DFAULTS", "-DLEAK"), True, 1),
    ],
)
def test_taint_exit_codes(
    warifu: Run, bare: Compile, tmp_path: Path, flags: tuple[str, ...], leaks: bool, code: int
) -> None:
    source = tmp_path / "leaky.c"
    source.write_text(LEAKY)
    elf = bare(f"codes{''.join(flags)}.elf", str(source), "-DPOISON", *flags)
    found, out, err = warifu("m3", "taint", elf, "--format", "json")
    assert (found, bool(json.loads(out)["tables"][0]["rows"])) == (code, leaks), err
    own = [flag.removeprefix("-DCODE=") for flag in flags if "CODE" in flag]
    said = [f"{elf}: the program's own exit code is {own[0]}"] if own else []
    assert [line for line in err.splitlines() if "exit code" in line] == said
    assert ("undefined instruction" in err) == ("-DFAULTS" in flags)


def test_taint_top_sorts_by_count(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    source = tmp_path / "leaky.c"
    source.write_text(LEAKY)
    elf = bare("most.elf", str(source), "-DPOISON", "-DLEAK")
    leaks = m3.taint(elf).leaks
    assert len(leaks) > 1
    _, out, _ = warifu("m3", "taint", elf, "--top", "1", "--format", "json")
    (table,) = json.loads(out)["tables"]
    (row,) = table["rows"]
    assert row["count"] == max(leak.count for leak in leaks)
    functions = m3.taint(elf).by_function()
    assert sum(count for _, count in functions) == len(leaks)
    named = ", ".join(f"{name} {count}" for name, count in functions)
    assert table["notes"][0] == f"{len(leaks)} leaks: {named}."
    rest = len(leaks) - 1
    assert table["notes"][1] == f"{rest} more rows: --top {len(leaks)} shows all."


def test_ambiguous_secret_is_rejected(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    one, other = tmp_path / "one.c", tmp_path / "other.c"
    one.write_text(
        "static volatile unsigned key = 3; int other(void);\n"
        "int main(void) { return (key > 2) + other(); }\n"
    )
    other.write_text("static volatile unsigned key = 4; int other(void) { return key == 9; }\n")
    elf = bare("twice.elf", str(one), str(other))
    code, out, err = warifu("m3", "taint", elf, "--secret", "key")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.count("(4 bytes)") == 2 and "has 2 variables named key" in err


def test_unknown_secrets_are_rejected(warifu: Run, bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    for arguments, words in (
        (["--secret", "nobody"], "has no variable nobody"),
        (["--secret", "main"], "has no variable main"),
        (["--secret", "ticks", "--from", "nowhere"], "has no function nowhere"),
        (["--secret", "ticks:"], "expected NAME or NAME:BYTES"),
        (["--secret", "ticks:0"], "expected NAME or NAME:BYTES"),
        (["--secret", ":4"], "expected NAME or NAME:BYTES"),
    ):
        code, _, err = warifu("m3", "taint", elf, *arguments)
        assert (code, words in err, len(err.splitlines())) == (2, True, 1), err


def test_sizes_match_binutils(warifu: Run, compiled: Compile) -> None:
    elf = compiled(
        "heap.elf", "-O2", "profile/heap.c", "--specs=nano.specs", "--specs=rdimon.specs"
    )
    berkeley = subprocess.run(
        ["arm-none-eabi-size", elf], check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()[1]
    text, data, bss = map(int, berkeley.split()[:3])
    found = m3.size(elf)
    assert found.totals["text"] + found.totals["rodata"] == text
    assert (found.totals["data"], found.totals["bss"]) == (data, bss)
    assert (found.flash, found.memory) == (text + data, data + bss)
    listed = subprocess.run(
        ["arm-none-eabi-nm", "-S", elf], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    bytes_of = {row.name: row.bytes for row in found.symbols}
    assert f"{bytes_of['main']:08x} T main" in listed
    for section in found.sections:
        of_it = sum(row.bytes for row in found.symbols if row.section == section.name)
        assert of_it == section.bytes
    code, out, _ = warifu("m3", "size", elf, "--top", "3", "--format", "json")
    assert code == 0 and {
        row["what"]: row["bytes"] for row in json.loads(out)["tables"][0]["rows"]
    } == {
        **found.totals,
        "flash": found.flash,
        "memory": found.memory,
    }


def test_data_counts_in_flash_and_ram(bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    found = m3.size(elf)
    used = {region.name: region.used for region in found.regions}
    assert used == {"ssram1": found.flash, "ssram23": found.memory, "psram": 0, "block-ram": 0}

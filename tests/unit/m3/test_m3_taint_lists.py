# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 taint`: secrets that are output, and lists of known leaks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from warifu import m3

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]

WAYS = ["writes_string", "writes_byte", "writes_to_console", "sends_by_uart", "sends_by_itm",
        "sends_by_pipe"]  # fmt: skip


def test_each_way_out_of_a_secret_has_a_row(warifu: Run, bare: Compile) -> None:
    elf = bare("outputs.elf", "taint/outputs.c", "-DSECRET")
    found = m3.taint(elf)
    assert not found.leaks
    assert sorted(one.at.function for one in found.outputs) == sorted(WAYS)
    assert {(one.kind, one.count) for one in found.outputs} == {("output", 1)}
    assert all("4 bytes at" in one.secret and "<key>" in one.secret for one in found.outputs)
    code, out, err = warifu("m3", "taint", elf, "--format", "json")
    rows = json.loads(out)["tables"][0]["rows"]
    assert (code, sorted(row["function"] for row in rows)) == (0, sorted(WAYS)), err
    code, out, _ = warifu("m3", "taint", elf)
    assert code == 0
    assert "No leak in this run." in out and "6 places output secret bytes." in out
    # The UART's, ITM's and the pipe's secrets were loaded into a register first.
    loaded = {one.at.function for one in found.outputs if one.loaded_by is not None}
    assert loaded == {way for way in WAYS if way.startswith("sends")}


def test_table_is_as_wide_as_a_terminal_and_counts_one_leak(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    folder = tmp_path / "a-folder-with-a-long-name" / "another-folder-with-a-long-name"
    folder.mkdir(parents=True)
    source = folder / "leak.c"
    source.write_text(
        '#include "warifu_m3.h"\n'
        "unsigned key;\n"
        "static const unsigned char bits[] = {1, 2, 3, 4};\n"
        "__attribute__((noinline)) unsigned a_function_with_quite_a_long_name(void)\n"
        "{ return bits[key & 3]; }\n"
        "int main(void)\n"
        "{ WARIFU_POISON(&key, 4); return a_function_with_quite_a_long_name() == 9; }\n"
    )
    code, out, err = warifu("m3", "taint", bare("long.elf", str(source)))
    assert code == 1, err
    rows, notes = out.rsplit("\n\n", 1)
    assert max(map(len, rows.splitlines())) <= 80, out
    assert ".../leak.c:5" in rows and str(folder) not in rows
    assert notes.startswith("1 leak: a_function_with_quite_a_long_name 1.\n")


def test_public_output_has_no_row(warifu: Run, bare: Compile) -> None:
    found = m3.taint(bare("public.elf", "taint/outputs.c"))
    assert (found.leaks, found.outputs, found.poisoned) == ((), (), 4)


def test_output_is_a_leak_where_it_is_forbidden(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("outputs.elf", "taint/outputs.c", "-DSECRET")
    code, out, _ = warifu("m3", "taint", elf, "--forbid-output")
    assert code == 1 and "6 leaks: " in out
    known = tmp_path / "known.txt"
    known.write_text("".join(f"{way} output\n" for way in WAYS))
    code, out, err = warifu("m3", "taint", elf, "--forbid-output", "--allow", known)
    assert (code, "allows nothing" in err) == (0, False)


def test_known_leaks_are_allowed_by_kind_and_by_offset(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    elf = bare("leaky.elf", "taint/leaky.c")
    leaks = m3.taint(elf).leaks
    assert len(leaks) > 3
    known = tmp_path / "known.txt"
    by_offset = [f"{one.at.function}+{one.at.offset:#x}" for one in leaks]
    by_kind = sorted({f"{one.at.function} {one.kind}" for one in leaks})
    both = [f"{place} {one.kind}" for place, one in zip(by_offset, leaks, strict=True)]
    for entries in (sorted(set(by_offset)), by_kind, sorted(set(both))):
        known.write_text("# reviewed\n\n" + "  # public\n".join(entries) + "\n")
        code, out, err = warifu("m3", "taint", elf, "--allow", known)
        assert code == 0 and "allows nothing" not in err, err
        assert f"{len(leaks)} known leaks, which --allow names, are not shown." in out
        # Without one entry its leaks are shown, and fail.
        known.write_text("\n".join(entries[1:]))
        code, out, _ = warifu("m3", "taint", elf, "--allow", known, "--format", "json")
        others = m3.AllowList.read(known).others(leaks)
        assert code == 1 and 0 < len(others) < len(leaks)
        assert [row["address"] for row in json.loads(out)["tables"][0]["rows"]] == [
            one.at.address for one in others
        ]


def test_routine_without_type_and_size_is_named_and_allowed(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    elf = bare("naked.elf", "taint/naked.c")
    (leak,) = m3.taint(elf).leaks
    assert (leak.kind, leak.at.function, leak.at.offset) == ("branch", "naked_leak", 4)
    assert leak.at.described.endswith("<naked_leak+0x4>")
    known = tmp_path / "known.txt"
    for entry in ("naked_leak branch", "naked_leak+0x4"):
        known.write_text(f"{entry}\n")
        code, out, err = warifu("m3", "taint", elf, "--allow", known)
        assert (code, "allows nothing" in err) == (0, False), err
        assert "1 known leak" in out
    trace = tmp_path / "trace.txt"
    assert warifu("m3", "run", elf, "--trace", trace)[0] == 0
    assert " naked_leak+0x4 " in trace.read_text()
    _, out, _ = warifu("m3", "profile", elf, "--format", "json")
    assert {"naked_first", "naked_leak"} <= {
        row["function"] for row in json.loads(out)["tables"][1]["rows"] if "function" in row
    }


def test_entries_that_allow_nothing_fail(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("leaky.elf", "taint/leaky.c")
    leaks = m3.taint(elf).leaks
    first = leaks[0].at
    known = tmp_path / "known.txt"
    lines = ["gone branch", f"{first.function}+{first.offset + 2:#x}", f"{first.function} divide"]
    needed = sorted({f"{one.at.function} {one.kind}" for one in leaks})
    # With leaks that nobody allowed, and without.
    for entries in (lines, [*lines, *needed]):
        known.write_text("\n".join(entries))
        code, _, err = warifu("m3", "taint", elf, "--allow", known)
        assert code == 1
        said = [line for line in err.splitlines() if "allows nothing" in line]
        assert said == [
            f"warifu: {known}: line {number}: {line} allows nothing in this run: remove it, or run "
            "what it is about"
            for number, line in enumerate(lines, 1)
        ]
    known.write_text("\n".join(needed))
    assert warifu("m3", "taint", elf, "--allow", known)[0] == 0


def test_entries_are_not_judged_by_a_run_that_was_cut_short(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("gone branch\n")
    elf = bare("leaky.elf", "taint/leaky.c")
    options = ("--allow", known, "--max-instructions", 10)
    code, _, err = warifu("m3", "taint", elf, *options)
    assert (code, "allows nothing" in err) == (124, False), err


@pytest.mark.parametrize(
    "line", ["main", "main leak", "main+12x", "main+0x1c branch twice", "main +4", "+4 branch"]
)
def test_invalid_list_names_line_and_form(
    warifu: Run, bare: Compile, tmp_path: Path, line: str
) -> None:
    elf, known = bare("leaky.elf", "taint/leaky.c"), tmp_path / "known.txt"
    known.write_text(f"main branch\n{line}\n")
    code, out, err = warifu("m3", "taint", elf, "--allow", known)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{known}: line 2: expected FUNCTION KIND or FUNCTION+OFFSET" in err


def test_list_that_cannot_be_read(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("leaky.elf", "taint/leaky.c")
    pipe, twice = tmp_path / "pipe", tmp_path / "twice"
    os.mkfifo(pipe)
    twice.write_text("main branch\nmain branch # again\n")
    for path, code, words in (
        (pipe, 2, "is a pipe, not a file"),
        (Path("/dev/zero"), 2, "is a device, not a file"),
        (twice, 2, "line 2: main branch is in line 1 already: remove one"),
        (tmp_path / "none", 3, "No such file"),
    ):
        got, _, err = warifu("m3", "taint", elf, "--allow", path)
        assert (got, len(err.splitlines()), words in err) == (code, 1, True), err

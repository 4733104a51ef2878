# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 run --trace`: the file, its flags, and how it ends. Its lines: crates/m3."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warifu import WarifuError, files, m3

Run = Callable[..., tuple[int, str, str]]


def instructions(file: Path) -> list[str]:
    """The lines of a trace that are instructions, from their place on."""
    lines = file.read_text().splitlines()
    return [line[20:] for line in lines if not line.startswith("#") and line[11:13] != "--"]


def test_trace_has_every_instruction_and_the_run_is_the_same(
    warifu: Run, code: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trace.txt"
    exit_code, out, err = warifu("m3", "run", code, "--trace", file, "--format", "csv")
    plain = m3.run(code)
    assert (exit_code, out) == (9, "begins\n")
    assert f"cycles,{plain.cycles.low},{plain.cycles.high}" in err
    assert f"wrote {file}: {plain.instructions} instructions" in err
    head, *_, summary, end = file.read_text().splitlines()
    assert head.startswith("# CODE.elf on mps2-an385: cycle (high reading)")
    assert len(instructions(file)) == plain.instructions
    assert summary == f"# {plain.instructions} instructions traced"
    assert end == f"# {plain.message}"


def test_part_of_a_run_is_traced(warifu: Run, code: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    for flags, first, others in (
        (["--trace-call", "main"], "main ", {"main", "print", "semihosting"}),
        (["--trace-from", "main", "--trace-to", "print"], "main ", {"main"}),
        (["--trace-from", "main+0x2", "--trace-limit", "1"], "main+0x2 ", {"main"}),
    ):
        assert warifu("m3", "run", code, "--trace", file, *flags)[0] == 9
        lines = instructions(file)
        assert lines[0].startswith(first), lines
        assert {line.split()[0].partition("+")[0] for line in lines} <= others, lines


def test_limit_is_told_and_the_run_goes_on(warifu: Run, code: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    exit_code, out, err = warifu("m3", "run", code, "--trace", file, "--trace-limit", "3")
    assert (exit_code, out) == (9, "begins\n")
    assert len(instructions(file)) == 3
    assert "the trace ends at --trace-limit 3" in err
    assert "# 3 instructions traced, where the limit cut it off\n" in file.read_text()


def test_place_that_is_never_reached_is_told(warifu: Run, code: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    exit_code, _, err = warifu("m3", "run", code, "--trace", file, "--trace-from", "sv_call")
    assert (exit_code, instructions(file)) == (9, [])
    assert "nothing was traced" in err


def test_mistakes_are_refused_in_one_line(warifu: Run, code: Path, tmp_path: Path) -> None:
    file, pipe = tmp_path / "trace.txt", tmp_path / "pipe"
    os.mkfifo(pipe)
    text = tmp_path / "a.elf"
    text.write_text("text")
    exit_code, _, err = warifu("m3", "run", text, "--trace", file)
    assert (exit_code, f"warifu: {text}: is not an ELF file" in err) == (2, True), err
    for flags, words in (
        (["--trace", file, "--trace-from", "nowhere"], "the program has no symbol nowhere: name"),
        (["--trace", file, "--trace-call", "a", "--trace-to", "b"], "--trace-call excludes"),
        (["--trace-limit", "3"], "--trace-limit has no effect without --trace FILE"),
        (["--trace", pipe], f"{pipe}: is a pipe, not a file"),
        (["--trace", tmp_path], "a folder is where a file should be"),
        (["--trace", tmp_path / "none" / "a"], "No such file or directory"),
    ):
        exit_code, _, err = warifu("m3", "run", code, *flags)
        assert exit_code in (2, 3), err
        assert words in err and len(err.splitlines()) == 1, err
    assert not file.exists()


def test_link_is_replaced_and_not_followed(warifu: Run, code: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("kept")
    link.symlink_to(target)
    assert warifu("m3", "run", code, "--trace", link)[0] == 9
    assert not link.is_symlink()
    assert target.read_text() == "kept"


def test_ctrl_c_leaves_what_was_traced(endless: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    command = [sys.executable, "-m", "warifu.cli", "m3", "run", endless, "--trace", file]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode() == f"warifu: interrupted; {file} has the trace so far\n"
    assert file.read_text().endswith("# interrupted\n")
    assert instructions(file)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.txt"]


def test_full_disk_is_named_and_nothing_is_left(endless: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    file = disk / "trace.txt"
    inside = 'mount -t tmpfs -o size=64k small "$0" && "$@"; code=$?; ls -A "$0"; exit $code'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, disk]
    command += [sys.executable, "-m", "warifu.cli", "m3", "run", endless, "--trace", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr == (
        f"warifu: {file}: No space left on device: make room on the disk, then run the same "
        "command again\n"
    )
    assert done.stdout.splitlines()[1:] == []


def test_python_traces_to_a_file(code: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    seen = m3.trace(code, file, m3.Part(call="main"))
    assert (seen.run.code, seen.lines, seen.cut) == (9, len(instructions(file)), False)
    with pytest.raises(ValueError, match="call: excludes since and until"):
        m3.Part(since="main", call="main")
    with pytest.raises(ValueError, match="limit is 0: expected a whole number from 1"):
        m3.Part(limit=0)
    with pytest.raises(WarifuError, match="has no symbol nowhere"):
        m3.trace(code, file, m3.Part(until="nowhere"))
    with pytest.raises(files.FileRefused, match="is a device"):
        m3.trace(code, Path("/dev/null"))
    assert seen.lines == len(instructions(file)), "the earlier trace is unchanged"


def test_trace_on_stdout_is_without_the_output(warifu: Run, code: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    assert warifu("m3", "run", code, "--trace", file)[0] == 9
    exit_code, out, err = warifu("m3", "run", code, "--trace", "-")
    assert (exit_code, out) == (9, file.read_text())
    assert err.startswith("begins\n") and "wrote stdout: " in err
    assert [path.name for path in tmp_path.iterdir()] == ["trace.txt"]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 run`: output, exit codes, and one-line errors."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warifu import Results, WarifuError, _core, m3
from warifu.cli.errors import ENVIRONMENT

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]

#: -DEND of test-programs/command-line/ends.c, exit code, and a pattern of the error.
ENDS = {
    "UNDEFINED": (122, r"undefined instruction \(UsageFault UNDEFINSTR\) at 0x\w+ <main\+0x\w+>"),
    "WILD_JUMP": (122, r"wild jump to 0x30000000, where there is no memory .* <main\+0x\w+>"),
    "NEVER_EXECUTED": (122, r"wild jump to 0xe000e000, .* <main\+0x\w+>"),
    "NOT_THUMB": (122, r"jump to 0x20000000 without the Thumb bit .* <main\+0x\w+>"),
    "STACK_OVERFLOW": (121, r"stack overflow: SP is 0x\w+, below .* <deeper(\+0x\w+)?>"),
    "ENDLESS": (124, r"still running after 1000000 instructions: .* <main\+0x\w+>"),
    "LOAD_FROM_NOTHING": (122, r"load from 0x60000000, where there is no memory .* <main\+0x\w+>"),
    "STORE_TO_NOTHING": (122, r"store to 0x60000000, .* <main\+0x\w+>"),
    "BREAKPOINT": (120, r"breakpoint \(BKPT 3\) without a debugger at 0x\w+ <main\+0x\w+>"),
    "ASLEEP": (119, r"asleep forever: .* at 0x\w+ <main\+0x\w+>"),
    "RESET": (118, r"requested a reset .* <main\+0x\w+>"),
    "NO_SUCH_CALL": (117, r"unsupported semihosting call 0x77 at 0x\w+ <main\+0x\w+>"),
    "DIVISION": (122, r"division by zero \(UsageFault DIVBYZERO\) at 0x\w+ <main\+0x\w+>"),
}
REGISTERS = "".join(rf"{name}=[0-9a-f]{{8}} " for name in (*(f"r{n}" for n in range(13)), "sp"))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("verb", ["run", "profile", "taint"])
def test_stop_reasons_message_and_exit_code(
    warifu: Run, bare: Compile, end: str, verb: str
) -> None:
    elf = bare(f"{end}.elf", "command-line/ends.c", f"-DEND={end}", "-lgcc")
    code, out, err = warifu("m3", verb, elf, "--max-instructions", "1000000")
    expected, words = ENDS[end]
    assert code == expected, err
    last = err.splitlines()[-1]
    assert re.fullmatch(rf"warifu: {elf}: .*{words}.*; {REGISTERS}lr=\w+ pc=\w+ xpsr=\w+", last)
    assert sum("warifu:" in line for line in err.splitlines()) == 1
    # The output before the stop is complete.
    assert "begins\n" in (out if verb == "run" else err)


def test_stack_overflow_by_each_kind_of_frame(warifu: Run, bare: Compile) -> None:
    for level in ("-O0", "-Os", "-O3"):
        elf = bare(
            f"overflow{level}.elf", "command-line/ends.c", "-DEND=STACK_OVERFLOW", level, "-lgcc"
        )
        code, _, err = warifu("m3", "run", elf)
        assert (code, "stack overflow" in err) == (121, True), err
    # Frame sizes that SUB can and cannot encode.
    for size in (0x400000, 0x400123):
        elf = bare(f"frame{size}.elf", "command-line/ends.c", "-DEND=FRAME", f"-DBYTES={size}")
        code, _, err = warifu("m3", "run", elf)
        assert (code, "stack overflow" in err, "<large+" in err) == (121, True, True), err


def test_exit_code_of_program(warifu: Run, bare: Compile) -> None:
    elf = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")
    assert warifu("m3", "run", elf)[:2] == (9, "begins\n")
    handled = bare("HANDLED.elf", "command-line/ends.c", "-DEND=HANDLED")
    assert warifu("m3", "run", handled)[0] == 122
    assert warifu("m3", "run", handled, "--deliver-faults")[0] == 42


def damaged(good: bytes) -> dict[str, tuple[bytes, str]]:
    """Damaged files by kind, with a part of the error."""
    other = bytearray(good)
    other[18:20] = (8).to_bytes(2, "little")  # e_machine: MIPS
    big = bytearray(good)
    big[5] = 2
    far = bytearray(good)
    start = int.from_bytes(far[28:32], "little")  # e_phoff
    far[start + 12 : start + 16] = (0x9000_0000).to_bytes(4, "little")  # p_paddr
    long = bytearray(good)
    long[start + 16 : start + 24] = 2 * (0x0FFF_FFFF).to_bytes(4, "little")  # p_filesz, p_memsz
    none = bytearray(good)
    none[44:46] = (0).to_bytes(2, "little")  # e_phnum
    thumb = bytearray(good)
    at = int.from_bytes(thumb[start + 4 : start + 8], "little")  # p_offset: the vector table
    thumb[at + 4] &= 0xFE
    thumb[24] &= 0xFE  # e_entry
    return {
        "empty": (b"", "is not an ELF file: name a linked program"),
        "text": (b"#!/bin/sh\necho hello\n" * 9, "is not an ELF file: name a linked program"),
        "64 bits": (
            Path(sys.executable).resolve().read_bytes()[:100_000],
            "not a valid 32-bit ELF file: ",
        ),
        "head only": (good[:40], "link the program anew with arm-none-eabi-gcc"),
        "cut": (good[: len(good) // 3], "ELF file"),
        "machine": (bytes(other), "for machine 8, not for Arm"),
        "big-endian": (bytes(big), "ELF file"),
        "elsewhere": (bytes(far), "lies outside the memories of mps2-an385"),
        "beyond its end": (bytes(long), "a segment extends beyond the end of the file"),
        "nothing to load": (bytes(none), "no segment to load"),
        "no Thumb code": (bytes(thumb), "without the Thumb bit"),
    }


@pytest.mark.parametrize("verb", ["run", "profile", "taint", "size"])
def test_invalid_elf_file_message(warifu: Run, bare: Compile, tmp_path: Path, verb: str) -> None:
    good = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE").read_bytes()
    for what, (content, words) in damaged(good).items():
        if verb == "size" and what in ("elsewhere", "no Thumb code"):
            continue  # these can be measured
        bad = tmp_path / "bad.elf"
        bad.write_bytes(content)
        code, out, err = warifu("m3", verb, bad)
        assert (code, out, len(err.splitlines())) == (2, "", 1), (what, err)
        assert err.startswith(f"warifu: {bad}: ") and words in err, (what, err)


def test_object_file_and_program_for_another_chip(
    warifu: Run, compiled: Compile, bare: Compile
) -> None:
    code, _, err = warifu(
        "m3", "run", compiled("ends.o", "-c", "-DEND=CODE", "command-line/ends.c")
    )
    assert (code, "link it to an executable" in err) == (2, True)
    elf = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")
    code, _, err = warifu("m3", "run", elf, "--chip", "sam3x8e")
    assert (code, "0x20400000 as initial SP, outside the memories of sam3x8e" in err) == (2, True)
    code, _, err = warifu("m3", "run", elf, "--chip", "stm32f103")
    assert (code, "0x20400000 as initial SP, outside the memories" in err) == (2, True)
    code, _, err = warifu("m3", "run", elf, "--chip", "lpc1769")
    assert (code, "expected lpc1768, stm32f103, " in err) == (2, True)


def test_unreadable_file(warifu: Run, tmp_path: Path) -> None:
    for path in (tmp_path / "none.elf", tmp_path):
        code, _, err = warifu("m3", "run", path)
        assert (code, len(err.splitlines())) == (3, 1), err


@pytest.mark.parametrize(
    "text", ["flash", "flash=", "=2", "flash=-1", "flash=two", "flash=9999", "flash=" + "9" * 5000]
)
def test_invalid_wait_states(warifu: Run, bare: Compile, text: str) -> None:
    elf = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")
    code, _, err = warifu("m3", "run", elf, "--wait-states", text)
    assert (code, f"--wait-states {text}: expected MEMORY=CYCLES" in err) == (2, True)


def test_wait_states_make_cycles_assumed(warifu: Run, bare: Compile) -> None:
    elf = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")
    none = m3.run(elf)
    waits = m3.run(elf, m3.Options(wait_states={"ssram23": 3}))
    assert waits.cycles.high > none.cycles.high
    assert (none.kind, waits.kind) == ("emulated", "assumed")
    _, _, err = warifu("m3", "run", elf, "--wait-states", "ssram23=3")
    assert "Kind: assumed" in err and "ssram23 3" in err
    code, _, err = warifu("m3", "run", elf, "--wait-states", "flash=3")
    assert (code, "its memories are ssram1, ssram23, psram" in err) == (2, True)


def test_console_and_arguments(warifu: Run, compiled: Compile, tmp_path: Path) -> None:
    elf = compiled("echo.elf", "-O2", "--specs=rdimon.specs", "command-line/echo.c")
    text = tmp_path / "input"
    text.write_bytes(b"one\ntwo\n")
    # Output need not be text.
    found = m3.run(elf, m3.Options(input=b"one\ntwo\xff\n", arguments="echo -v fast"))
    assert (found.stop, found.code) == ("exit", 3)
    assert found.output == b"-v|fast|\n<one>\n<two\xff>\n"
    code, out, err = warifu("m3", "run", elf, "--input", text, "--args", "echo -v fast")
    assert code == 3 and out.startswith("-v|fast|\n<one>\n")
    assert "instructions" in err and "cycles" in err


def test_json_summary_with_time(warifu: Run, bare: Compile) -> None:
    elf = bare("CODE.elf", "command-line/ends.c", "-DEND=CODE")
    _, out, err = warifu("m3", "run", elf, "--format", "json", "--mhz", "100")
    rows = {row["what"]: row for row in json.loads(err)["tables"][0]["rows"]}
    assert out == "begins\n"
    done = m3.run(elf)
    assert rows["instructions"]["high"] == done.instructions
    assert rows["cycles"] == {**rows["cycles"], "low": done.cycles.low, "high": done.cycles.high}
    assert rows["time"]["high"] == done.cycles.high * 10


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the command line in a process, and kills it at the end."""
    command = [sys.executable, "-m", "warifu.cli", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_output_is_streamed_and_ctrl_c_stops_run(bare: Compile) -> None:
    elf = bare("ENDLESS.elf", "command-line/ends.c", "-DEND=ENDLESS")
    with started("m3", "run", elf) as process:
        assert process.stdout is not None
        # The program never exits, so this line was not buffered until its end.
        assert process.stdout.readline() == b"begins\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, b"")
        assert err == b"warifu: interrupted; nothing was written\n"


def test_ctrl_c_during_large_poison_requests(bare: Compile) -> None:
    elf = bare("POISONS.elf", "command-line/floods.c", "-DFLOOD=POISONS")
    with started("m3", "taint", elf) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begins\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130


def test_output_beyond_limit_is_dropped_and_counted(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    elf = bare("OUTPUT.elf", "command-line/floods.c", "-DFLOOD=OUTPUT")
    kept = m3.run(elf)
    assert kept.output == b"begins\n" + bytes(m3.MAX_OUTPUT - 7)
    assert (kept.ok, kept.lost_output) == (True, (1 << 20) + 7)
    taken = []
    whole = m3.run(elf, output=lambda bytes_: taken.append(len(bytes_)))
    assert (sum(taken), whole.output, whole.lost_output) == (17 * (1 << 20) + 7, b"", 0)
    file = tmp_path / "out.toml"
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "100", "--out", file)
    assert (code, "printed more than 16777216 bytes" in err, file.exists()) == (3, True, False), err


def test_mark_name_is_truncated(bare: Compile) -> None:
    run = m3.run(bare("MARKS.elf", "command-line/floods.c", "-DFLOOD=MARKS"))
    assert (len(run.marks), run.lost_marks) == (1 << 20, 7)
    assert run.marks[0].name == ("abcdefghijklmnopqrstuvwxyz" * 10)[:256]
    assert (len(run.marks[743].name), len(run.marks[899].name)) == (256, 100)


def test_exception_in_output_callback_stops_run(bare: Compile) -> None:
    elf = bare("ENDLESS.elf", "command-line/ends.c", "-DEND=ENDLESS")

    def refuse(printed: bytes) -> None:
        raise ValueError(printed)

    with pytest.raises(ValueError, match="begins"):
        m3.run(elf, output=refuse)


def test_runs_are_reproducible(bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    assert m3.run(elf) == m3.run(elf)
    # Observers change nothing.
    assert m3.profile(elf).run == m3.run(elf)
    assert m3.taint(elf).run == m3.run(elf)


def test_run_written_as_observations(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    out = tmp_path / "results"
    assert warifu("m3", "profile", elf, "--out", out)[0] == 0
    results = Results.open(str(out))
    (case,) = results.cases
    assert (results.method(case), results.evidence(case)) == ("emulated", "published")
    assert results.cases[case]["chip"] == "mps2-an385"
    rows = {(row["metric"], row["stage"]): row for row in results.rows(case).to_dicts()}
    run = m3.run(elf)
    assert rows["m3.cycles.high", None]["value"] == run.cycles.high
    assert rows["m3.cycles.low", None]["unit"] == "cycles"
    assert rows["m3.stack", "deep"]["value"] > 512
    assert {stage for _, stage in rows} == {None, "leaves", "deep", "jumps", "ticks"}
    # The same program with other options is another case, which replaces the first.
    assert warifu("m3", "run", elf, "--out", out, "--wait-states", "ssram23=1")[0] == 0
    again = Results.open(out)
    assert list(again.cases) != [case] and again.evidence(next(iter(again.cases))) == "assumed"


def test_results_of_other_kind_are_kept(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text('{"half": "measured"}')
    code, _, err = warifu("m3", "run", elf, "--out", tmp_path / "other")
    assert (code, "holds results of another kind (measured)" in err) == (2, True)
    assert (tmp_path / "other" / "manifest.json").read_text() == '{"half": "measured"}'


def test_results_that_the_file_system_refuses_are_no_mistake_of_the_command(
    warifu: Run, bare: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(whole: Path, folder: Path) -> None:
        raise _core.StorageError(f"{folder}: cannot rename: read-only file system: choose another")

    elf, out = bare("calls.elf", "profile/calls.c"), tmp_path / "results"
    assert warifu("m3", "run", elf, "--out", out)[0] == 0
    kept = (out / "manifest.json").read_bytes()
    monkeypatch.setattr(_core, "replace_results", refuses)
    code, _, err = warifu("m3", "run", elf, "--out", out)
    assert code == ENVIRONMENT
    assert re.search(rf"^warifu: {out}: cannot rename: ", err, re.MULTILINE)
    assert (out / "manifest.json").read_bytes() == kept
    assert list(tmp_path.iterdir()) == [out]


def test_folders_beside_the_results_stay(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    """Both were removed, whatever was in them."""
    elf, out = bare("calls.elf", "profile/calls.c"), tmp_path / "results"
    others = [tmp_path / "results.partial", tmp_path / "results.old"]
    for other in others:
        other.mkdir()
        (other / "notes").write_text("somebody's")
    for _ in range(2):
        assert warifu("m3", "run", elf, "--out", out)[0] == 0
    assert [(other / "notes").read_text() for other in others] == ["somebody's"] * 2
    assert sorted(tmp_path.iterdir()) == sorted([out, *others])


def test_mark_named_all_in_observations(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    source = tmp_path / "marks.c"
    source.write_text('#include "warifu_m3.h"\nint main(void) { WARIFU_MARK("all"); return 0; }\n')
    elf, out = bare("mark_all.elf", str(source)), tmp_path / "results"
    for verb in ("run", "profile"):
        assert warifu("m3", verb, elf, "--out", out)[0] == 0
        results = Results.open(out)
        (case,) = results.cases
        assert set(results.rows(case)["stage"]) == {None, "all"}


def test_errors_name_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.elf"
    bad.write_bytes(b"no")
    for ask in (m3.run, m3.profile, m3.taint, m3.size):
        with pytest.raises(WarifuError, match=r"bad\.elf: is not an ELF file: name a linked"):
            ask(bad)


@pytest.mark.parametrize("verb", [[], ["run"], ["profile"], ["taint"], ["size"]])
def test_help_has_examples(warifu: Run, verb: list[str]) -> None:
    code, out, _ = warifu("m3", *verb, "--help")
    assert code == 0
    assert "warifu m3" in out and ("Example" in out or "Begin with" in out)

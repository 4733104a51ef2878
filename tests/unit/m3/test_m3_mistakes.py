# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Invalid input to `warifu m3` and `warifu.m3`: one-line errors without tracebacks."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.swapped import said_of_a_pipe
from warifu import Results, _core, m3
from warifu.m3.running import MAX_ARGUMENTS

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("max_instructions", -1, "max_instructions is -1: expected a whole number from 1"),
        ("max_instructions", 0, "max_instructions is 0: expected a whole number from 1"),
        ("max_instructions", 2**64, "expected a whole number from 1 to 18446744073709551615"),
        ("max_instructions", 1.5, "max_instructions is 1.5: expected a whole number"),
        ("wait_states", {"psram": -1}, r"wait_states\['psram'\] is -1: expected .* 0 to 1000"),
        ("wait_states", {"psram": 1001}, r"wait_states\['psram'\] is 1001: expected"),
        ("wait_states", {"psram": "2"}, r"wait_states\['psram'\] is '2': expected"),
        ("input", "text", r"input is of type str: expected bytes, such as text\.encode\(\)"),
        ("arguments", b"text", "arguments is of type bytes: expected a str"),
        ("arguments", "x" * 255, "arguments: has 255 bytes: expected at most 254"),
        ("arguments", "\N{LATIN SMALL LETTER E WITH ACUTE}" * 128, "arguments: has 256 bytes"),
        ("arguments", "a\0b", "arguments: has a zero byte"),
        ("arguments", "\udcff", "arguments: is not valid UTF-8 text"),
    ],
)
def test_invalid_options_name_field(field: str, value: object, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        m3.Options(**{field: value})  # type: ignore[arg-type]


def test_longest_command_line_reaches_program(compiled: Compile) -> None:
    elf = compiled("echo.elf", "-O2", "--specs=rdimon.specs", "command-line/echo.c")
    for line, words in (
        ("echo " + "x" * (MAX_ARGUMENTS - 5), b"x" * (MAX_ARGUMENTS - 5) + b"|\n"),
        # An unclosed quote extends to the end.
        ("echo 'a b' \"c d", b"a b|c d|\n"),
    ):
        assert m3.run(elf, m3.Options(arguments=line)).output.splitlines(True)[0] == words


@pytest.mark.parametrize(
    ("secret", "error", "words"),
    [
        (("ticks", -1), ValueError, "the bytes of ticks is -1: expected a whole number from 1"),
        (("ticks", 0), ValueError, "the bytes of ticks is 0: expected a whole number from 1"),
        (("ticks", "4"), TypeError, "the bytes of ticks is '4': expected a whole number from 1"),
        ("ticks", TypeError, "secrets has 'ticks': expected pairs such as"),
    ],
)
def test_invalid_secret_pairs(
    bare: Compile, secret: object, error: type[Exception], words: str
) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    with pytest.raises(error, match=words):
        m3.taint(elf, [secret])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--mhz", "inf"), "inf is not a clock rate: expected MHz"),
        (("--mhz", "nan"), "--mhz"),
        (("--wait-states", "psram=1", "--wait-states", "psram=2"), "psram: given twice"),
        (("--args", "x" * 255), "--args: has 255 bytes: expected at most 254"),
        (("--args", "\udcff"), "--args: is not valid UTF-8 text"),
    ],
)
def test_invalid_flags(
    warifu: Run, bare: Compile, tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    bench = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    rate = () if "--mhz" in flags else ("--mhz", "10")
    for command in (("m3", "run", elf), ("m3", "profile", elf), ("calibrate", "m3", bench, *rate)):
        code, out, err = warifu(*command, *flags)
        assert (code, out, words in err, len(err.splitlines())) == (2, "", True, 1), err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["run", "profile", "taint", "size"])
def test_device_pipe_and_huge_file(warifu: Run, tmp_path: Path, verb: str) -> None:
    pipe, huge = tmp_path / "pipe.elf", tmp_path / "huge.elf"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(8 << 30)
    for path, words in (
        (Path("/dev/zero"), "not a regular file"),
        (pipe, "not a regular file"),
        (huge, "has 8589934592 bytes: expected an ELF file of at most 268435456"),
    ):
        code, out, err = warifu("m3", verb, path)
        assert (code, out, len(err.splitlines()), words in err) == (2, "", 1, True), err


def test_console_input_from_device_pipe_folder_and_huge_file(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    pipe, huge = tmp_path / "pipe", tmp_path / "huge"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(8 << 30)
    for path, code, words in (
        (Path("/dev/zero"), 2, "is a device, not a file: name a regular file"),
        (pipe, 2, "is a pipe, not a file: name a regular file"),
        (huge, 2, "is longer than 64,000,000 bytes"),
        (tmp_path, 3, "s a directory"),
    ):
        got, out, err = warifu("m3", "run", elf, "--input", path)
        assert (got, out, len(err.splitlines()), words in err) == (code, "", 1, True), err
        assert str(path) in err


def test_endless_console_input_on_stdin(bare: Compile) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    start = "import sys; from warifu.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "m3", "run", str(elf), "--input", "-"]
    with Path("/dev/zero").open("rb") as zeros:
        done = subprocess.run(command, stdin=zeros, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--input -: stdin has more than 64,000,000 bytes" in done.stderr
    assert len(done.stderr.splitlines()) == 1


PRINTS_UNMAPPED = r"""
static int host(int call, const void *parameter)
{
    register int r0 __asm("r0") = call;
    register const void *r1 __asm("r1") = parameter;
    __asm volatile("bkpt #0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

int main(void)
{
    unsigned write[3] = {2, 0x30000000, 5};
    return CALL == 4 ? host(4, (void *)0x30000000) : host(CALL, write);
}
"""


@pytest.mark.parametrize(("call", "name"), [(4, "SYS_WRITE0"), (5, "SYS_WRITE")])
def test_output_from_unmapped_memory(
    warifu: Run, bare: Compile, tmp_path: Path, call: int, name: str
) -> None:
    source = tmp_path / "prints.c"
    source.write_text(PRINTS_UNMAPPED)
    elf = bare(f"prints{call}.elf", str(source), f"-DCALL={call}")
    code, out, err = warifu("m3", "run", elf)
    assert (code, out) == (122, "")
    assert f"semihosting call {name} reads from 0x30000000, where there is no memory at" in err
    assert "<main+" in err or "<host" in err
    assert m3.run(elf).stop == "unmapped-semihosting"


def test_pipe_that_takes_the_place_of_a_program_after_the_check(tmp_path: Path) -> None:
    call = 'm3.run("program.elf")'
    said = said_of_a_pipe(tmp_path, "program.elf", b"\x7fELF", "from warifu import m3", call)
    assert said == "program.elf: not a regular file: expected an ELF file\n"


def elf_of_symbols(symbols: int, name_bytes: int) -> bytes:
    """A program (ELF for the Arm Architecture; System V ABI, chapter 4) of one return instruction
    and any number of functions, whose names all lie on the same bytes."""
    vectors, code = 0, struct.pack("<II", 0x2000_1000, 0x9) + b"\x70\x47"
    names = b"\0" + b"n" * name_bytes + b"\0"
    one = struct.pack("<IIIBBH", 1, 0x9, 2, 0x12, 0, 1)  # global, a function, in section 1
    table = bytes(len(one)) + one * symbols
    at_code = 52 + 32
    at_names = at_code + len(code)
    at_table = at_names + len(names)
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 6, vectors, at_code, len(code), 0, 0, 4, 0),  # SHT_PROGBITS, allocated, code
        (0, 2, 0, 0, at_table, len(table), 3, 1, 4, 16),  # SHT_SYMTAB, its names in section 3
        (0, 3, 0, 0, at_names, len(names), 0, 0, 1, 0),  # SHT_STRTAB
    ]
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, 0x9, 52, at_table + len(table), 0x0500_0000, 52, 32, 1, 40,
        len(sections), 3,
    )  # fmt: skip
    segment = struct.pack("<8I", 1, at_code, vectors, vectors, len(code), len(code), 5, 4)
    return header + segment + code + names + table + b"".join(
        struct.pack("<10I", *one) for one in sections
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["run", "profile", "taint"])
def test_names_that_share_their_bytes(warifu: Run, tmp_path: Path, verb: str) -> None:
    """100,000 of 10,000 bytes each would take a gigabyte, out of a file of 1.6 MB."""
    (path := tmp_path / "few.elf").write_bytes(elf_of_symbols(10, 10_000))
    assert "symbol names" not in warifu("m3", verb, path, "--max-instructions", "10")[2]
    (path := tmp_path / "many.elf").write_bytes(elf_of_symbols(100_000, 10_000))
    assert path.stat().st_size < 2_000_000
    code, _, err = warifu("m3", verb, path)
    assert code == 2
    assert "the symbol names of this ELF file exceed 67108864 bytes in total: strip it" in err


@pytest.mark.parametrize("group", [["m3"], ["calibrate"], ["card"]])
def test_command_group_without_command_shows_help(warifu: Run, group: list[str]) -> None:
    code, out, err = warifu(*group)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ") and "\n\nCommands:\n" in err
    assert err == warifu(*group, "--help")[1]


@pytest.mark.parametrize("verb", ["run", "profile", "taint", "size"])
def test_outdated_compiled_module_message(
    warifu: Run, bare: Compile, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    elf = bare("calls.elf", "profile/calls.c")
    monkeypatch.delattr(_core, f"m3_{verb}")
    code, out, err = warifu("m3", verb, elf)
    assert (code, out) == (3, "")
    assert err == "warifu: the compiled part is older than this source: run `make setup`\n"


OTHER = "a Cortex-M4 or M7 (ARMv7E-M)"


@pytest.mark.parametrize("verb", ["run", "profile", "taint"])
def test_program_for_another_core_is_refused_or_run_with_a_note(
    warifu: Run, bare: Compile, tmp_path: Path, verb: str
) -> None:
    elf = bare("m4.elf", "taint/leaky.c", "-mcpu=cortex-m4")
    code, out, err = warifu("m3", verb, elf)
    assert (code, out) == (2, "")
    assert f"{elf}: this ELF file is for {OTHER}" in err
    assert "--any-core" in err and len(err.splitlines()) == 1
    code, out, err = warifu("m3", verb, "--any-core", elf)
    assert code == (1 if verb == "taint" else 0), err
    assert f"was built for {OTHER}" in err and "are a Cortex-M3's" in err


def test_results_of_a_program_for_another_core_say_so(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    other = bare("m4.elf", "taint/leaky.c", "-mcpu=cortex-m4")
    own = bare("m3.elf", "taint/leaky.c")
    for elf, core, kind in ((other, OTHER, "assumed"), (own, None, "published")):
        folder = tmp_path / elf.stem
        assert warifu("m3", "run", "--any-core", elf, "--out", folder)[0] == 0
        results = Results.open(folder)
        (case,) = results.cases
        assert results.evidence(case) == kind
        built_for = results.cases[case].get("built_for")
        assert built_for == m3.run(elf, m3.Options(any_core=True)).other_core
        assert (built_for is None) == (core is None)
        assert core is None or built_for.startswith(core)


def test_calibration_of_a_program_for_another_core_is_refused_or_says_so(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    elf = bare("bench4.elf", "calibrate/bench.c", "-mcpu=cortex-m4", "-lgcc")
    file = tmp_path / "bench4.toml"
    command = ("calibrate", "m3", elf, "--mhz", "50", "--out", file)
    code, out, err = warifu(*command)
    assert (code, out, f"this ELF file is for {OTHER}" in err) == (2, "", True), err
    assert "--any-core" in err and not file.exists()
    code, out, err = warifu(*command, "--any-core")
    assert (code, f"was built for {OTHER}" in err) == (0, True), err
    assert f"Built for {OTHER}" in out and "Kind: assumed." in out
    profile = tomllib.loads(file.read_text())
    assert profile["kind"] == "assumed" and f"built for {OTHER}" in profile["description"]
    assert all(one["kind"] == "assumed" for one in profile["operation"])
    record = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert record["details"]["built_for"].startswith(OTHER)


MARKS = r"""
#include "warifu_m3.h"
int main(void)
{
    WARIFU_MARK("\x1b[31mred\x07\x9b");
    return 0;
}
"""


def test_control_characters_in_mark_are_escaped(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    source = tmp_path / "marks.c"
    source.write_text(MARKS)
    elf = bare("marks.elf", str(source))
    name = m3.run(elf).marks[0].name
    assert name.startswith("\x1b[31mred\x07")
    for form in ("table", "md", "csv", "latex"):
        for verb in ("run", "profile"):
            code, out, err = warifu("m3", verb, elf, "--format", form)
            shown = err if verb == "run" else out
            assert code == 0 and "[31mred" in shown
            assert not any(letter < " " and letter != "\n" for letter in shown), shown
    # JSON has it unchanged.
    _, out, _ = warifu("m3", "profile", elf, "--format", "json")
    assert json.loads(out)["tables"][2]["rows"][0]["from"] == name


def test_run_without_secrets_fails(warifu: Run, bare: Compile) -> None:
    elf = bare("silent.elf", "taint/leaky.c", "-DWARIFU_M3=0")
    code, _, err = warifu("m3", "taint", elf)
    assert (code, err.count("nothing was secret in this run: mark secrets with")) == (2, 1)
    code, _, err = warifu("m3", "taint", elf, "--secret", "key", "--from", "fault")
    assert (code, err.count("nothing was secret in this run; fault was never reached")) == (2, 1)
    assert warifu("m3", "taint", elf, "--secret", "key")[0] == 1
    code, _, err = warifu("m3", "taint", elf, "--secret", "key:17")
    assert code == 2
    assert "key:17 is larger than the variable, which has 16 bytes" in err


def test_units_that_share_a_line_program_give_no_lines(
    warifu: Run, code: Path, tmp_path: Path
) -> None:
    """2400 units that claim all addresses, with one line program of 40,000 rows."""
    unit = struct.pack("<HIBBIII", 4, 0, 4, 1, 0, 0, 0x7FFFFFFF)
    header = bytes([1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0]) + b"a.c\0\0\0\0\0"
    rows = b"\0\x05\x02" + struct.pack("<I", 0) + bytes([30]) * 40_000 + b"\0\x01\x01"
    line = struct.pack("<HI", 2, len(header)) + header + rows
    sections = {
        "info": (struct.pack("<I", len(unit)) + unit) * 2400,
        "abbrev": bytes([1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0]),
        "line": struct.pack("<I", len(line)) + line,
    }
    elf = tmp_path / "shared.elf"
    change = ["arm-none-eabi-objcopy", "--strip-debug"]
    for name, content in sections.items():
        (tmp_path / name).write_bytes(content)
        change += ["--add-section", f".debug_{name}={tmp_path / name}"]
    subprocess.run([*change, code, elf], check=True, timeout=60)
    exit_code, out, err = warifu("m3", "profile", elf, "--by", "line", "--format", "csv")
    assert exit_code == 9 and "main" in out
    assert "warning: no source lines: the debugging information" in err
    assert "more than 512 MiB" in err and "strip --strip-debug" in err
    exit_code, out, err = warifu("m3", "taint", elf, "--secret", "vectors:4")
    assert (exit_code, out) == (2, "") and "more than 512 MiB" in err

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `warifu m3` and `warifu calibrate m3` write never takes the place of what they read."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import files, m3
from warifu.cli import screen

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]
OUTPUTS = [
    ("run", "--trace"),
    ("run", "--out"),
    ("profile", "--flame-graph"),
    ("profile", "--folded"),
    ("profile", "--out"),
]


@pytest.fixture
def program(code: Path, tmp_path: Path) -> Path:
    """A program that may be lost."""
    copy = tmp_path / "program.elf"
    copy.write_bytes(code.read_bytes())
    return copy


@pytest.mark.parametrize(
    "words",
    [("m3", "run"), ("m3", "profile"), ("m3", "size"), ("calibrate", "m3", "--mhz", "50")],
    ids=" ".join,
)
def test_tables_fit_a_terminal_of_80_columns(
    warifu: Run, bare: Compile, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(screen, "columns", lambda _: 80)
    elf = bare("WIDE.elf", "calibrate/bench.c", "-lgcc")
    out = ("--out", "device.toml") if words[0] == "calibrate" else ()
    _, said, err = warifu(*words, elf, *out)
    lines = [*said.splitlines(), *err.splitlines()]
    assert any(line.startswith("---") for line in lines), "no table"
    # Warnings are sentences, which a terminal breaks.
    assert not [line for line in lines if len(line) > 80 and not line.startswith("warning: ")]


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
@pytest.mark.parametrize("name", ["itself", "symbolic", "hard"])
def test_program_is_not_overwritten(
    warifu: Run, program: Path, verb: str, flag: str, name: str
) -> None:
    before = program.read_bytes()
    target = program if name == "itself" else program.with_name(name)
    if name == "symbolic":
        target.symlink_to(program)
    elif name == "hard":
        os.link(program, target)
    code, out, err = warifu("m3", verb, program, flag, target)
    assert (code, out) == (2, ""), err
    assert f"{flag} {target}: is {program}" in err and "write to another file" in err
    assert program.read_bytes() == before and target.read_bytes() == before


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_chip_and_console_input_are_not_overwritten(
    warifu: Run, program: Path, tmp_path: Path, verb: str, flag: str
) -> None:
    chip, text = tmp_path / "chip.toml", tmp_path / "input.txt"
    chip.write_bytes((ROOT / "crates" / "m3" / "chips" / "mps2-an385.toml").read_bytes())
    text.write_text("input")
    for path in (chip, text):
        before = path.read_bytes()
        code, out, err = warifu(
            "m3", verb, program, "--chip", chip, "--input", text, flag, path
        )  # fmt: skip
        assert (code, out, f"{flag} {path}: is {path}, which is read" in err) == (2, "", True), err
        assert path.read_bytes() == before


def test_two_outputs_are_two_files(warifu: Run, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "both"
    code, out, err = warifu("m3", "profile", program, "--folded", file, "--flame-graph", file)
    assert (code, out, "--flame-graph and --folded are one file" in err) == (2, "", True), err
    assert not file.exists()


def test_profile_replaces_a_link_and_no_device(warifu: Run, program: Path, tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("kept")
    link.symlink_to(kept)
    assert warifu("m3", "profile", program, "--folded", link)[0] == 9
    assert (kept.read_text(), link.is_symlink()) == ("kept", False)
    code, out, err = warifu("m3", "profile", program, "--folded", "/dev/null")
    assert (code, out, "is a device, not a file" in err) == (2, "", True), err


def test_traces_of_the_library_keep_the_program(program: Path) -> None:
    before = program.read_bytes()
    with pytest.raises(files.FileRefused, match="which is read"):
        m3.trace(program, program)
    assert program.read_bytes() == before


def test_calibration_keeps_the_program_and_the_chip(
    warifu: Run, bare: Compile, tmp_path: Path
) -> None:
    chip = (ROOT / "crates" / "m3" / "chips" / "mps2-an385.toml").read_text()
    # A file that mentions the command passes for one of its profiles.
    mine = tmp_path / "chip.toml"
    mine.write_text(f"# for warifu calibrate m3\n{chip}")
    elf = tmp_path / "bench.toml"
    elf.write_bytes(bare("bench.elf", "calibrate/bench.c", "-lgcc").read_bytes())
    for out in (mine, elf):
        before = out.read_bytes()
        code, _, err = warifu("calibrate", "m3", elf, "--chip", mine, "--mhz", "50", "--out", out)
        assert (code, f"{out}: is {out}, which is read" in err) == (2, True), err
        assert out.read_bytes() == before


def test_turning_letters_of_names_are_not_written(warifu: Run, code: Path, tmp_path: Path) -> None:
    turned, folded = tmp_path / "turned.elf", tmp_path / "folded.txt"
    rename = ["arm-none-eabi-objcopy", "--redefine-sym", "main=ma\u202ein\u2066", code, turned]
    subprocess.run(rename, check=True, timeout=60)
    _, traced, said = warifu("m3", "run", turned, "--trace", "-")
    assert "ma?in?" in traced
    warifu("m3", "profile", turned, "--folded", folded)
    assert "ma_in_" in folded.read_text()
    assert not set(traced + said + folded.read_text()) & set("\u202e\u2066")


PRINTS = r"""
void print(const char *text);
int main(void)
{
    print("\x1b[2J\xe2\x80\xaegood \xc3\xb6\r\n");
    return 0;
}
"""


def test_output_on_a_terminal_is_printable(bare: Compile, tmp_path: Path) -> None:
    source = tmp_path / "prints.c"
    source.write_text(PRINTS)
    elf = bare("prints.elf", str(source))
    for arguments in (["profile", elf], ["taint", elf, "--secret", "vectors:4"]):
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            subprocess.run(
                [sys.executable, "-m", "warifu.cli", "m3", *arguments],
                stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False,
                env={**os.environ, "PYTHONUTF8": "1"},
            )  # fmt: skip
            os.close(theirs)
            shown = terminal.read(4096).decode()
        assert "\\x1b[2J\\u202egood \N{LATIN SMALL LETTER O WITH DIAERESIS}" in shown
        assert not set(shown) & set("\x1b\u202e")

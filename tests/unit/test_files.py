# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is read is a file of a sensible size, and what is shown moves no cursor."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from support import needs
from support.commands import STUDY, Run, one_line
from support.swapped import said_of_a_pipe
from support.synthetic import Cell
from support.synthetic import study as made_up
from warifu import files, lock
from warifu import study as studies
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.profile import refuse_foreign
from warifu.cli import card_program
from warifu.cli.errors import USAGE
from warifu.files import (
    FileRefused,
    read_bytes,
    read_text,
    replace_text,
    replacing,
    temporary_folder,
)
from warifu.printable import printable


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(elsewhere: None) -> None:
    """Commands write where they are."""


def test_device_and_pipe_are_no_files() -> None:
    os.mkfifo("pipe")
    for path, what in (("/dev/zero", "a device"), ("/dev/null", "a device"), ("pipe", "a pipe")):
        with pytest.raises(FileRefused, match=f"{path}: is {what}, not a file: name a regular"):
            read_bytes(Path(path), 10)
    with pytest.raises(IsADirectoryError):
        read_bytes(Path(), 10)


def test_pipe_that_takes_the_place_of_a_file_after_the_check(tmp_path: Path) -> None:
    """It was opened, which waits for a writer without end."""
    call = 'files.read_bytes(Path("study.toml"), 10)'
    said = said_of_a_pipe(tmp_path, "study.toml", b"a file", "from warifu import files", call)
    assert said == "study.toml: is a pipe, not a file: name a regular file\n"


def test_length_of_what_is_read() -> None:
    Path("ten").write_text("0123456789")
    assert read_bytes(Path("ten"), 10) == b"0123456789"
    with pytest.raises(FileRefused, match="ten: is longer than 9 bytes, the most that is read"):
        read_bytes(Path("ten"), 9)


def test_file_of_proc() -> None:
    with pytest.raises(FileRefused, match="is a file of /proc: name a copy of it"):
        read_text(Path("/proc/self/status"), 100_000)
    Path("link").symlink_to("/proc/self/status")
    with pytest.raises(FileRefused, match="link: is a file of /proc"):
        read_text(Path("link"), 100_000)


def test_text_in_another_encoding() -> None:
    Path("latin").write_bytes(b"caf\xe9")
    with pytest.raises(FileRefused, match=r"latin: is not UTF-8 text \(byte 3\): save it"):
        read_text(Path("latin"), 10)


@pytest.mark.parametrize("verb", ["predict", "measure", "run", "trace"])
def test_study_that_is_a_device(warifu: Run, verb: str) -> None:
    code, _, err = warifu(verb, "/dev/zero")
    assert code == USAGE
    assert "/dev/zero: is a device, not a file: name a regular file" in one_line(err)


def test_study_longer_than_any(warifu: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("long.toml").write_text(STUDY)
    monkeypatch.setattr(files, "STUDY_BYTES", 20)
    code, _, err = warifu("predict", "long.toml")
    assert code == USAGE
    assert "long.toml: is longer than 20 bytes" in one_line(err)


def test_profile_that_is_a_pipe(warifu: Run) -> None:
    Path("profiles/devices").mkdir(parents=True)
    os.mkfifo("profiles/devices/mine.toml")
    code, _, err = warifu("predict", "--device", "gr-peach", "--server", "gr-peach")
    assert code == USAGE
    assert "profiles/devices/mine.toml: is a pipe, not a file" in one_line(err)


def test_faults_and_pin_from_files_without_end() -> None:
    with pytest.raises(FileRefused, match="/dev/zero: is a device"):
        card_program.faults("/dev/zero")
    assert card_program.pin(False, Path("/dev/zero"), new=False) == "\0" * 1_000
    Path("pin").write_bytes(b"12\xff4\nmore")
    assert card_program.pin(False, Path("pin"), new=False) == "12\N{REPLACEMENT CHARACTER}4"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("one\ntwo\r", r"one\ntwo\r"),
        ("\x7f\x85\u2028\u200f", r"\x7f\x85\u2028\u200f"),
        ("\udcff", r"\udcff"),
        ("µs, ≥ 1 · ∞", "µs, ≥ 1 · ∞"),
    ],
)
def test_characters_that_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text, keep=text) == text


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "--link", "lte-m", "--out", ""),
        ("measure", "--link", "lte-m", "-o", ""),
        ("run", "--link", "lte-m", "--out="),
        ("report", "s", "--out", ""),
        ("calibrate", "host", "--out", ""),
        ("calibrate", "m3", "x.elf", "--out", ""),
        ("calibrate", "token", "--out", ""),
        ("m3", "run", "x.elf", "--out", ""),
    ],
)
def test_empty_name_of_output(warifu: Run, command: tuple[str, ...]) -> None:
    code, _, err = warifu(*command)
    assert code == USAGE
    assert "'--out' / '-o': is empty: name a file or a folder" in one_line(err)
    assert not list(Path().iterdir())


def test_flag_that_takes_the_place_of_what_a_study_varies(warifu: Run) -> None:
    text = STUDY.replace('"link.rtt" = ', 'stack = ["https/tls1.2", "https/tls1.3"]\nlink.rtt = ')
    Path("three.toml").write_text(text)
    code, _, err = warifu("trace", "three.toml", "--stack", "https/tls1.3", "--case", "1")
    assert code == 0
    assert "three.toml: vary.stack is left out, because the command line sets stack: " in err
    assert "vary.link.rtt" not in err
    loaded = studies.load("three.toml", [("stack.tls", "1.3"), ("link.rtt", "1 ms")])
    assert studies.no_longer_varied(loaded) == ["stack", "link.rtt"]
    for overrides in ([], [("trials", "7")], [("vary.link.rtt", '["1 ms", "2 ms"]')]):
        assert studies.no_longer_varied(studies.load("three.toml", overrides)) == []


def test_names_that_are_no_utf8(warifu: Run) -> None:
    for command, words in (
        (("trace", "--link", "\udcff"), r"command line: link is \udcff: expected UTF-8 text"),
        (("trace", "--set", "seed=\udcff"), r"command line: seed is \udcff: expected UTF-8"),
        (("predict", "--link", "lte-m", "--out", "\udcff"), "is not UTF-8 text: choose another"),
        (("trace", "\udcff.toml"), r"\udcff.toml: does not exist: name a study"),
    ):
        code, _, err = warifu(*command)
        assert code == USAGE
        assert words in one_line(err)
    Path("\udcff.toml").write_text(STUDY)
    assert warifu("trace", "\udcff.toml")[0] == 0
    assert studies.load("\udcff.toml").file == r"\udcff.toml"


def test_device_is_not_replaced_by_a_file(warifu: Run) -> None:
    made_up(Path("s"), [Cell()], n=50)
    os.mkfifo("pipe")
    for command in (
        ("report", "s", "--out", "pipe"),
        ("calibrate", "host", "--out", "pipe"),
    ):
        code, _, err = warifu(*command)
        assert code == USAGE
        assert "pipe: is a pipe, not a file: name a regular file" in err
        assert Path("pipe").is_fifo()
    with pytest.raises(CalibrateError, match="pipe: is a pipe, not a file"):
        refuse_foreign(Path("pipe"), "warifu calibrate m3", "choose another")


def test_lock_that_is_another_name_of_a_file(tmp_path: Path) -> None:
    """It would be emptied, and the number of the process written into it."""
    other = tmp_path / "other"
    other.write_text("somebody's")
    (tmp_path / lock.FILE_NAME).hardlink_to(other)
    with pytest.raises(lock.FolderBusy, match="remove it"), lock.held(tmp_path, "predict"):
        pass
    assert other.read_text() == "somebody's"


def test_replaced_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "page.html", tmp_path / "other"
    other.write_text("somebody's")
    path.symlink_to(other)
    replace_text(path, "one")
    assert (path.read_text(), other.read_text()) == ("one", "somebody's")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "one"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other", "page.html"]
    mask = os.umask(0o027)
    try:
        replace_text(path, "two")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@needs.root
def test_temporary_folder_of_root_is_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(folder: Path) -> Path:
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        return temporary_folder()

    assert given(tmp_path) == tmp_path.resolve()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "link").symlink_to(tmp_path)
    (theirs / "roots").mkdir()
    os.chown(theirs, 65534, 65534)
    # The link may lead elsewhere tomorrow: what it leads to today is used.
    assert given(theirs / "link") == tmp_path.resolve()
    for folder in (theirs, theirs / "roots"):
        assert given(folder) == Path("/tmp")
    opened = tmp_path / "opened"
    opened.mkdir()
    opened.chmod(0o777)
    assert given(opened) == Path("/tmp")
    opened.chmod(0o1777)
    assert given(opened) == opened.resolve()

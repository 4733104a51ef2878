# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results that stand are neither mixed with others nor replaced without a word."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.studies import STUDY, host
from support.synthetic import Cell, write_manifest
from support.synthetic import study as made_up
from warifu import cli, lock
from warifu.cli.errors import ENVIRONMENT, FAILED, OK, USAGE
from warifu.results import Results, ResultsDamaged

DEVICE = ("--device", "host", "--server", "host")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder of its own, the shipped profiles, and a device that can do all."""
    monkeypatch.chdir(tmp_path)
    Path("profiles/devices").mkdir(parents=True)
    Path("profiles/devices/host.toml").write_text(host()[2])
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)


def warifu(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(SystemExit) as exit_,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["warifu", *arguments])
        cli.main()
    code = int(exit_.value.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def another(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "warifu.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that was said."""
    said = done.stderr.strip().splitlines()
    assert len(said) == 1, done.stderr
    return said[0]


def predict(*more: str) -> subprocess.CompletedProcess[str]:
    """A small prediction into `here`."""
    return warifu("predict", *DEVICE, "--set", "predict_trials=200", "--out", "here", *more)


@pytest.mark.parametrize("verb", ["predict", "measure", "run"])
def test_a_second_writer_is_refused_and_told_who_the_first_is(verb: str) -> None:
    with lock.held(Path("here"), "predict"):
        done = another(verb, *DEVICE, "--out", "here")
    assert done.returncode == ENVIRONMENT
    assert f"here: process {os.getpid()} (warifu predict) is writing there: wait" in line(done)
    assert not Path("here").exists()


def test_a_lock_ends_with_its_holder_however_that_ends(tmp_path: Path) -> None:
    work = "import os, warifu.lock as lock\nfrom pathlib import Path\n"
    work += "with lock.held(Path('here'), 'measure'):\n    os._exit(9)\n"
    assert subprocess.run([sys.executable, "-c", work], check=False).returncode == 9
    assert (tmp_path / "here" / lock.FILE_NAME).is_file()
    with lock.held(Path("here"), "run"), lock.held(Path("here"), "predict"):
        assert (tmp_path / "here" / lock.FILE_NAME).is_file()
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("place", ["file/below", "/proc/warifu/below"])
def test_place_that_cannot_be_made(place: str) -> None:
    Path("file").write_text("something else")
    done = warifu("predict", *DEVICE, "--out", place)
    assert done.returncode == ENVIRONMENT
    assert "choose another place" in line(done)


def manifest_of(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return value


def test_a_prediction_replaces_its_own_study_and_no_other() -> None:
    for name in ("one", "two"):
        text = STUDY.replace('"meter"', f'"{name}"').replace('"gr-peach"', '"host"')
        Path(f"{name}.toml").write_text(text)
    few = ("--set", "predict_trials=2000", "--out", "here")
    assert warifu("predict", "one.toml", *few).returncode == OK
    before = manifest_of(Path("here/predicted"))
    for verb in (("predict",), ("run", "--no-measure")):
        done = warifu(*verb, "two.toml", *few)
        assert done.returncode == ENVIRONMENT
        said = "here/predicted: holds results of the study 'one', and this is 'two': choose"
        assert said in line(done)
    assert manifest_of(Path("here/predicted")) == before
    assert warifu("predict", "one.toml", *few, "--set", "seed=9").returncode == OK
    assert manifest_of(Path("here/predicted"))["seed"] == 9


def test_what_a_full_disk_left_of_a_prediction_is_cleared() -> None:
    Path("here/predicted.partial/observations").mkdir(parents=True)
    assert predict().returncode == OK
    assert [path.name for path in Path("here").iterdir()] == ["predicted"]


@pytest.mark.parametrize("form", [(), ("--format", "md")])
def test_a_report_of_nothing_says_so(form: tuple[str, ...]) -> None:
    Path("here").mkdir()
    done = warifu("report", "here", *form)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "run `warifu predict` first" in line(done)
    done = warifu("report", "nowhere", *form)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "nowhere: does not exist: name a folder of results or a study file" in line(done)


@pytest.mark.parametrize("verb", [("predict",), ("run", "--no-measure")])
def test_a_prediction_in_which_nothing_succeeds_fails_and_says_so(verb: tuple[str, ...]) -> None:
    hopeless = ("--set", "link.loss=99 %", "--set", "predict_trials=50", "--out", "here")
    done = warifu(*verb, *DEVICE, *hopeless)
    assert done.returncode == FAILED
    assert "here/predicted: no connection succeeded in any case" in done.stderr


def damage_a_byte(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 0x55
    part.write_bytes(content)


def cut(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:3000])


def empty(part: Path) -> None:
    part.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_a_byte, "was changed after it was written (its SHA-256 differs)"),
        (cut, "has 3000 bytes instead of "),
        (empty, "has 0 bytes instead of "),
        (lambda part: shutil.copy(part, part.with_name("b.parquet")), "is not listed in"),
    ],
)
def test_a_damaged_file_is_named_and_nothing_is_told_of_it(
    damage: Callable[[Path], object], words: str
) -> None:
    assert predict().returncode == OK
    damage(Path("here/predicted/observations/part-00000.parquet"))
    done = warifu("report", "here", "--format", "md")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "here/predicted/observations/" in line(done)
    assert words in line(done)


def test_missing_file_of_observations() -> None:
    assert predict().returncode == OK
    Path("here/predicted/observations/part-00000.parquet").unlink()
    with pytest.raises(ResultsDamaged, match=r"00000\.parquet: is missing, .*`warifu predict`"):
        Results.open(Path("here/predicted"))


@pytest.mark.parametrize("damage", [cut, empty])
@pytest.mark.parametrize("half", ["predicted", "measured"])
def test_a_cut_file_without_a_seal_is_one_line_too(
    damage: Callable[[Path], object], half: str, tmp_path: Path
) -> None:
    made_up(tmp_path / "here", [Cell(), Cell(rtt_ms=99)], n=100)
    part = sorted(Path("here", half, "observations").iterdir())[1]
    damage(part)
    for verb in ("report", "compare"):
        done = warifu(verb, "here")
        assert done.returncode == USAGE
        assert f"{part}: cannot be read (" in line(done)


@pytest.mark.parametrize(
    ("old", "new", "again", "words"),
    [
        ('"seed": 1,', '"seed": 2,', False, "was changed after it was written (its SHA-256 diff"),
        ('"manifest_sha256"', '"other"', False, "was changed after it was written (manifest_sha25"),
        ('"seed": 1,', '"seed": "abc",', True, 'seed is "abc": expected a whole number: run the'),
        ('"seed": 1,', "", True, "seed is missing: run the study again"),
        ("device = host", "device = gadget", True, "study.text is not the text"),
        ('"half": "predicted"', '"half": "measured"', True, "half is measured, but its folder is"),
    ],
)
def test_a_changed_manifest_is_refused(old: str, new: str, again: bool, words: str) -> None:
    assert predict("--set", "seed=1").returncode == OK
    path = Path("here/predicted/manifest.json")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    if again:
        write_manifest(path.parent, manifest_of(path.parent))
    done = warifu("report", "here", "--format", "md")
    assert done.returncode == USAGE
    assert "here/predicted/manifest.json: " in line(done)
    assert words in line(done)

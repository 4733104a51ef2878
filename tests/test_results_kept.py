# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results that stand are neither mixed with others nor replaced without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warifu.cli import lock
from warifu.cli.errors import ENVIRONMENT

DEVICE = ("--device", "gr-peach", "--server", "gr-peach")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder of its own, and the shipped profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)


def warifu(*arguments: str) -> subprocess.CompletedProcess[str]:
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
        done = warifu(verb, *DEVICE, "--out", "here")
    assert done.returncode == ENVIRONMENT
    assert f"here: process {os.getpid()} (warifu predict) is writing there: wait" in line(done)
    assert not Path("here").exists()


def test_a_lock_ends_with_its_holder_however_that_ends(tmp_path: Path) -> None:
    work = "import os, warifu.cli.lock as lock\nfrom pathlib import Path\n"
    work += "with lock.held(Path('here'), 'measure'):\n    os._exit(9)\n"
    assert subprocess.run([sys.executable, "-c", work], check=False).returncode == 9
    assert (tmp_path / "here" / lock.FILE_NAME).is_file()
    with lock.held(Path("here"), "run"), lock.held(Path("here"), "predict"):
        assert (tmp_path / "here" / lock.FILE_NAME).is_file()
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("place", ["file/below", "/proc/warifu/below"])
def test_a_place_that_cannot_be_made_is_named_with_a_mend(place: str) -> None:
    Path("file").write_text("something else")
    done = warifu("predict", *DEVICE, "--out", place)
    assert done.returncode == ENVIRONMENT
    assert "choose another place" in line(done)

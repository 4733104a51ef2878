# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The table of foreign programs has a row for each that was named, and why it has no version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.paths import ROOT

_TESTS = """
import pytest
from support import needs

NOT_HERE = {"cannot be had": "nobody has it"}

@pytest.mark.foreign("works")
def test_works(on_record):
    on_record(["echo", "works 1.2"], r"works (\\S+)")

@pytest.mark.foreign("works, elsewhere")
def test_works_elsewhere(on_record):
    on_record(["echo", "works 1.2"], r"works (\\S+)")

@pytest.mark.foreign("signs wrongly")
def test_fails(on_record):
    on_record(["echo", "wrong 3"], r"wrong (\\S+)")
    assert not "a signature", "no signature"

@pytest.mark.foreign("has no version")
def test_says_nothing(on_record):
    on_record(["true"], r"version (\\S+)")

@pytest.mark.foreign("is missing")
@needs.program("no-program-of-this-name")
def test_missing():
    pass

@pytest.fixture
def registry():
    raise OSError("pip: no such package\\nand more")

@pytest.mark.foreign("cannot be installed")
def test_cannot_be_installed(registry):
    pass

@pytest.fixture
def never_ends():
    yield
    raise OSError("still runs")

@pytest.mark.foreign("does not end")
def test_does_not_end(never_ends):
    pass

def test_of_no_program():
    pass
"""
_ROWS = """
cannot be had        -    not run: nobody has it
cannot be installed  -    error: OSError: pip: no such package
does not end         -    error: OSError: still runs
has no version       -    failed: AssertionError: has no version says no version:
is missing           -    skipped: needs program no-program-of-this-name
signs wrongly        3    failed: AssertionError: no signature
works                1.2  passed
works, elsewhere     1.2  passed
"""


def table(folder: Path, *options: str) -> str:
    """What pytest prints under the table's title."""
    shutil.copy(ROOT / "tests" / "system" / "programs" / "conftest.py", folder)
    (folder / "test_programs.py").write_text(_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-c", "/dev/null",
         "--rootdir", folder, "-p", "no:cacheprovider", *options, folder],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")}, cwd=folder,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.stdout.partition("foreign programs with the card's key")[2].partition("\n")[2]


def test_every_program_has_a_row_with_its_reason(tmp_path: Path) -> None:
    shown = table(tmp_path).splitlines()
    assert [line.rstrip() for line in shown[:8]] == _ROWS.strip().splitlines()


def test_program_that_was_not_reached_has_a_row(tmp_path: Path) -> None:
    shown = table(tmp_path, "--maxfail", "1")
    assert "is missing           -    not run\n" in shown


def test_every_program_of_the_table_is_marked() -> None:
    """A test of one that is not would have no row where it is skipped."""
    folder = ROOT / "tests" / "system" / "programs"
    for path in (folder / "test_foreign.py", folder / "others" / "test_others.py"):
        text = path.read_text()
        assert text.count("\ndef test_") == text.count("\n@pytest.mark.foreign(") > 0

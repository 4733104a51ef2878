# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The probe in a program with more rights than its user: it must do nothing that the user says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT
from support.setuid import AS_USER, USER, setuid
from warifu.tools import find

pytestmark = [needs.root, needs.program("cc"), needs.program("setpriv")]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that is linked to the probe: the dynamic linker itself preloads nothing with a path
    into setuid programs (ld.so(8)), so that the probe's own check would not be seen."""
    # Folders of pytest are for their user alone.
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    library = tmp_path / "libwarifu_evp_probe.so"
    library.write_bytes(find("libwarifu_evp_probe.so").read_bytes())
    path = tmp_path / "program"
    subprocess.run(
        ["cc", "-pthread", "-o", path, ROOT / "tests" / "support" / "evp_program.c",
         "-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}", "-lcrypto"],
        check=True,
    )  # fmt: skip
    return path


def _files(program: Path, folder: Path, owner: int) -> tuple[str, int]:
    """What the program says of its rights, and how many files it leaves, run by nobody."""
    folder.mkdir(mode=0o700)
    subprocess.run(["chown", f"{owner}:{owner}", folder], check=True)
    done = subprocess.run(
        [*AS_USER, program, "privileged", "3"],
        env={"WARIFU_EVP_PROBE": str(folder), "WARIFU_EVP_SWAP": "aegis-256"},
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.strip() + done.stderr, len(list(folder.iterdir()))


def test_setuid_program_is_neither_recorded_nor_swapped(program: Path, tmp_path: Path) -> None:
    said, files = _files(program, tmp_path / "plain", USER)
    assert said.startswith("0")
    assert "EXPERIMENT" in said
    assert files == 1
    with setuid(program):
        # Files would be root's, so the folder is too: the probe would take it if it looked.
        said, files = _files(program, tmp_path / "setuid", 0)
    assert (said, files) == ("1", 0)

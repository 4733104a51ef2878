# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What README shows of a SIM, as it stands there, from a shell without anything set up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from support.paths import ROOT
from support.programs import free_port

SECTION = "## A SIM that you do not have"


def shown() -> str:
    """The section's commands."""
    section = (ROOT / "README.md").read_text().partition(SECTION)[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def running(group: int) -> list[str]:
    """What of a process group still runs after a while, in which it may end."""
    listing = ["ps", "-e", "-o", "pgid=,stat=,args="]
    end = time.monotonic() + 10
    while True:
        rows = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        found = [row.split(maxsplit=2) for row in rows.splitlines()]
        left = [row[2] for row in found if row[0] == str(group) and not row[1].startswith("Z")]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def test_section_of_readme_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    script = shown().replace("8443", str(free_port()))
    shell = subprocess.Popen(
        ["bash", "-eu", "-c", script], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        # Ends only when nobody has its output open any more: what runs on has.
        said, _ = shell.communicate(timeout=120)
    finally:
        left = running(shell.pid)
        if left:
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said
    assert not left, said
    assert re.search(r"Subject: CN ?= ?device-1", said)
    assert re.search(r"^[\w-]+\.[\w-]+\.[\w-]+$", said, re.MULTILINE), "a JSON Web Token"


def test_setup_installs_what_the_section_runs() -> None:
    text = (ROOT / "scripts" / "setup").read_text()
    always = " ".join(re.findall(r"^packages\+?=\((.*?)\)", text, re.DOTALL | re.MULTILINE)).split()
    assert {"curl", "libengine-pkcs11-openssl", "openssl"} <= set(always)

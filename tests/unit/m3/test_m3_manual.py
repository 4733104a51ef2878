# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The examples of docs/reference/m3.md, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

MANUAL = (ROOT / "docs" / "reference" / "m3.md").read_text(encoding="utf-8")

#: Blocks of code in a language, with the paragraph before each.
_BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [(before, code) for before, kind, code in _BLOCK.findall(MANUAL) if kind == language]


@pytest.fixture
def files() -> None:
    """Writes the files of the manual to the current folder: `NAME.c` of the line before each."""
    for language in ("c", "toml"):
        for before, code in blocks(language):
            name = re.search(rf"`(\w+\.{language})`", before)
            if name is None and language == "c":
                name = re.search(r"`(bench\.c)`", MANUAL)
            assert name, before
            Path(name[1]).write_text(code, encoding="utf-8")


def shell(script: str) -> subprocess.CompletedProcess[str]:
    start = "import sys; from warifu.cli import main; sys.exit(main())"
    function = f'warifu() {{ "{sys.executable}" -c "{start}" "$@"; }}\n'
    environment = {key: value for key, value in os.environ.items() if key != "WARIFU_PROFILES"}
    return subprocess.run(
        ["bash", "-ec", function + script], capture_output=True, text=True, timeout=120,
        env=environment,
    )  # fmt: skip


@pytest.mark.usefixtures("files")
def test_commands_and_python_of_the_manual_run() -> None:
    scripts = [code for _, code in blocks("sh")]
    assert len(scripts) >= 5
    printed = ""
    for script in scripts:
        done = shell(script)
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        printed += done.stdout
    runs = re.findall(r"^warifu m3 run ", "\n".join(scripts), re.MULTILINE)
    assert printed.count("hello, 42") == len(runs) > 3
    ((_, code),) = blocks("python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"exit 0 \d+ odd\n", done.stdout)
    assert re.search(r"^branch \S+/secret\.c:\d+ key \(16 bytes", done.stdout, re.MULTILINE)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A disk that fills up: a clear error, and what was written before stays readable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl

from support import sim
from support.paths import ROOT

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.studies import rows, study
from warifu import _core

folder = Path(sys.argv[1])
first, second = study().cases[:2]
about = ("run-1", "emulated", "assumed")
_core.write_observations(folder / "first.parquet", "meter", first.json, *about, rows(10))
values = [float(trial * 7919 % 100_003) ** 0.5 for trial in range(100_000)]
many = rows(len(values), value=values)
try:
    _core.write_observations(folder / "second.parquet", "meter", second.json, *about, many)
except _core.WarifuError as error:
    print(error)
else:
    sys.exit("the disk was not full")
Path(sys.argv[3]).write_bytes((folder / "first.parquet").read_bytes())
print(sorted(path.name for path in folder.iterdir()))
"""

COMMANDS = """
import io
import os
import subprocess
import sys
from pathlib import Path

folder, card = Path(sys.argv[1]), Path(sys.argv[2])
run = lambda *words: subprocess.run(
    [sys.executable, "-m", "warifu.cli", *words], cwd=folder, capture_output=True, text=True
)
with (folder / "ballast").open("wb", buffering=0) as ballast:
    try:
        while ballast.write(b"x" * 4096):
            pass
    except OSError:
        pass
(folder / "old.csr").touch()
for words in (
    ("init", "--template", "smart-meter", "m.toml"),
    ("card", "csr", "CN=a", "--state", str(card), "-o", "x.csr"),
    ("card", "csr", "CN=a", "--state", str(card), "-o", "old.csr"),
):
    done = run(*words)
    print(done.returncode, done.stderr.strip())
print(sorted(path.name for path in folder.iterdir()))
(folder / "ballast").unlink()
done = run("init", "--template", "smart-meter", "m.toml")
print(done.returncode, (folder / "m.toml").stat().st_size > 0)
"""


def on_a_small_disk(size: str, script: Path, *arguments: object) -> list[str]:
    """The lines of a script whose first argument is a folder of this size. In a namespace of its
    own, so that the disk is gone with the process."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    inside = f'mount -t tmpfs -o size={size} small "$0" && exec "$@"'
    disk = script.with_name("disk")
    disk.mkdir()
    words = [disk, sys.executable, script, disk, *arguments]
    done = subprocess.run([*command, inside, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_commands_on_a_full_disk_name_the_file_and_leave_none(tmp_path: Path) -> None:
    card, script = tmp_path / "card.state", tmp_path / "commands.py"
    sim.ask("create", state=card)
    script.write_text(COMMANDS)
    lines = on_a_small_disk("64k", script, card)
    hint = "No space left on device: make room on the disk, then run the same command again"
    assert lines == [
        f"3 warifu: m.toml: {hint}",
        f"3 warifu: x.csr: {hint}",
        f"3 warifu: old.csr: {hint}",
        "['ballast', 'old.csr']",
        "0 True",
    ]


def test_a_full_disk_is_named_and_earlier_files_stay_readable(tmp_path: Path) -> None:
    copy, script = tmp_path / "copy.parquet", tmp_path / "writer.py"
    script.write_text(WRITER)
    disk = tmp_path / "disk"
    error, left = on_a_small_disk("128k", script, ROOT / "tests", copy)
    assert error == (
        f"{disk}/second.parquet: no space left on the device: free some, then run again"
    )
    assert left == "['first.parquet']"
    assert pl.read_parquet(copy).height == 10

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A disk that fills up: a clear error, and what was written before stays readable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl

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


def test_a_full_disk_is_named_and_earlier_files_stay_readable(tmp_path: Path) -> None:
    disk, copy, script = tmp_path / "disk", tmp_path / "copy.parquet", tmp_path / "writer.py"
    disk.mkdir()
    script.write_text(WRITER)
    # A namespace of its own, so that the small disk is gone with the process.
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    inside = 'mount -t tmpfs -o size=128k small "$0" && exec "$@"'
    arguments = [disk, sys.executable, script, disk, ROOT / "tests", copy]
    done = subprocess.run(
        [*command, inside, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    error, left = done.stdout.splitlines()
    assert error == (
        f"{disk}/second.parquet: no space left on the device: free some, then run again"
    )
    assert left == "['first.parquet']"
    assert pl.read_parquet(copy).height == 10

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu-aead-bench`: one encryption with each AEAD of the plugin."""

from __future__ import annotations

import json
import subprocess

from warifu.tools import find


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [find("warifu-aead-bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_each_aead_is_timed_at_each_length() -> None:
    found = json.loads(_run("--bytes", "16", "--bytes", "1024", "--calls", "50").stdout)
    assert (found["format"], found["version"], found["calls"]) == ("warifu-aead-bench", 1, 50)
    assert found["build"] in ("release", "development")
    assert len({(row["aead"], row["bytes"]) for row in found["rows"]}) == len(found["rows"]) == 14
    for row in found["rows"]:
        for kind in ("keyed", "with_key"):
            times = row[kind]
            assert times["minimum_ns"] <= times["median_ns"] <= times["maximum_ns"]
            assert times["minimum_ns"] <= times["mean_ns"] <= times["maximum_ns"]


def test_a_wrong_number_is_refused() -> None:
    for arguments in (["--bytes", "-1"], ["--calls", "0"], ["--calls"], ["--length", "3"]):
        done = _run(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("warifu-aead-bench: ")
        assert done.stdout == ""

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu reproduce sros2-aead` and `dds-offload` with few messages: what is counted is as
recorded; times are not judged here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support import dds_probes, needs
from support.paths import ROOT

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("make"),
    needs.file(Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp"), "libfastrtps-dev"),
    needs.file(Path("/usr/include/dds/dds.h"), "cyclonedds-dev"),
]

_REPRODUCE = [sys.executable, "-m", "warifu.cli", "reproduce"]
FEW = ["--sets", "1", "--sends", "20"]


def _tables(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [*_REPRODUCE, *arguments, "--format", "json"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    tables = json.loads(done.stdout)["tables"]
    return done.returncode, tables


def _verdicts(tables: list[dict[str, Any]]) -> dict[str, str]:
    return {row["id"]: row["verdict"] for row in tables[0]["rows"]}


def _agrees(code: int, tables: list[dict[str, Any]]) -> None:
    """The exit code says what the rows say."""
    rows = tables[0]["rows"]
    other = [row["id"] for row in rows if row["recorded"] not in (None, row["verdict"])]
    assert code == (1 if other else 0), other
    assert not [row["id"] for row in rows if row["verdict"] == "not run here"]


def test_sros2_aead_counts_as_published_and_runs_the_aeads() -> None:
    code, tables = _tables("sros2-aead", *FEW, "--calls", "200")
    _agrees(code, tables)
    words = _verdicts(tables)
    # 11.28 calls with OpenSSL's generator; the paper's arithmetic; the AEADs built in.
    for claim in ("calls", "rest", "table5.arithmetic", "encrypts.each", "method"):
        assert words[claim] == "reproduced", claim
    for claim in ("deadline.own", "not.built"):
        assert words[claim] == "not reproduced", claim
    (table3,) = (table for table in tables if table["title"].startswith("Table 3"))
    counts = {row["part"]: row["n"] for row in table3["rows"]}
    assert set(counts) == {"total", "crypto", "rest", "plain"}
    # What began before the reader had a message is left out: the first one always.
    assert all(0 < n < 20 for n in counts.values()), counts
    assert counts["total"] == counts["crypto"] == counts["rest"]
    (table5,) = (table for table in tables if table["title"].startswith("Table 5: a send"))
    assert all(row["cyclone_plugin_ns"] > 0 for row in table5["rows"])


def test_dds_offload_counts_calls_as_the_model_says() -> None:
    code, tables = _tables("dds-offload", "--sets", "1", "--sends", "10")
    _agrees(code, tables)
    words = _verdicts(tables)
    for claim in ("figure1", "authentication", "cause.fragments", "crypto.saving", "node.saving"):
        assert words[claim] == "reproduced", claim
    for claim in ("cause.bytes", "range"):
        assert words[claim] == "not reproduced", claim
    (counts,) = (table for table in tables if table["title"] == "Calls a message")
    for row in counts["rows"]:
        # Heartbeats, and what is sent again, come on top.
        model = row["model_encryptions"]
        assert model <= row["encryptions"] <= 1.2 * model + 1, row
        assert row["encrypted_bytes"] >= row["model_encrypted_bytes"], row
    small = counts["rows"][0]
    assert (small["encryptions"], small["encrypted_bytes"]) == (3, 128)


def _namespaces() -> set[str]:
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def _children(pid: int) -> list[str]:
    """Command lines of the pairs that a process has started."""
    done = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "args="], capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_namespace(number: signal.Signals, tmp_path: Path) -> None:
    running = subprocess.Popen(
        [*_REPRODUCE, "dds-offload", *FEW],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    made: set[str] = set()
    try:
        deadline = time.monotonic() + 120
        while not made and time.monotonic() < deadline:
            time.sleep(0.1)
            pairs = [line for line in _children(running.pid) if "pair" in line]
            if pairs:
                pid = _pid_of_pair(running.pid)
                made = {name for name in _namespaces() if f"-{pid}-" in name}
        assert made, "no pair was started"
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert out == ""
    if number == signal.SIGINT:
        assert running.returncode == 130
        assert "interrupted; nothing was written" in err
    if number == signal.SIGTERM:
        assert running.returncode == 143
    if number != signal.SIGKILL:
        assert list(tmp_path.glob("warifu-*")) == []
    deadline = time.monotonic() + 30
    while made & _namespaces() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not made & _namespaces()


def test_pair_writes_in_no_folder_of_somebody_else(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    # The second end's output goes to a file.
    output: list[str | Path] = ["readlink", "/proc/self/fd/1"]
    pair = dds_probes.run(["true"], output, environment={"TMPDIR": str(tmp_path)})
    assert (pair.code, Path(pair.out.strip()).parent) == (0, Path("/tmp"))


def _pid_of_pair(parent: int) -> int:
    done = subprocess.run(
        ["ps", "--ppid", str(parent), "-o", "pid=,args="],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = (line for line in done.stdout.splitlines() if "pair" in line)
    return int(line.split()[0])

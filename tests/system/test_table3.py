# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`scripts/table3` as a person runs it: what it writes, and that Ctrl-C leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

from support import tokens
from support.paths import ROOT

SCRIPT = ROOT / "scripts" / "table3"
KEPT = ROOT / "studies" / "iot-safe-table3"

#: No signature of the card's profile is faster: the least of its law for C_Sign alone, ns.
LEAST_SIGNATURE_NS = 454.2e6
#: The card's least for VERIFY, SELECT and GET DATA, ns, which only those wait for that open.
LEAST_OPENING_NS = (35.4 + 22.0 + 9.1) * 1e6


def test_the_table_is_made_from_its_observations(tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "-n", "2", "--out", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "table.md").read_text()
    assert done.stdout == text
    kept = json.loads((tmp_path / "observations.json").read_text())
    assert kept["kind"] == "emulated"
    assert {one["of"] for one in kept["disturbance"]} == {"without agent", "with agent"}
    assert all(len(one["values"]) == 2 for one in kept["observations"])
    # C_Login waits for the card, and with the agent nobody logs in.
    logins = least(kept, "total", "C_Login")
    assert logins["without agent"] > 35.4e6 > logins["with agent"]
    for mode in ("sign_only", "total", "fresh"):
        assert min(least(kept, mode, "C_Sign").values()) > LEAST_SIGNATURE_NS
    assert sum_of(kept, "fresh", "without agent") > 2 * (LEAST_SIGNATURE_NS + LEAST_OPENING_NS)
    for row in ("| total | the paper's | 100 | 677.7 |", "| fresh | with agent | 2 |",
                "| cached token | at the agent's socket | 2 |", "C_GetSlotList"):  # fmt: skip
        assert row in text


def least(kept: dict[str, list[dict[str, object]]], mode: str, call: str) -> dict[str, float]:
    """The least time of a call by how the card was reached, ns."""
    return {
        str(one["of"]): min(one["values"])  # type: ignore[call-overload]
        for one in kept["observations"]
        if (one["mode"], one["call"]) == (mode, call)
    }


def sum_of(kept: dict[str, list[dict[str, object]]], mode: str, of: str) -> float:
    """All calls of all trials of a mode, ns."""
    return sum(
        sum(one["values"])  # type: ignore[call-overload]
        for one in kept["observations"]
        if (one["mode"], one["of"]) == (mode, of) and one["call"] != "process"
    )


def test_the_kept_table_is_what_its_observations_give(tmp_path: Path) -> None:
    """Nobody has changed one of the two by hand."""
    files = {path.name for path in KEPT.iterdir()} - {"README.md"}
    assert files == {"observations.json", "table.md"}
    (tmp_path / "observations.json").write_bytes((KEPT / "observations.json").read_bytes())
    subprocess.run([SCRIPT, "--render", "--out", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "table.md").read_text() == (KEPT / "table.md").read_text()


def test_a_small_table_is_not_kept() -> None:
    done = subprocess.run([SCRIPT, "-n", "99"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the kept table has 100: name another --out" in done.stderr


def test_ctrl_c_ends_everything_that_was_started(tmp_path: Path) -> None:
    mark, out = uuid.uuid4().hex, tmp_path / "out"
    # Not pytest's folder: the path of a socket has 107 bytes at most (unix(7)).
    work = Path(tempfile.mkdtemp(prefix="warifu-"))
    child = subprocess.Popen(
        [SCRIPT, "--out", out],
        env=os.environ | {tokens.MARK: mark, "TMPDIR": str(work)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        # The script, the card's server, and the bench that signs.
        while len(tokens.left_with(mark)) < 3:
            assert child.poll() is None, child.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130
    assert said.strip().splitlines()[-1] == "warifu: interrupted; nothing was written"
    assert tokens.left_with(mark) == []
    work.rmdir()  # which needs it to be empty
    assert not out.exists()

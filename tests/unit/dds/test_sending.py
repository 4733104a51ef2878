# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How a pair of probes is waited for: with processes of the system in the probes' place."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from support import needs
from warifu.dds.sending import SendingError, _said, sender
from warifu.lab import interruption


def _start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _nothing() -> None:
    pass


def test_all_that_is_written_while_it_is_waited_for_is_kept() -> None:
    """More than a pipe holds, over several looks."""
    child = _start("sh", "-c", "yes | head -c 300000; sleep 0.3; echo end; echo error >&2")
    out, err = _said(child, 60, "child", _nothing)
    assert (len(out), out[-4:], err, child.returncode) == (300_004, "end\n", "error\n", 0)


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        (signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, SystemExit),
        (signal.SIGHUP, SystemExit),
    ],
)
def test_signal_ends_what_runs(number: signal.Signals, raised: type[BaseException]) -> None:
    child = _start("sleep", "300")
    with pytest.raises(raised), interruption.deferred():
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        _said(child, 300, "child", interruption.check)
    assert child.returncode == -signal.SIGTERM


def test_what_takes_too_long_is_ended() -> None:
    child = _start("sleep", "300")
    with pytest.raises(SendingError, match="child: did not end within 0 s"):
        _said(child, 0.2, "child", _nothing)
    assert child.returncode == -signal.SIGTERM


@needs.root
def test_what_root_runs_is_built_in_no_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(tmp_path, 65534, 65534)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with sender(_nothing) as made:
        assert made.folder.parent == Path("/tmp")
        assert made.enclaves["/talker"].governance.is_file()
    assert not made.folder.exists()

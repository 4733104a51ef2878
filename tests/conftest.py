# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What tests of any folder use."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from support.needs import SKIP_NOTHING
from warifu import cli
from warifu.calibrate import build

# Tests that root runs with sudo are root's: their folders are too.
for _name in ("SUDO_UID", "SUDO_GID", "SUDO_USER"):
    os.environ.pop(_name, None)

# A shell that starts the tests in the background has them ignore SIGINT, and so would what they
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Calibration's own tests run on the build that all tests share; what they write says so.
os.environ[build.VARIABLE] = "1"

# A busy machine is slow, which is no fault of what is tested.
hypothesis.settings.register_profile("warifu", deadline=None)
hypothesis.settings.load_profile("warifu")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test that was skipped fails the run where nothing may be missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    # Workers of pytest-xdist have no reporter; the process that started them counts.
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if os.environ.get(SKIP_NOTHING) == "1" and skipped and session.exitstatus == 0:
        reporter.write_line(f"{len(skipped)} skipped, and {SKIP_NOTHING}=1 allows none", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for each test, and the shipped profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)


@pytest.fixture
def warifu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process; its exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warifu", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run

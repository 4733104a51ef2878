# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processors are kept awake while the lab runs on a virtual machine, and let go after it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warifu import tools
from warifu.calibrate import environment
from warifu.lab import awake, quiet
from warifu.lab.errors import LabError
from warifu.lab.processes import is_running


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has a program in place of `warifu-link` that says a line and waits for the end of stdin."""
    stand_in = tmp_path / "warifu-link"
    find = tools.find
    monkeypatch.setattr(
        tools, "find", lambda name: stand_in if name == "warifu-link" else find(name)
    )

    def say(line: str) -> None:
        stand_in.write_text(f"#!/bin/sh\necho '{line}'\nexec cat\n")
        stand_in.chmod(0o755)

    say('{"event": "ready", "processors": [0]}')
    return say


def test_processors_are_kept_awake_where_the_program_says_so(tmp_path: Path) -> None:
    """With the real one: on a virtual machine, where it has the rights."""
    with awake.kept(tmp_path):
        kept = awake.are_kept()
        assert len(awake.pids()) == kept
        assert not kept or awake.is_wanted()
    assert not awake.are_kept()


def test_what_would_not_give_way_at_once_is_not_run(
    tmp_path: Path, says: Callable[[str], None]
) -> None:
    says('{"event": "not_kept", "why": "no idle group"}')
    with awake.kept(tmp_path):
        assert awake.pids() == []
        assert not awake.are_kept()
        awake.check()


@pytest.mark.usefixtures("says")
def test_one_program_runs_until_the_outermost_block_ends(tmp_path: Path) -> None:
    assert not awake.are_kept()
    with awake.kept(tmp_path):
        (pid,) = awake.pids()
        assert is_running(pid)
        with awake.kept(tmp_path):
            assert awake.pids() == [pid]
        assert is_running(pid)
        awake.check()
    assert not awake.are_kept()
    assert not is_running(pid)


@pytest.mark.usefixtures("says")
def test_what_it_takes_is_the_lab_s_own(tmp_path: Path) -> None:
    with awake.kept(tmp_path):
        assert quiet.Watch([7])._pids == [7, *awake.pids()]


@pytest.mark.usefixtures("says")
def test_its_end_is_told(tmp_path: Path) -> None:
    with awake.kept(tmp_path):
        (pid,) = awake.pids()
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5.0
        with pytest.raises(LabError, match="warifu-link awake ended during the run"):
            while time.monotonic() < deadline:
                awake.check()
                time.sleep(0.01)
    assert not awake.are_kept()


@pytest.mark.parametrize("line", ["", "no JSON", "[]", '{"event": "check"}'])
def test_a_program_that_cannot_do_it_is_an_error(
    line: str, tmp_path: Path, says: Callable[[str], None]
) -> None:
    says(line)
    with pytest.raises(LabError, match="processors cannot be kept awake"), awake.kept(tmp_path):
        pass
    assert not awake.are_kept()
    # The next one is no part of a block that never was.
    assert awake._wanted == 0


def test_a_program_that_says_nothing_is_not_waited_for_in_vain(
    tmp_path: Path, says: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    says("unused")
    tools.find("warifu-link").write_text("#!/bin/sh\nexec cat\n")
    monkeypatch.setattr(awake, "_CHECK_SECONDS", 0.2)
    with pytest.raises(LabError, match="warifu-link awake did not answer"), awake.kept(tmp_path):
        pass
    assert not awake.are_kept()


def test_a_calibration_from_before_is_stale_on_a_virtual_machine(
    says: Callable[[str], None],
) -> None:
    says('{"event": "check", "virtual_machine": false}')
    before = environment.machine()
    assert "idle" not in before
    says('{"event": "check", "virtual_machine": true}')
    assert environment.differences(before) == ["idle was unknown, is kept awake"]
    now = environment.machine()
    says('{"event": "check", "virtual_machine": false}')
    assert environment.differences(now) == ["idle was kept awake, is unknown"]

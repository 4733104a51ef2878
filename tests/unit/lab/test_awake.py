# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processors are kept awake while the lab runs on a virtual machine, and let go after it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from warifu import tools
from warifu.calibrate import environment
from warifu.lab import awake, quiet
from warifu.lab.errors import LabError
from warifu.lab.processes import is_running


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual machine without groups of the scheduler."""
    monkeypatch.setattr(awake, "is_virtual", lambda: True)
    monkeypatch.setattr(awake, "_GROUPS", ())
    monkeypatch.setattr(awake, "_AUTOGROUP", Path("/nonexistent"))


@pytest.mark.usefixtures("virtual")
@pytest.mark.parametrize(("autogroup", "kept"), [("0\n", True), ("1\n", False)])
def test_what_would_not_give_way_at_once_is_not_run(
    autogroup: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "sched_autogroup_enabled"
    setting.write_text(autogroup)
    monkeypatch.setattr(awake, "_AUTOGROUP", setting)
    with awake.kept(tmp_path):
        assert awake.are_kept() == kept
        assert len(awake.pids()) == kept


@pytest.mark.usefixtures("virtual")
def test_it_runs_in_an_idle_group_where_each_session_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands in for the kernel's files, of which a group has these two."""
    groups = tmp_path / "cpu"
    groups.mkdir()
    make = Path.mkdir

    def make_group(path: Path, *rest: int) -> None:
        make(path, *rest)
        if path.parent == groups:
            (path / "cpu.idle").touch()
            (path / "cgroup.procs").touch()

    monkeypatch.setattr(Path, "mkdir", make_group)
    monkeypatch.setattr(awake, "_GROUPS", (tmp_path / "none", groups))
    with awake.kept(tmp_path):
        (pid,) = awake.pids()
        group = groups / f"warifu-awake-{pid}"
        assert (group / "cpu.idle").read_text() == "1"
        assert (group / "cgroup.procs").read_text() == str(pid)


@pytest.mark.usefixtures("virtual")
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


def test_a_machine_of_its_own_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awake, "is_virtual", lambda: False)
    with awake.kept(tmp_path):
        assert awake.pids() == []
        assert not awake.are_kept()
        awake.check()


@pytest.mark.usefixtures("virtual")
def test_what_it_takes_is_the_lab_s_own(tmp_path: Path) -> None:
    with awake.kept(tmp_path):
        assert quiet.Watch([7])._pids == [7, *awake.pids()]


@pytest.mark.usefixtures("virtual")
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


@pytest.mark.usefixtures("virtual")
def test_a_program_that_cannot_do_it_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = tools.find
    monkeypatch.setattr(
        tools, "find", lambda name: Path("/bin/true") if name == "taskset" else find(name)
    )
    with pytest.raises(LabError, match="processors cannot be kept awake"), awake.kept(tmp_path):
        pass
    assert not awake.are_kept()
    # The next one is no part of a block that never was.
    assert awake._wanted == 0


def test_a_calibration_from_before_is_stale_on_a_virtual_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "is_virtual", lambda: False)
    before = environment.machine()
    monkeypatch.setattr(environment, "is_virtual", lambda: True)
    assert environment.differences(before) == ["idle was unknown, is kept awake"]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Nothing of a lab outlives it, and what a killed lab leaves is swept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from support import needs
from warifu.lab import kernel, processes, workplace
from warifu.lab.processes import Process
from warifu.lab.workplace import NAMESPACES, Workplace

pytestmark = needs.root

OWNER = """
import sys, time
from pathlib import Path
from warifu.lab.workplace import Workplace
from warifu.lab.processes import Process
place = Workplace()
name = place.namespace("c")
child = Process("sleeper", ["sleep", "1000"], log=place.folder / "log", namespace=name)
print(name, place.folder, child.pid, flush=True)
time.sleep(1000)
"""


def test_workplace_removes_folder_and_namespaces() -> None:
    with Workplace() as place:
        name = place.namespace("c", kernel.PINNED)
        child = Process("sleeper", ["sleep", "1000"], log=place.folder / "log", namespace=name)
        assert (NAMESPACES / name).exists()
        assert processes.is_running(child.pid)
        folder = place.folder
    assert not (NAMESPACES / name).exists()
    assert not folder.exists()
    assert not processes.is_running(child.pid)
    child.stop()


def test_tcp_settings_are_pinned_in_the_namespace_only() -> None:
    outside = Path("/proc/sys/net/ipv4/tcp_no_metrics_save").read_text().strip()
    with Workplace() as place:
        name = place.namespace("c", {"tcp_no_metrics_save": "1", "tcp_syn_retries": "3"})
        read = workplace.sysctls(name, ["tcp_no_metrics_save", "tcp_syn_retries", "tcp_sack"])
    assert read == {"tcp_no_metrics_save": "1", "tcp_syn_retries": "3", "tcp_sack": "1"}
    assert Path("/proc/sys/net/ipv4/tcp_no_metrics_save").read_text().strip() == outside
    differing = kernel.pinned_differently(dict.fromkeys(kernel.PINNED, "other"))
    assert differing.keys() == kernel.PINNED.keys()
    assert kernel.pinned_differently(dict(kernel.PINNED)) == {}


def test_sweep_removes_leftovers_of_a_killed_lab() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    name, folder, child = owner.stdout.readline().split()
    assert name not in {item.name for item in workplace.leftovers()}, "its owner lives"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 60
    while processes.is_running(int(child)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not processes.is_running(int(child)), "a child dies with its lab"
    assert {name, folder} <= {item.name for item in workplace.leftovers()}
    workplace.sweep()
    assert not (NAMESPACES / name).exists()
    assert not Path(folder).exists()


def test_reused_process_id_does_not_own_leftovers() -> None:
    started = processes.start_time(os.getpid())
    assert started is not None
    stale = f"warifu-{os.getpid()}-{started - 1}-c"
    living = f"warifu-{os.getpid()}-{started}-c"
    subprocess.run(["ip", "netns", "add", stale], check=True)
    subprocess.run(["ip", "netns", "add", living], check=True)
    try:
        workplace.sweep()
        assert not (NAMESPACES / stale).exists()
        assert (NAMESPACES / living).exists()
    finally:
        subprocess.run(["ip", "netns", "del", living], check=True)


def test_process_group_is_killed_after_its_leader(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! > child; exec sleep 1000"
    leader = Process("leader", ["sh", "-c", f"cd {tmp_path}; {script}"], log=tmp_path / "log")
    child = number_in(tmp_path / "child")
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait(5)
    assert processes.is_running(child)
    leader.stop()
    deadline = time.monotonic() + 60
    while processes.is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not processes.is_running(child)


def number_in(path: Path) -> int:
    """The number in a file that another process is about to write, when it is there as a whole."""
    deadline = time.monotonic() + 60
    while not (text := path.read_text() if path.exists() else "").endswith("\n"):
        assert time.monotonic() < deadline, f"{path} holds {text!r}"
        time.sleep(0.01)
    return int(text)


def test_folder_of_a_lab_of_root_lies_where_nobody_can_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nginx, which root starts, takes its configuration from there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Workplace() as place:
        assert place.folder.parent == tmp_path
    os.chown(tmp_path, 20_000, 20_000)
    with Workplace() as place:
        assert place.folder.parent.stat().st_uid == 0

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is missing or wrong on this machine, each with a hint how to fix it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from warifu import identity, tools
from warifu.calibrate import environment, profile
from warifu.doctor.finding import Finding, Status
from warifu.lab import workplace

__all__ = ["Finding", "Status", "examine", "exit_code"]

TUN = Path("/dev/net/tun")

STEAL_BOUND = 0.01
"""Share of time that a hypervisor may take before runs are likely to be rejected."""

BUSY_BOUND = 0.25
"""Share of all processors that others may use while measuring."""

LOOK_SECONDS = 0.5
"""How long the processors are watched."""


def examine(device_profile: Path | None = None) -> list[Finding]:
    """Looks at tools, rights, kernel, processors, leftovers and calibration.

    `device_profile` is where `warifu calibrate host` writes; None: its default place. Nothing is
    changed.
    """
    findings = [*_tools(), *_rights(), *_kernel(), *_processors(), *_leftovers()]
    return [*findings, *_calibration(device_profile or profile.DEFAULT_PROFILE)]


def exit_code(findings: list[Finding]) -> int:
    """0 if nothing is missing, else 3; warnings do not count."""
    return 3 if any(finding.status == "missing" for finding in findings) else 0


def _tools() -> Iterator[Finding]:
    for tool in tools.TOOLS:
        try:
            yield Finding("tools", tool.name, "ok", tools.version(tool.name))
        except tools.ToolMissing:
            status: Status = "missing" if tool.needed else "warning"
            yield Finding("tools", tool.name, status, f"not found; {tool.purpose}", tool.hint)


def _rights() -> Iterator[Finding]:
    is_root = os.geteuid() == 0
    yield Finding(
        "rights", "root", "ok" if is_root else "missing",
        "yes" if is_root else f"running as user {os.geteuid()}",
        "" if is_root else f"run `{tools.as_root('...')}` to measure; predicting needs no rights",
    )  # fmt: skip
    yield _namespaces()
    yield _tun()
    yield _realtime()


def _namespaces() -> Finding:
    hint = "run as root; in a container add --cap-add NET_ADMIN --cap-add SYS_ADMIN"
    try:
        done = subprocess.run(
            ["unshare", "--net", "true"], capture_output=True, text=True, check=False
        )
    except OSError:
        return Finding("rights", "network namespaces", "missing", "`unshare` not found",
                       "`apt-get install util-linux`")  # fmt: skip
    if done.returncode == 0:
        return Finding("rights", "network namespaces", "ok", "can be created")
    return Finding("rights", "network namespaces", "missing", done.stderr.strip(), hint)


def _tun() -> Finding:
    hint = (
        "`modprobe tun`; in a container add --device /dev/net/tun"
        if not TUN.exists()
        else "run as root, or `chmod 0666 /dev/net/tun`"
    )
    try:
        with identity.as_root():
            os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return Finding("rights", str(TUN), "missing", error.strerror or str(error), hint)
    return Finding("rights", str(TUN), "ok", "can be opened")


def _realtime() -> Finding:
    """Tried in a child, so that this process keeps its own scheduling."""
    try:
        done = subprocess.run(
            ["chrt", "-f", "50", "true"], capture_output=True, text=True, check=False
        )
    except OSError:
        return Finding("rights", "SCHED_FIFO", "warning", "`chrt` not found",
                       "`apt-get install util-linux`")  # fmt: skip
    if done.returncode == 0:
        return Finding("rights", "SCHED_FIFO", "ok", "granted")
    return Finding(
        "rights", "SCHED_FIFO", "warning", "refused: the link will be late under load",
        "run as root, or in a container with --cap-add SYS_NICE",
    )  # fmt: skip


def _kernel() -> Iterator[Finding]:
    release = os.uname().release
    yield Finding("kernel", "release", "ok", f"Linux {release}")
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    available = path.read_text().split() if path.exists() else []
    if "cubic" in available:
        yield Finding("kernel", "congestion control", "ok", " ".join(available))
    else:
        yield Finding(
            "kernel", "congestion control", "missing",
            " ".join(available) or "unknown", "`modprobe tcp_cubic`",
        )  # fmt: skip


def _processors() -> Iterator[Finding]:
    cores = os.cpu_count() or 1
    yield Finding(
        "processors", "number", "ok" if cores >= 2 else "warning", str(cores),
        "" if cores >= 2 else "client, server and link will wait for one another: use two or more",
    )  # fmt: skip
    before = _times()
    time.sleep(LOOK_SECONDS)
    now = [after - earlier for after, earlier in zip(_times(), before, strict=True)]
    total = sum(now) or 1
    # user nice system idle iowait irq softirq steal (proc_stat(5))
    steal, idle = now[7] / total, (now[3] + now[4]) / total
    yield Finding(
        "processors", "taken by the hypervisor", "ok" if steal <= STEAL_BOUND else "warning",
        f"{steal:.1%}", "" if steal <= STEAL_BOUND else "measure when the host is quieter",
    )  # fmt: skip
    busy = 1 - idle - steal
    yield Finding(
        "processors", "busy", "ok" if busy <= BUSY_BOUND else "warning",
        f"{busy:.0%}", "" if busy <= BUSY_BOUND else "stop other work before measuring",
    )  # fmt: skip


def _times() -> list[int]:
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    return [int(word) for word in words]


def _leftovers() -> Iterator[Finding]:
    found = workplace.leftovers()
    if not found:
        yield Finding("leftovers", "of labs that were killed", "ok", "none")
        return
    names = ", ".join(f"{item.kind} {item.name}" for item in found)
    yield Finding(
        "leftovers", "of labs that were killed", "warning", names,
        f"`{tools.as_root('measure STUDY')}` removes them first",
    )  # fmt: skip


def _calibration(path: Path) -> Iterator[Finding]:
    hint = f"`{tools.as_root('calibrate host')}`"
    if not path.exists():
        yield Finding("calibration", profile.DEVICE, "missing", f"{path} does not exist", hint)
        return
    try:
        record = profile.read_record(path)
    except (OSError, ValueError) as error:
        said = f"{profile.record_path(path)}: {error}"
        yield Finding("calibration", profile.DEVICE, "warning", f"of unknown age: {said}", hint)
        return
    stale = environment.differences(record.machine) or environment.drift(record.pace_ns)
    if stale:
        yield Finding("calibration", profile.DEVICE, "warning", f"stale: {'; '.join(stale)}", hint)
        return
    doubts = record.details.get("warnings")
    if isinstance(doubts, list) and doubts:
        # Said once when it was made, and true as long as it is used.
        words = "; ".join(map(str, doubts))
        yield Finding("calibration", profile.DEVICE, "warning", f"doubtful: {words}", hint)
        return
    yield Finding("calibration", profile.DEVICE, "ok", record.run_id)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The doctor names what is missing, and the fix."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT
from warifu import doctor, tools
from warifu.calibrate import environment, profile
from warifu.calibrate.profile import Profile, Record
from warifu.lab import workplace
from warifu.lab.workplace import Leftover


def finding(name: str, path: Path | None = None) -> doctor.Finding:
    return next(item for item in doctor.examine(path) if item.name == name)


def test_every_area_is_looked_at_and_every_fault_has_a_hint() -> None:
    findings = doctor.examine()
    assert {item.area for item in findings} == {
        "tools", "rights", "kernel", "processors", "leftovers", "calibration",
    }  # fmt: skip
    for item in findings:
        assert item.status == "ok" or item.hint, item
        assert "\n" not in item.found + item.hint
    assert {tool.name for tool in tools.TOOLS} <= {item.name for item in findings}


def test_a_missing_tool_is_missing_and_an_optional_one_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = tools.find

    def without(name: str) -> Path:
        if name in ("nginx", "tcpdump"):
            raise tools.ToolMissing(tools.tool(name))
        return find(name)

    monkeypatch.setattr(tools, "find", without)
    assert finding("nginx").status == "missing"
    assert "apt-get install nginx" in finding("nginx").hint
    assert finding("tcpdump").status == "warning"


def test_only_what_is_missing_changes_the_exit_code() -> None:
    ok = doctor.Finding("tools", "a", "ok", "")
    warning = doctor.Finding("tools", "b", "warning", "", "do")
    missing = doctor.Finding("tools", "c", "missing", "", "do")
    assert doctor.exit_code([ok, warning]) == 0
    assert doctor.exit_code([ok, missing]) == 3


def test_calibration_is_missing_fresh_or_stale(tmp_path: Path) -> None:
    path = tmp_path / "this-host.toml"
    assert finding("this-host", path).status == "missing"
    made = Profile("run-1", "a test", "a test", 1, ())
    profile.write(made, Record("run-1", environment.machine()), path)
    assert finding("this-host", path).status == "ok"
    profile.write(made, Record("run-1", environment.machine() | {"openssl": "0.9.8"}), path)
    stale = finding("this-host", path)
    assert stale.status == "warning"
    assert "openssl was 0.9.8" in stale.found
    assert stale.hint == f"`{tools.as_root('calibrate host')}`"
    profile.record_path(path).unlink()
    assert "unknown age" in finding("this-host", path).found


def test_leftovers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workplace, "leftovers", lambda: [Leftover("namespace", "warifu-1-2-c1")])
    assert "warifu-1-2-c1" in finding("of labs that were killed").found


def test_a_refused_device_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "TUN", tmp_path / "tun")
    refused = finding(str(tmp_path / "tun"))
    assert refused.status == "missing"
    assert "modprobe tun" in refused.hint


def test_a_machine_without_chrt_is_looked_at_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run

    def without(command: list[str], **options: Any) -> Any:  # noqa: ANN401
        if command[0] == "chrt":
            raise FileNotFoundError(2, "No such file or directory", "chrt")
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", without)
    found = finding("SCHED_FIFO")
    assert found.status == "warning"
    assert "apt-get install util-linux" in found.hint


def test_only_others_than_root_are_told_to_use_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert tools.as_root("measure") == f"{tools.program()} measure"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tools.as_root("measure") == f"sudo {tools.program()} measure"


def test_setup_installs_the_package_of_every_tool() -> None:
    setup = (ROOT / "scripts" / "setup").read_text()
    # Those that everyone gets, and those of a middleware that only tests run.
    packages = re.findall(r"^(?:packages|dds)=\(([^)]*)\)", setup, re.MULTILINE)
    assert len(packages) == 2
    named = {
        found[1]
        for tool in tools.TOOLS
        if (found := re.match(r"`apt-get install (\S+)`", tool.hint)) is not None
    }
    # No Debian is without util-linux.
    assert named - {"util-linux"} <= set(" ".join(packages).split())


def test_the_module_is_found_where_programs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "libwarifu_pkcs11.so"
    made.write_bytes(b"")
    made.chmod(0o644)
    monkeypatch.setenv("WARIFU_BIN_DIR", str(tmp_path))
    assert tools.find("libwarifu_pkcs11.so") == made


def test_a_folder_of_path_that_may_not_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user finds the folder of programs of root on a PATH that sudo kept."""
    closed, stat = tmp_path / "closed", os.stat
    program = tmp_path / "nginx"
    program.write_text("")
    program.chmod(0o755)

    def refuse(path: Any, *given: Any, **named: Any) -> os.stat_result:  # noqa: ANN401
        if str(path).startswith(str(closed)):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *given, **named)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setenv("PATH", f"{closed}:{tmp_path}")
    assert tools.find("nginx") == program


def test_what_is_found_and_its_hint_fit_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from warifu.cli.app import doctor as command
    from warifu.cli.formats import Format

    told = doctor.Finding("tools", "ip", "missing", "not found " * 9, "apt-get install iproute2")
    monkeypatch.setattr(doctor, "examine", lambda *_: [told])
    command(form=Format.TABLE)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "apt-get install iproute2" in " ".join(out.split())
    command(form=Format.JSON)
    assert '"hint": "apt-get install iproute2"' in capsys.readouterr().out

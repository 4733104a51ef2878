# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The PIN in the agent's memory: how many copies there are, and who can read them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from support import needs, paths, sim
from support.holding import Agent
from warifu import tools

#: Eight digits that nothing else in a process's memory has.
PIN = "86429753"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """The state of a card with this PIN."""
    state = tmp_path / "card.state"
    sim.ask("create", state=state, pin={"digits": PIN, "scope": "signing"})
    return state


def copies(pid: int, pin: str) -> list[str]:
    """Where a process has a PIN: the maps with a copy, each as often as it has one."""
    found = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if match is None or "[vvar" in line:
                continue
            start, end = (int(one, 16) for one in match.groups())
            memory.seek(start)
            try:
                content = memory.read(end - start)
            except OSError:
                continue
            found += [line] * content.count(pin.encode())
    return found


@needs.root
def test_agent_has_one_copy_of_the_pin(card: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with sim.Server(card, socket=path), Agent(tmp_path, "--card", f"unix:{path}", pin=PIN) as agent:
        for number in range(3):
            assert agent.token("--audience", str(number)).returncode == 0
        assert agent.status()["pin"] == "held"
        found = copies(agent.process.pid, PIN)
        assert len(found) == 1, "\n".join(found)


@needs.root
@needs.program("pkcs11-tool")
def test_pin_of_a_caller_leaves_one_copy(card: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with (
        sim.Server(card, socket=path),
        Agent(tmp_path, "--card", f"unix:{path}", pin=None) as agent,
    ):
        module = tools.find("libwarifu_pkcs11.so")
        login = ["pkcs11-tool", "--module", str(module), "--login", "--pin", PIN, "--list-objects"]
        subprocess.run(login, check=True, capture_output=True, env=agent.environment())
        assert agent.status()["pin"] == "held"
        found = copies(agent.process.pid, PIN)
        assert len(found) == 1, "\n".join(found)


@needs.root
@needs.program("setpriv")
def test_same_user_cannot_read_the_agents_memory(card: Path, tmp_path: Path) -> None:
    """Not dumpable (prctl(2)): no core file, no debugger of the same user."""
    path = tmp_path / "card.sock"
    with sim.Server(card, socket=path), Agent(tmp_path, "--card", f"unix:{path}", pin=PIN) as agent:
        about = Path(f"/proc/{agent.process.pid}")
        # Of a process that is not dumpable these belong to root, whoever runs it.
        limits = re.search(r"Max core file size +(\d+)", (about / "limits").read_text())
        assert limits is not None
        assert limits[1] == "0"
        uid = 20_000
        folder = tmp_path / "others"
        folder.mkdir()
        os.chown(folder, uid, uid)
        for one in (tmp_path, *tmp_path.parents):
            if one.stat().st_mode & 0o011 != 0o011:
                one.chmod(one.stat().st_mode | 0o011)
        other = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        socket = folder / "agent.sock"
        program = tmp_path / "warifu-agent"
        program.write_bytes(tools.find("warifu-agent").read_bytes())
        program.chmod(0o755)
        process = subprocess.Popen(
            [*other, str(program), "start", "--socket", str(socket), "--card", f"unix:{path}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            end = time.monotonic() + 20
            while not socket.exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            read = [*other, "cat", f"/proc/{process.pid}/maps", f"/proc/{process.pid}/mem"]
            done = subprocess.run(read, capture_output=True, check=False)
            assert b"denied" in done.stderr
            assert not done.stdout
        finally:
            process.terminate()
            process.wait(timeout=20)


@needs.root
@needs.program("setpriv")
def test_pin_file_of_another_user_is_refused(card: Path, tmp_path: Path) -> None:
    path, pin = tmp_path / "card.sock", tmp_path / "pin"
    pin.touch(mode=0o600)
    pin.write_text(PIN)
    os.chown(pin, 20_000, 20_000)
    with (
        sim.Server(card, socket=path),
        pytest.raises(RuntimeError, match=r"2: .*pin: belongs to user 20000"),
    ):
        Agent(tmp_path, "--card", f"unix:{path}", "--pin", f"file:{pin}", pin=None)


def test_documented_unit_limits_the_agent() -> None:
    """docs/how-to/iot-safe.md, as people copy it."""
    text = (paths.ROOT / "docs/how-to/iot-safe.md").read_text()
    service = text.split("[Service]")[1].split("[Install]")[0]
    settings = dict(line.strip().split("=", 1) for line in service.splitlines() if "=" in line)
    assert settings["User"] not in ("", "root")
    assert settings["LimitCORE"] == "0"
    assert settings["MemoryMax"] == "64M"
    assert settings["ProtectSystem"] == "strict"
    assert settings["NoNewPrivileges"] == "yes"

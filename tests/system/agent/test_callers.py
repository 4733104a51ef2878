# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Callers of other users at a running agent: what they may do, and what they cannot do to others.
Root starts them as another user, so these tests need root."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs
from support.holding import PIN, Agent
from warifu import tools

OTHER = 20_000
HOSTILE = Path(__file__).with_name("hostile.py")

pytestmark = needs.root


def config(folder: Path, card: Path, callers: str) -> Path:
    (folder / "pin").touch(mode=0o600)
    (folder / "pin").write_text(PIN)
    path = folder / "agent.toml"
    path.write_text(
        f'[[card]]\naddress = "unix:{card}"\npin = "file:{folder / "pin"}"\n'
        f"[[caller]]\nuid = 0\n{callers}"
    )
    return path


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that every user can enter."""
    opened = []
    for folder in (tmp_path, *tmp_path.parents):
        mode = folder.stat().st_mode
        if mode & 0o011 != 0o011:
            folder.chmod(mode | 0o011)
            opened.append((folder, mode))
    yield tmp_path
    for folder, mode in opened:
        folder.chmod(mode)


def as_other(agent: Agent, *command: object) -> subprocess.CompletedProcess[str]:
    """A program of the other user through the agent."""
    words = [str(word) for word in command]
    return subprocess.run(
        ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--", *words],
        capture_output=True,
        text=True,
        check=False,
        env=agent.environment(),
        timeout=60,
    )


@needs.program("setpriv")
@needs.program("pkcs11-tool")
def test_wrong_pins_of_another_user_log_nobody_out(card: Path, open_folder: Path) -> None:
    caller = f'[[caller]]\nuid = {OTHER}\nkeys = ["client"]\nmay = ["sign"]\n'
    path = config(open_folder, card, caller)
    module = open_folder / "module.so"
    module.write_bytes(tools.find("libwarifu_pkcs11.so").read_bytes())
    module.chmod(0o755)
    login = ("pkcs11-tool", "--module", module, "--login", "--login-type", "user", "--pin")
    with Agent(open_folder, "--config", str(path), pin=None) as agent:
        assert agent.token("--audience", "a").returncode == 0
        for _ in range(3):
            done = as_other(agent, *login, "9999", "--list-objects")
            assert done.returncode != 0 or "error" in done.stderr, done.stdout
        # The agent is still logged in, and the card has counted nothing.
        assert agent.token("--audience", "b").returncode == 0
        assert agent.status()["pin"] == "held"
    with Agent(open_folder, "--card", f"unix:{card}", pin="9753") as agent:
        end = time.monotonic() + 20
        while agent.status()["pin"] != "refused":
            assert time.monotonic() < end, agent.status()
            time.sleep(0.01)
        assert agent.status()["pin_tries_left"] == 2, "the first wrong one that the card sees"


@needs.program("setpriv")
def test_sockets_closed_to_a_user_name_their_owner(card: Path, open_folder: Path) -> None:
    program = open_folder / "warifu-agent"
    program.write_bytes(tools.find("warifu-agent").read_bytes())
    program.chmod(0o755)
    with Agent(open_folder, "--card", f"unix:{card}") as agent:
        done = as_other(agent, program, "stop", "--socket", agent.socket)
        owned = f"belongs to user 0, and is closed to user {OTHER}: run this as user 0, or"
        assert f"the agent at {agent.socket} {owned}" in done.stderr, done.stderr
        assert f"[[caller]] with uid = {OTHER}" in done.stderr
        assert agent.token("--audience", "a").returncode == 0
    done = as_other(agent, program, "token", "--audience", "a", "--card", f"unix:{card}")
    assert f"the virtual card at {card} {owned} share it by an agent" in done.stderr, done.stderr
    assert "start" not in done.stderr


def test_strangers_leave_places_and_lose_theirs(card: Path, open_folder: Path) -> None:
    """64 users with 4 connections each, and a byte of a frame every half second."""
    path = config(open_folder, card, f"[[caller]]\nuid = {OTHER - 1}\n")
    command = [sys.executable, "-S", str(HOSTILE)]
    with Agent(open_folder, "--config", str(path), pin=None) as agent:
        flood = subprocess.Popen(
            [*command, str(agent.socket), "64", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert flood.stdin is not None
        assert flood.stdout is not None
        try:
            ready, _, _ = select.select([flood.stdout], [], [], 60)
            assert ready
            assert agent.token("--audience", "a").returncode == 0
            limit = time.monotonic() + 60
            tasks = Path(f"/proc/{agent.process.pid}/task")
            while len(list(tasks.iterdir())) > 12:
                assert time.monotonic() < limit, "slow frames keep their places"
                time.sleep(0.1)
        finally:
            flood.stdin.close()
            flood.wait(timeout=20)
            flood.stdout.close()

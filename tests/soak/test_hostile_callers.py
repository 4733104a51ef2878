# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Eight users without the right to sign do what they can to an agent, beside one program that signs
once a second on a card of half a second. HOSTILE_SECONDS is how long (3600)."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import holding, needs, paths
from support.holding import PIN, Agent

SECONDS = int(os.environ.get("HOSTILE_SECONDS", "3600"))
HOSTILE = Path(__file__).with_name("hostile_caller.py")
FIRST_UID = 20_000
#: With rights, but not to sign; then without any.
CALLERS = ("flood", "half_frames", "wrong_pins", "giant_requests", "killed")
STRANGERS = ("flood", "half_frames", "killed")
SIGNER_UID = FIRST_UID + len(CALLERS) + len(STRANGERS)
LONGEST_S = 3.0
MEMORY_MAX_MIB = 64
#: crates/iotsafe/agent-protocol/src/message.rs: with key 01, a SHA-256 digest.
SIGN = bytes([6, 1, 1, 0, 1, 32])


class Signer:
    """A well-behaved program of another user."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        os.seteuid(SIGNER_UID)
        try:
            self.socket.connect(str(path))
        finally:
            os.seteuid(0)

    def sign(self, digest: bytes) -> bytes:
        """r and s."""
        body = bytes([2, 1, 0, 60, 0]) + SIGN + digest
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        (length,) = struct.unpack(">I", self._exactly(4))
        answer = self._exactly(length)
        # Version, number, Ok, bytes, 64 of them.
        assert answer[:5] == bytes([2, 1, 0, 4, 64]), answer
        return answer[5:]

    def _exactly(self, length: int) -> bytes:
        got = b""
        while len(got) < length:
            more = self.socket.recv(length - len(got))
            assert more, "the agent closed the connection"
            got += more
        return got


def peak_memory_mib(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def requests_of(agent: Agent) -> dict[str, int]:
    """How many requests of each kind there were."""
    found = re.findall(r'_requests_total\{.*kind="(\w+)".*\} (\d+)', agent.ask("metrics"))
    return {kind: int(count) for kind, count in found}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's, which every other run of pytest closes to other users, who then reach no
    agent."""
    with tempfile.TemporaryDirectory(prefix="warifu-hostile-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@needs.root
def test_signatures_beside_hostile_callers(folder: Path) -> None:
    (folder / "pin").touch(mode=0o600)
    (folder / "pin").write_text(PIN)
    timing = {"profile": str(paths.ROOT / "profiles/cards/iot-safe-sakomoto.toml"), "seed": 1}
    callers = "".join(
        f'[[caller]]\nuid = {FIRST_UID + number}\nmay = ["random", "login"]\n'
        for number in range(len(CALLERS))
    )
    config = folder / "agent.toml"
    with holding.served(folder, timing=timing) as card, contextlib.ExitStack() as ends:
        config.write_text(
            f'[[card]]\naddress = "unix:{card}"\npin = "file:{folder / "pin"}"\n'
            f'[[caller]]\nuid = 0\n[[caller]]\nuid = {SIGNER_UID}\nmay = ["sign"]\n{callers}'
        )
        agent = ends.enter_context(Agent(folder, "--config", str(config), pin=None))
        signer = Signer(agent.socket)
        signer.sign(bytes(32))
        hostile = []
        for number, act in enumerate((*CALLERS, *STRANGERS)):
            command = [sys.executable, "-S", str(HOSTILE), str(agent.socket)]
            hostile.append(subprocess.Popen([*command, str(FIRST_UID + number), act]))
            ends.callback(hostile[-1].wait)
            ends.callback(hostile[-1].kill)
        took = []
        begin = time.monotonic()
        for number in range(SECONDS):
            time.sleep(max(0.0, begin + number - time.monotonic()))
            start = time.monotonic()
            assert len(signer.sign(number.to_bytes(32, "big"))) == 64
            took.append(time.monotonic() - start)
            assert all(one.poll() is None for one in hostile)
        memory = peak_memory_mib(agent.process.pid)
        took.sort()
        print(
            f"{len(took)} signatures: median {took[len(took) // 2]:.3f} s, "
            f"longest {took[-1]:.3f} s; agent's memory {memory:.1f} MiB"
        )
        requests = requests_of(agent)
        print("requests of all callers:", requests)
        # Attacks, and to the end: what is not understood, or refused before it is a request, or
        # does not reach the agent is none.
        for name in ("random", "verify_pin", "token"):
            assert requests.get(name, 0) > 2 * len(took), requests
        assert took[-1] <= LONGEST_S
        assert memory < MEMORY_MAX_MIB
    refused = [line for line in agent.said if "refused" in line]
    assert len(refused) > len(took) / 100, "connections beyond the places of their users"

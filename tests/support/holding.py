# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Starts cards, agents and programs, and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warifu import tools

PIN = "1234"


@contextlib.contextmanager
def served(folder: Path, **request: object) -> Iterator[Path]:
    """A new card in ``folder``, served on a socket."""
    state, socket = folder / "card.state", folder / "card.sock"
    program = tools.find("warifu-card-server")
    if not state.exists():
        pin = {"digits": PIN, "scope": "signing"}
        text = json.dumps({"state": str(state), "pin": pin})
        subprocess.run([program, "create"], input=text, text=True, check=True, capture_output=True)
    child = subprocess.Popen(
        [program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({"state": str(state), "socket": str(socket), **request}))
        child.stdin.close()
        assert "ready" in child.stdout.readline()
        yield socket
    finally:
        child.terminate()
        child.wait(timeout=20)


class Agent:
    """An agent that runs until the end of the `with` block."""

    def __init__(self, folder: Path, *arguments: str, pin: str | None = PIN) -> None:
        self.socket = folder / "agent.sock"
        if pin is not None:
            (folder / "pin").touch(mode=0o600)
            (folder / "pin").write_text(pin + "\n")
            arguments = (*arguments, "--pin", f"file:{folder / 'pin'}")
        program = tools.find("warifu-agent")
        self.process = subprocess.Popen(
            [program, "start", "--socket", str(self.socket), *arguments],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if "export WARIFU_CARD=" in line:
                break
        else:
            raise RuntimeError(f"{self.process.wait()}: {''.join(self.said)}")

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.stderr is not None
        self.said += self.process.stderr.readlines()
        self.process.wait(timeout=20)
        self.process.stderr.close()

    def environment(self) -> dict[str, str]:
        """Of programs that come through this agent."""
        return os.environ | {"WARIFU_CARD": f"agent:{self.socket}"}

    def ask(self, verb: str) -> str:
        """What `warifu agent VERB` prints."""
        program = tools.find("warifu-agent")
        done = subprocess.run(
            [program, verb, "--socket", str(self.socket)],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def status(self) -> dict[str, Any]:
        """Of the first card."""
        first: dict[str, Any] = json.loads(self.ask("status"))["cards"][0]
        return first

    def metric(self, line: str) -> float:
        """The value of a line of the metrics; 0 for none."""
        found = re.search(rf"^{re.escape(line)} (\S+)$", self.ask("metrics"), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def token(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`warifu token` through this agent."""
        program = tools.find("warifu-agent")
        return subprocess.run(
            [program, "token", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(),
        )

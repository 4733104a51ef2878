# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The virtual SIM of a part: made with the client's key, served as slow as its profile says; and
the agent that keeps its session."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu import identity, tools
from warifu.files import PROFILE_BYTES, read_bytes
from warifu.lab.errors import LabError
from warifu.lab.processes import Process, Stoppable

PIN = "1234"
"""No secret: the card lives as long as the part."""
KEY_LABEL = "client"
"""Of slot 01 (crates/iotsafe/card/src/card/personalise.rs)."""
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class StandIn:
    """What is run for a key store (crates/core/model, `StandIn`)."""

    timing: Path
    """A file of profiles/cards."""
    agent: bool = False
    """Whether an agent keeps the card's session."""


class Card(Stoppable):
    """A card that is served until the end of the `with` block."""

    def __init__(self, folder: Path, stand_in: StandIn, key: Path | None, seed: int) -> None:
        """Makes it in `folder` and serves it; the private key `key` (PEM) replaces its own."""
        folder.mkdir()
        state, socket = folder / "card.state", folder / "card.sock"
        self._agent: Process | None = None
        self._address = f"unix:{socket}"
        pin = {"digits": PIN, "scope": "signing", "tries": 3}
        _ask("create", {"state": str(state), "pin": pin})
        if key is not None:
            _ask("import", {"state": str(state), "key": str(key)})
        self._ready = folder / "ready"
        with self._ready.open("wb") as output:
            self._process = Process(
                "warifu-card-server",
                [tools.find("warifu-card-server"), "serve"],
                log=folder / "card.log",
                stdin=subprocess.PIPE,
                stdout=output,
                death_signal="TERM",
            )
        timing = folder / stand_in.timing.name
        with identity.as_caller():
            # Its words may come back in an error.
            text = read_bytes(stand_in.timing, PROFILE_BYTES)
        timing.write_bytes(text)
        request = {
            "state": str(state),
            "socket": str(socket),
            "timing": {"profile": str(timing), "seed": seed},
        }
        try:
            self._process.stdin.write(json.dumps(request).encode())
            self._process.stdin.close()
            self._until(lambda: self._ready.read_bytes().endswith(b"\n"))
            if stand_in.agent:
                self._start_agent(folder)
        except BaseException:
            self.stop()
            raise

    def _start_agent(self, folder: Path) -> None:
        """Programs reach the card through an agent, which keeps its session."""
        pin, socket = folder / "pin", folder / "agent.sock"
        pin.touch(mode=0o600)
        pin.write_text(PIN)
        config = folder / "agent.toml"
        config.write_text(
            f"socket = {json.dumps(str(socket))}\n[[card]]\n"
            f'name = "card"\naddress = {json.dumps(self._address)}\n'
            f"pin = {json.dumps(f'file:{pin}')}\n"
            # No signature waits for key pairs that were not asked for: the model has none.
            "pairs_ahead = false\nrandom_ahead_bytes = 0\n"
        )
        self._agent = Process(
            "warifu-agent",
            [tools.find("warifu-agent"), "start", "--config", config],
            log=folder / "agent.log",
            death_signal="TERM",
        )
        self._until(socket.exists)
        self._address = f"agent:{socket}"

    @property
    def agent(self) -> Path | None:
        """The agent's socket, where there is one."""
        kind, _, path = self._address.partition(":")
        return Path(path) if kind == "agent" else None

    @property
    def environment(self) -> dict[str, str]:
        """Leads our PKCS#11 module to the card."""
        return {"WARIFU_CARD": self._address}

    def key_store(self, session_open: bool) -> dict[str, Any]:
        """The key store of `warifu-tls-client` (crates/lab/tls-client/src/key_store.rs)."""
        return {
            "module": str(tools.find("libwarifu_pkcs11.so")),
            "key": KEY_LABEL,
            "pin": PIN,
            "session_open": session_open,
        }

    @property
    def processes(self) -> list[Process]:
        """The card's, and its agent's."""
        return [self._process, *([] if self._agent is None else [self._agent])]

    def check(self) -> None:
        """Raises LabError if it, or its agent, is gone."""
        for process in self.processes:
            code = process.exit_code()
            if code is not None:
                said = process.log_tail(1) or f"exit code {code}"
                raise LabError(f"{process.name} ended during the run: {said}")

    def stop(self) -> None:
        """Ends it and its agent. May be called twice."""
        if self._agent is not None:
            self._agent.stop()
        self._process.stop()

    def _until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise LabError(
                    "the virtual SIM is not ready after 10 s: run the same command again"
                )
            time.sleep(0.01)


def _ask(verb: str, request: dict[str, Any]) -> None:
    done = subprocess.run(
        [tools.find("warifu-card-server"), verb],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"cannot create the virtual SIM: {done.stderr.strip()}")

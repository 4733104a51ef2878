# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Chromium without a window, driven by its own protocol over a pipe: no port is opened."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Nothing but the page: no first-run dialogue, no updates, no network of its own.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
#: Chromium reads its protocol from descriptor 3 and writes to 4, which Python cannot promise.
_DESCRIPTORS = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'


class Tab:
    """A page that is open."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self._is_loaded = False
        #: What the browser had to say: violated policies, errors, what the page logged.
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result."""
        self._last += 1
        message: dict[str, object] = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path, width: int, height: int = 900, *, scripts: bool = True) -> None:
        """Opens a file and waits until it is there."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Log", "Runtime", "Page"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self._is_loaded:
            self._next()

    def resize(self, width: int, height: int = 900) -> None:
        """Another screen."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever the page has
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _next(self) -> dict[str, Any]:
        """The next message; complaints are kept."""
        while b"\0" not in self._buffer:
            chunk = os.read(self._out, 1 << 16)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        event = {"Log.entryAdded": "entry", "Runtime.exceptionThrown": "exceptionDetails"}
        if (key := event.get(message.get("method", ""))) is not None:
            self.complaints.append(json.dumps(message["params"][key]))
        self._is_loaded |= message.get("method") == "Page.loadEventFired"
        if message.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(message["params"]["args"]))
        return message


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A browser with a profile of its own below ``folder``; it ends with the block."""
    to_browser, into = os.pipe()
    out, from_browser = os.pipe()
    flags = [*_FLAGS, f"--user-data-dir={folder / 'browser'}"]
    shell = ["bash", "-c", _DESCRIPTORS, "browser", str(to_browser), str(from_browser)]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            [*shell, "chromium", *flags],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Tab(into, out)
    finally:
        # It ends when nobody holds the pipe any more.
        os.close(into)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(out)

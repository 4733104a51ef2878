# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A board at the other end of a serial line, as a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import threading
import tty
from pathlib import Path


class Board:
    """The other end of the line: prints `text` when it is asked, `at_once` before."""

    def __init__(self) -> None:
        self._end, self.line = pty.openpty()
        tty.setraw(self.line)
        self.port = Path(os.ttyname(self.line))
        self.text = b""
        self.at_once = b""
        self.asked = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            while os.read(self._end, 1):
                self.asked.set()
                os.write(self._end, self.at_once)
                for at in range(0, len(self.text), 61):
                    os.write(self._end, self.text[at : at + 61])
        except OSError:
            return

    def close(self) -> None:
        os.close(self.line)

    def say(self, text: bytes) -> None:
        """What the board prints without being asked; a line takes in little before it is read."""

        def write() -> None:
            # Whoever reads may have gone.
            with contextlib.suppress(OSError):
                os.write(self._end, text)

        threading.Thread(target=write, daemon=True).start()


class Plug:
    """A port that goes away and comes back as another device, under the same name."""

    def __init__(self, folder: Path) -> None:
        self.port = folder / "ttyACM0"
        self._ends: tuple[int, int] | None = None

    def put_in(self) -> None:
        """Of a board that says nothing by itself."""
        self._ends = pty.openpty()
        tty.setraw(self._ends[1])
        self.port.symlink_to(os.ttyname(self._ends[1]))

    def say(self, text: bytes) -> None:
        """What the board prints."""
        assert self._ends is not None
        os.write(self._ends[0], text)

    def pull(self) -> None:
        """Takes the port away from whoever has it open, too."""
        assert self._ends is not None
        self.port.unlink()
        for end in self._ends:
            os.close(end)
        self._ends = None

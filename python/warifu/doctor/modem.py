# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A host's side of a modem's line: a command, and what comes back until its result."""

from __future__ import annotations

import fcntl
import os
import re
import select
import termios
import time
import tty
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from warifu import _core

#: How a command ends (ITU-T V.250 section 5.7, 3GPP TS 27.007 section 9.2).
_RESULT = re.compile(rb"(?:^|[\r\n])(OK|ERROR|\+CM[ES] ERROR: ?[^\r\n]*)\r?\n")
#: Answers that may still be on their way: one of a command that had no time left, and a spare.
_PENDING = 3
_APDU = re.compile(r'\+(?:CSIM|CGLA): ?(\d+), ?"?([0-9A-Fa-f]*)"?')
_SESSION = re.compile(r"\+CCHO: ?(\d{1,3})")
_LAST_CHANNEL = 19
#: More than any answer of ours, and of it what a message repeats.
_ANSWER_BYTES = 65_536
_SAID_LETTERS = 200


class ModemError(Exception):
    """The modem refused; the text is its result."""


class LineBusy(Exception):  # noqa: N818 - what happened, not what it is
    """Another program has the line; its commands and answers would get mixed with ours."""


class ModemSilent(Exception):  # noqa: N818 - what happened, not what it is
    """No result came in time."""


@dataclass(frozen=True)
class Answer:
    """What came back to a command."""

    lines: tuple[str, ...]
    """Information, without the echo and the result."""
    echoed: bool
    """Whether the command came back first."""


class Modem:
    """A line to a modem, closed at the end of the `with` block."""

    def __init__(self, device: Path, baud: int = 115200) -> None:
        """Opens the line, 8 bits without translation; OSError if that fails, and LineBusy where a
        program of ours has it: each holds this lock (crates/iotsafe/client, transport/csim.rs)."""
        self._line = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(self._line, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(self._line)
            os.close(self._line)
            raise LineBusy(f"in use by {holder}") from None
        except OSError:
            os.close(self._line)
            raise
        try:
            tty.setraw(self._line)
            settings = termios.tcgetattr(self._line)
            speed = getattr(termios, f"B{baud}", None)
            if speed is None:
                raise OSError(f"{device}: {baud} baud is no speed of a serial line")
            settings[4] = settings[5] = speed
            settings[2] |= termios.CLOCAL | termios.CREAD
            termios.tcsetattr(self._line, termios.TCSANOW, settings)
            termios.tcflush(self._line, termios.TCIOFLUSH)
        except termios.error as error:
            os.close(self._line)
            raise OSError(error.args[0], f"{error.args[1]}: no serial line", str(device)) from None
        except OSError:
            os.close(self._line)
            raise

    def __enter__(self) -> Modem:
        """Nothing more."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the line."""
        os.close(self._line)

    def command(self, text: str, timeout_s: float = 5.0) -> Answer:
        """Sends a command and waits for its result; ModemError, ModemSilent."""
        os.write(self._line, f"{text}\r".encode())
        got, until = b"", time.monotonic() + timeout_s
        while (result := _RESULT.search(got)) is None:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._line], [], [], left)[0]:
                said = got.decode(errors="replace").strip()[:_SAID_LETTERS]
                raise ModemSilent(f"no result of {text!r} within {timeout_s:g} s, only {said!r}")
            got += os.read(self._line, 4096)
            if len(got) > _ANSWER_BYTES:
                said = got[:_SAID_LETTERS].decode(errors="replace").strip()
                raise ModemSilent(f"no result of {text!r} in {_ANSWER_BYTES:,} bytes: {said!r}")
        lines = [
            line.strip() for line in got[: result.start()].decode(errors="replace").split("\n")
        ]
        lines = [line for line in "\n".join(lines).replace("\r", "\n").split("\n") if line]
        echoed = bool(lines) and lines[0] == text
        if result[1] != b"OK":
            raise ModemError(result[1].decode(errors="replace")[:_SAID_LETTERS])
        return Answer(tuple(lines[echoed:]), echoed)

    def opened(self, channel: int) -> None:
        """Writes down that this process has a channel of the card."""
        _core.modem_channel_opened(os.fstat(self._line).st_rdev, channel)

    def closed(self, channel: int) -> None:
        """Writes down that it has it no more."""
        _core.modem_channel_closed(os.fstat(self._line).st_rdev, channel)

    def settle(self) -> list[str]:
        """Reads what is still to come of an earlier command: an OK alone answers the bare AT, which
        a modem answers after all before it. ModemError, ModemSilent."""
        late: list[str] = []
        for _ in range(_PENDING):
            lines = self.command("AT", timeout_s=10.0).lines
            if not lines:
                return late
            late += lines
        raise ModemError("goes on answering earlier commands")

    def csim(self, apdu: bytes, timeout_s: float = 10.0) -> bytes:
        """The response APDU to a command APDU; ModemError, ModemSilent."""
        text = apdu.hex().upper()
        return _response(self.command(f'AT+CSIM={len(text)},"{text}"', timeout_s))

    def open_session(self, aid: bytes, timeout_s: float = 10.0) -> int:
        """Opens a channel with this application selected; its number. ModemError, ModemSilent."""
        try:
            answer = self.command(f'AT+CCHO="{aid.hex().upper()}"', timeout_s)
        except ModemSilent:
            for found in map(_SESSION.fullmatch, self.settle()):
                if found:
                    self.close_session(int(found[1]))
            raise
        for found in map(_SESSION.fullmatch, answer.lines):
            if found and 1 <= int(found[1]) <= _LAST_CHANNEL:
                return int(found[1])
        raise ModemError(f"answered {' '.join(answer.lines)!r}: expected +CCHO: 1 to 19")

    def cgla(self, number: int, apdu: bytes, timeout_s: float = 10.0) -> bytes:
        """The response APDU to a command APDU on that channel; ModemError, ModemSilent."""
        text = apdu.hex().upper()
        return _response(self.command(f'AT+CGLA={number},{len(text)},"{text}"', timeout_s))

    def close_session(self, number: int) -> None:
        """Closes that channel; ModemError, ModemSilent."""
        self.command(f"AT+CCHC={number}", timeout_s=10.0)


def _response(answer: Answer) -> bytes:
    for found in map(_APDU.fullmatch, answer.lines):
        if found and int(found[1]) == len(found[2]) >= 4 and len(found[2]) % 2 == 0:
            return bytes.fromhex(found[2])
    said = " ".join(answer.lines)[:_SAID_LETTERS]
    raise ModemError(f'answered {said!r}: expected LENGTH,"ANSWER"')


def _holder(line: int) -> str:
    """The process that has locked an open line, as people know it (proc_locks(5))."""
    about = os.fstat(line)
    device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
    number = f" {device}:{about.st_ino} "
    try:
        rows = Path("/proc/locks").read_text().splitlines()
        found = next(row.split() for row in rows if " FLOCK " in row and number in row)
        name = Path(f"/proc/{found[4]}/comm").read_text().strip()
    except (OSError, StopIteration):
        return "another program"
    return f"{name} (process {found[4]})"

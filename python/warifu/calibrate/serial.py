# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lines of text from a board's serial port."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from warifu.calibrate.errors import CalibrateError

#: Rates that termios has.
RATES = (9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600)
#: A line of a board is shorter.
_LONGEST = 4096
#: More bytes than these without the end of a line, for longer than this, s, are no line either.
_SLOW_BYTES, _SLOW_S = 128, 20.0
#: Lines before the first one of what is looked for that are not its own: so many at once, or some
#: that have come for so long, s. A boot loader may print a few.
_MOST_FOREIGN, _SOME_FOREIGN, _FOREIGN_S = 200, 10, 10.0
#: And of its own, which may be the rest of an earlier one.
_MOST_OWN = 100_000
#: What each of the programs of firmware/munacl prints behind its rows.
AFTER_ROWS = r"# (?:end rows=|failed: |left with code ).{1,128}"
#: How the programs of firmware/munacl begin, and their files.
_BEGINS = re.compile(r"# munacl (\w+) ")
_PROGRAMS = {"bench": "bench-BOARD.elf", "cells": "capture-BOARD.elf"}
#: What they call the board if a debugger or a simulator answers their semihosting.
NO_BOARD = "none"
_OPEN = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK
#: How often a port that has gone is looked for, s.
_POLL_S = 0.2
_HINTS = {
    errno.EACCES: "add yourself to the group dialout, or run it as a user who may open it",
    errno.ENOENT: "plug the board in, and look for its port with `ls /dev/ttyACM* /dev/ttyUSB*`",
    errno.EBUSY: "end the other program that has it open",
}


class PortGone(CalibrateError):  # noqa: N818 - what happened, not what it is
    """The port has gone: its board was unplugged, or lost the power that it has by it."""


@dataclass(frozen=True)
class Printed:
    """What a program of firmware/munacl prints."""

    what: str
    """Its name in messages."""
    program: str
    """Its file."""
    head: re.Pattern[str]
    """Its first line."""
    rest: re.Pattern[str]
    """Any other line of it."""


class SerialPort:
    """An open port; `begin` finds what a program prints, and `lines` gives what follows."""

    def __init__(self, file: int, name: str) -> None:
        """Of an open file, with the port's name for messages."""
        self._file = file
        self._name = name
        self._rest = b""

    def send(self, data: bytes) -> None:
        """Writes all of it. Raises CalibrateError."""
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise self._gone(error) from None

    def begin(
        self, printed: Printed, silence_s: float, clock: Callable[[], float] = time.monotonic
    ) -> re.Match[str]:
        """The next first line of what is looked for. What comes before it is skipped, within
        bounds: a line that was noise while the power came, a boot loader's, the rest of an earlier
        run. Raises CalibrateError where that does not end, and as `lines` does."""
        own, foreign, since = 0, 0, 0.0
        for raw in self._raw_lines(printed, silence_s, clock):
            line = raw.decode("ascii", "backslashreplace")
            first = line[max(0, line.rfind("# munacl")) :]
            head = printed.head.fullmatch(first)
            if head is not None:
                return head
            other = _BEGINS.match(first)
            if other is not None and _PROGRAMS.get(other[1], printed.program) != printed.program:
                raise CalibrateError(
                    f"{self._name}: the board runs {_PROGRAMS[other[1]]}, which prints no "
                    f"{printed.what}: flash {printed.program} instead"
                )
            if printed.rest.fullmatch(line):
                own += 1
            else:
                foreign += 1
                since = since or clock()
            lasts = foreign >= _SOME_FOREIGN and clock() - since > _FOREIGN_S
            if own > _MOST_OWN or foreign >= _MOST_FOREIGN or lasts:
                raise CalibrateError(
                    f"{self._name}: {own + foreign} lines came and no {printed.what} began, the "
                    f"last one {line[:60]!r}: {self._what_to_do(printed)}"
                )
        raise AssertionError("lines have no end")

    def lines(
        self,
        printed: Printed,
        silence_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> Iterator[str]:
        """Lines without their ends. Raises CalibrateError after `silence_s` seconds without a byte,
        and where the bytes are no text."""
        for line in self._raw_lines(printed, silence_s, clock):
            yield self._text(line, printed)

    def _raw_lines(
        self, printed: Printed, silence_s: float, clock: Callable[[], float]
    ) -> Iterator[bytes]:
        until = clock() + silence_s
        heard = False
        begun = clock()
        while True:
            while b"\n" in self._rest:
                line, self._rest = self._rest.split(b"\n", 1)
                begun = clock()
                yield line.rstrip(b"\r")
            left = until - clock()
            ready = select.select([self._file], [], [], max(0.0, left))[0] if left > 0 else []
            if not ready:
                raise CalibrateError(self._silence(silence_s, heard, printed))
            try:
                some = os.read(self._file, 4096)
            except OSError as error:
                raise self._gone(error) from None
            if not some:
                raise PortGone(f"{self._name}: the board went away: plug it in again")
            heard = True
            if not self._rest:
                begun = clock()
            self._rest += some
            if b"\n" not in self._rest:
                slow = len(self._rest) > _SLOW_BYTES and clock() - begun > _SLOW_S
                if slow or len(self._rest) > _LONGEST:
                    self._text(self._rest, printed)
                    raise CalibrateError(
                        f"{self._name}: {len(self._rest)} bytes came without the end of a line, "
                        f"{self._rest[:16]!r} first: {self._what_to_do(printed)}"
                    )
            until = clock() + silence_s

    def _text(self, line: bytes, printed: Printed) -> str:
        """Raises CalibrateError for bytes that no program here prints."""
        if all(32 <= byte < 127 or byte == 9 for byte in line):
            return line.decode("ascii")
        raise CalibrateError(
            f"{self._name}: received bytes that are no text ({line[:16].hex(' ')}): the baud rate "
            "is wrong (--baud; the board's files use 115200), the line is disturbed, or the board "
            f"does not run {printed.program}"
        )

    def _silence(self, silence_s: float, heard: bool, printed: Printed) -> str:
        if self._rest:
            self._text(self._rest.rstrip(b"\r"), printed)
        what = "nothing more" if heard else "nothing"
        return (
            f"{self._name}: {what} in {silence_s:g} s: check that the board has power and runs "
            f"{printed.program}, that its TX is wired to this port's RX, and the baud rate (--baud)"
        )

    def _what_to_do(self, printed: Printed) -> str:
        return (
            f"flash {printed.program} (make -C firmware/munacl boards), and check that this is the "
            "board's port and the baud rate its own (--baud; the board's files use 115200)"
        )

    def _gone(self, error: OSError) -> PortGone:
        return PortGone(f"{self._name}: the board went away ({error.strerror}): plug it in")


@contextmanager
def opened(port: Path, baud: int) -> Iterator[SerialPort]:
    """The port, raw, at a rate of RATES; other programs cannot open it meanwhile.

    Raises CalibrateError.
    """
    if baud not in RATES:
        raise CalibrateError(f"--baud {baud}: expected one of {', '.join(map(str, RATES))}")
    try:
        file = os.open(port, _OPEN)
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "name the board's serial port with --port")
        raise CalibrateError(f"{port}: {error.strerror}: {hint}") from None
    try:
        if not os.isatty(file):
            raise CalibrateError(f"{port}: is no serial port: name one such as /dev/ttyACM0")
        _set_up(file, baud)
        # Opening waited for no carrier, which a board's line has not.
        os.set_blocking(file, True)
        fcntl.ioctl(file, termios.TIOCEXCL)
        try:
            yield SerialPort(file, str(port))
        finally:
            # A port that is gone keeps nobody out, and must not hide why the block ended.
            with suppress(OSError):
                fcntl.ioctl(file, termios.TIOCNXCL)
    finally:
        os.close(file)


def wait_for(
    port: Path,
    silence_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until a port that has gone is there again and can be opened. Raises CalibrateError
    after `silence_s` seconds."""
    until = clock() + silence_s
    while True:
        # First, since the kernel takes a device away a moment after its last read has failed; and
        # udev gives rights to a new one a moment after it has appeared.
        sleep(_POLL_S)
        try:
            os.close(os.open(port, _OPEN))
        except OSError:
            if clock() < until:
                continue
            raise CalibrateError(
                f"{port}: the board went away and did not come back in {silence_s:g} s: plug it in "
                "again, and look whether its port has another name now"
            ) from None
        return


def _set_up(file: int, baud: int) -> None:
    tty.setraw(file)
    settings = termios.tcgetattr(file)
    # A board without power holds the line low, which is a break: of those no byte is made.
    settings[0] = termios.IGNBRK
    speed = getattr(termios, f"B{baud}")
    settings[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
    settings[4] = settings[5] = speed
    termios.tcsetattr(file, termios.TCSANOW, settings)
    termios.tcflush(file, termios.TCIOFLUSH)

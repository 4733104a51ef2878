# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lines of text from a board's serial port."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warifu.calibrate.errors import CalibrateError

#: Rates that termios has.
RATES = (9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600)
#: A line of a board is shorter.
_LONGEST = 4096
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


class SerialPort:
    """An open port; `lines` gives what it sends."""

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

    def lines(self, silence_s: float, clock: Callable[[], float] = time.monotonic) -> Iterator[str]:
        """Lines without their ends. Raises CalibrateError after `silence_s` seconds without a byte,
        and where the bytes are no text."""
        until = clock() + silence_s
        heard = False
        while True:
            while b"\n" in self._rest:
                line, self._rest = self._rest.split(b"\n", 1)
                yield self._text(line)
            left = until - clock()
            ready = select.select([self._file], [], [], max(0.0, left))[0] if left > 0 else []
            if not ready:
                raise CalibrateError(self._silence(silence_s, heard))
            try:
                some = os.read(self._file, 4096)
            except OSError as error:
                raise self._gone(error) from None
            if not some:
                raise PortGone(f"{self._name}: the board went away: plug it in again")
            heard = True
            self._rest += some
            if len(self._rest) > _LONGEST and b"\n" not in self._rest:
                self._text(self._rest)
                raise CalibrateError(
                    f"{self._name}: {len(self._rest)} bytes without the end of a line: is this the "
                    "port of the board with the benchmark?"
                )
            until = clock() + silence_s

    def _text(self, line: bytes) -> str:
        """Raises CalibrateError for bytes that no program here prints."""
        line = line.rstrip(b"\r")
        if all(32 <= byte < 127 or byte == 9 for byte in line):
            return line.decode("ascii")
        raise CalibrateError(
            f"{self._name}: received bytes that are no text ({line[:16].hex(' ')}): the baud rate "
            "is wrong (--baud; the board's files use 115200), or the line is disturbed"
        )

    def _silence(self, silence_s: float, heard: bool) -> str:
        if self._rest:
            self._text(self._rest)
        what = "nothing more" if heard else "nothing"
        return (
            f"{self._name}: {what} in {silence_s:g} s: check that the board has power and runs the "
            "program, that its TX is wired to this port's RX, and the baud rate (--baud)"
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
    speed = getattr(termios, f"B{baud}")
    settings[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
    settings[4] = settings[5] = speed
    termios.tcsetattr(file, termios.TCSANOW, settings)
    termios.tcflush(file, termios.TCIOFLUSH)

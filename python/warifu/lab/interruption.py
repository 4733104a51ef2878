# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ctrl-C and other signals, handled only where no work is half done.

An exception that a signal raises between any two instructions can leave a lock held or a clean-up
undone: `subprocess.Popen.wait` hangs for ever if it strikes between taking its lock and the block
that gives it back. So the lab notes signals, and raises where it waits.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_noted: list[int] = []


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """While inside, SIGINT, SIGTERM and SIGHUP are noted, and raised by `check` or at the end.

    Outside the main thread nothing can be changed; whoever owns the main thread must then see to
    it. Nested, it is the outer one that counts.
    """
    ours = signal.getsignal(signal.SIGINT) is _note
    if ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    _noted.clear()
    before = {number: signal.signal(number, _note) for number in SIGNALS}
    try:
        try:
            yield
        except Exception:
            # A program that fails because of the signal is not what happened.
            check()
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        check()
    finally:
        # Outside nothing is noted, and what was is told.
        _noted.clear()


def check() -> None:
    """Raises KeyboardInterrupt for a noted SIGINT, SystemExit (128 + number) for the others."""
    if not _noted:
        return
    number = _noted[0]
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _note(number: int, _frame: FrameType | None) -> None:
    _noted.append(number)

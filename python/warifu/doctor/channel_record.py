# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which channel of a card behind a modem the doctor has open, where the programs with the module
write theirs down (crates/iotsafe/client/src/transport/channel_record.rs): if it is killed, the next
of them closes it. Whoever holds the line's lock may use the record.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from warifu.lab import processes

_MOST_BYTES = 4096


def opened(line: int, channel: int) -> None:
    """This process has opened a channel behind an open line."""
    _change(line, [*_others(line, channel), _own(channel)])


def closed(line: int, channel: int) -> None:
    """It has closed it."""
    _change(line, _others(line, channel))


def _own(channel: int) -> str:
    pid = os.getpid()
    return f"{pid} {processes.start_time(pid)} {channel}\n"


def _others(line: int, channel: int) -> list[str]:
    try:
        with os.fdopen(_open(line, os.O_RDONLY)) as file:
            lines = file.read(_MOST_BYTES).splitlines(keepends=True)
    except (OSError, ValueError):
        return []
    return [one for one in lines if one != _own(channel)]


def _change(line: int, lines: list[str]) -> None:
    # Without a record it is as it always was: the modem's restart closes what is left.
    with contextlib.suppress(OSError):
        _path(line).parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(_open(line, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            file.write("".join(lines))


def _open(line: int, flags: int) -> int:
    return os.open(_path(line), flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def _path(line: int) -> Path:
    folder = os.environ.get("XDG_RUNTIME_DIR") or "/run"
    return Path(folder) / "warifu" / f"modem-{os.fstat(line).st_rdev:x}.channels"

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files that somebody named or handed over: read only where they are files, and up to a size.

A device never ends and a pipe may never begin, so that reading one would hang.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

#: A study; the longest that is shipped has 4 kB.
STUDY_BYTES = 4_000_000
#: A profile; the longest that is shipped has 417 kB.
PROFILE_BYTES = 32_000_000
#: What a results folder has beside its observations: a manifest of 2,000 cases has some 20 MB.
RESULTS_BYTES = 256_000_000

_KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class FileRefused(Exception):  # noqa: N818 - what happened, not what it is
    """What is no file, or no text, or too long; the text is one line that names it and the fix."""


def read_bytes(path: Path, most: int) -> bytes:
    """The bytes of a regular file. Raises FileRefused for more than ``most`` and for what is none,
    and OSError."""
    _refuse_other(path, path.stat().st_mode)
    with path.open("rb") as file:
        # Its size is not asked for: a file of /proc has none, and others may grow.
        content = file.read(most + 1)
    if len(content) > most:
        raise FileRefused(
            f"{path}: is longer than {most:,} bytes, the most that is read: name another file"
        )
    return content


def read_text(path: Path, most: int) -> str:
    """The text of a regular file in UTF-8. Raises FileRefused, and OSError."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileRefused(
            f"{path}: is not UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from None


def refuse_to_replace(path: Path) -> None:
    """Raises FileRefused, or OSError, where ``path`` is there and is no regular file: a device that
    is replaced by a file is gone."""
    try:
        _refuse_other(path, path.stat().st_mode)
    except FileNotFoundError:
        return


def _refuse_other(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        what = next((name for is_one, name in _KINDS if is_one(mode)), "something else")
        raise FileRefused(f"{path}: is {what}, not a file: name a regular file")

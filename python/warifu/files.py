# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files that somebody named or handed over: read only where they are files, and up to a size.

A device never ends and a pipe may never begin, so that reading one would hang. What is written
appears under its name when it is whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

#: A study; the longest that is shipped has 4 kB.
STUDY_BYTES = 4_000_000
#: A profile; the longest that is shipped has 417 kB.
PROFILE_BYTES = 32_000_000
#: What a results folder has beside its observations: a manifest of 2,000 cases has some 20 MB.
RESULTS_BYTES = 256_000_000
#: A capture of a chip's memory (`warifu cells`): none of these chips has more RAM.
CAPTURE_BYTES = 1 << 20

#: A link is followed: whoever names a study may name it so.
_NOTHING_WAITS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISSOCK, "a socket"),
)


_ROOT = 0
#: Where root's folders are when the environment names somebody else's.
_ROOTS_TEMPORARY = Path("/tmp")

#: A full disk, a quota, and a limit of files' sizes.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileRefused(Exception):  # noqa: N818 - what happened, not what it is
    """What is no file, or no text, or too long; the text is one line that names it and the fix."""


@contextlib.contextmanager
def opened(path: Path, *, follow: bool = True) -> Iterator[BufferedReader]:
    """A regular file, to be read; not through a link that it is itself unless `follow`. Raises
    FileRefused for what is none, and OSError."""
    # Before it is opened, since that alone sets some devices in motion.
    _refuse_other(path, path.stat(follow_symlinks=follow).st_mode)
    # And again, since a pipe may have taken its place, whose opening would wait for a writer.
    flags = _NOTHING_WAITS | (0 if follow else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        _refuse_other(path, about.st_mode)
        _refuse_proc(path, about.st_dev)
        yield file


def read_bytes(path: Path, most: int, *, follow: bool = True) -> bytes:
    """The bytes of a regular file; see `opened`. Raises FileRefused for more than ``most`` and for
    what is none, and OSError."""
    with opened(path, follow=follow) as file:
        # Its size is not asked for: files may grow.
        content = file.read(most + 1)
    if len(content) > most:
        raise FileRefused(
            f"{path}: is longer than {most:,} bytes, the most that is read: name another file"
        )
    return content


def read_text(path: Path, most: int, *, follow: bool = True) -> str:
    """The text of a regular file in UTF-8; see `opened`. Raises FileRefused, and OSError."""
    try:
        return read_bytes(path, most, follow=follow).decode("utf-8")
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


def refuse_same(path: Path, inputs: Iterable[Path]) -> None:
    """Raises FileRefused where ``path``, which is to be written, is one of the files that are read,
    by another name or a link of either kind as well."""
    for one in inputs:
        with contextlib.suppress(OSError):
            if path.samefile(one):
                what = str(one) if str(one) == str(path) else f"{one}, by another name"
                raise FileRefused(f"{path}: is {what}, which is read: write to another file")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` when the block ends, and none if it raises.

    Until then it has a name that nobody knows beforehand, and is made, never opened (O_EXCL), so
    that nobody can put a link there. Raises OSError, also where the disk is full.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            # mkstemp's are private; others get what any new file gets.
            os.fchmod(descriptor, 0o666 & ~_mask())
            yield file
            file.flush()
            os.fsync(descriptor)
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            # Where it is written, its name is not known.
            error.filename = str(path)
        raise


def replace_text(path: Path, text: str) -> None:
    """Writes ``path`` in UTF-8, whole or not at all; see `replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def temporary_folder() -> Path:
    """Where new folders for a while are made: never, for root, in one that somebody else owns, who
    could put another in their place, with other programs and other configuration of nginx in it."""
    given = Path(tempfile.gettempdir())
    if os.geteuid() != _ROOT:
        return given
    real = given.resolve()
    return real if all(map(_keeps_names, (real, *real.parents))) else _ROOTS_TEMPORARY


def _keeps_names(folder: Path) -> bool:
    """Whether nobody but root can rename what root has in it."""
    known = folder.stat()
    is_open = known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return known.st_uid == _ROOT and (not is_open or bool(known.st_mode & stat.S_ISVTX))


def _mask() -> int:
    """The mask of new files (umask(2)), which can only be read from the kernel by setting it."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = next((line for line in status.splitlines() if line.startswith("Umask:")), "Umask: 22")
    return int(found.split()[1], 8)


def _refuse_proc(path: Path, device: int) -> None:
    """The kernel shows root there what it shows no one else, whosever files root reads
    (`warifu.identity`)."""
    with contextlib.suppress(FileNotFoundError):
        if device == Path("/proc").stat().st_dev:
            raise FileRefused(f"{path}: is a file of /proc: name a copy of it")


def _refuse_other(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        what = next((name for is_one, name in _KINDS if is_one(mode)), "something else")
        raise FileRefused(f"{path}: is {what}, not a file: name a regular file")

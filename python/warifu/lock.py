# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One writer at a time in a folder of results.

Two runs into one folder would each replace files of the other, and the manifest of one would
stand over the rows of the other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FILE_NAME = ".warifu.lock"

#: File systems that have no locks: there the user is trusted to start one run at a time.
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

#: A link in its place is not followed, and a pipe not waited for.
_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK

#: More than what a holder writes into it.
_LOCK_BYTES = 200

_held: set[Path] = set()


class FolderBusy(Exception):  # noqa: N818 - what happened, not what it is
    """Another process writes into the folder; the text names it and says what to do."""


@contextlib.contextmanager
def held(folder: Path, verb: str) -> Iterator[None]:
    """Holds a study's folder for ``verb``; makes the folder if need be.

    A process that holds it already goes on. The lock is the kernel's and ends with the
    process, however that ends. A folder in which nothing was left is removed again, and those
    that were made for it.

    Raises FolderBusy if another process holds it, OSError if it cannot be made.
    """
    where = folder.absolute()
    if where in _held:
        yield
        return
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(folder / FILE_NAME, folder, verb)
    _held.add(where)
    try:
        yield
    finally:
        _held.discard(where)
        with contextlib.suppress(OSError):
            # Before the lock is released: who waits for it sees that its file is gone.
            if _is_at(folder / FILE_NAME, descriptor):
                (folder / FILE_NAME).unlink()
        os.close(descriptor)
        for one in made:
            with contextlib.suppress(OSError):
                one.rmdir()


def _acquire(path: Path, folder: Path, verb: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        except PermissionError:
            # Root holds it, or did so when it was killed: to ask, reading is enough.
            if not path.exists():
                raise
            descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
            own = False
        else:
            own = True
        _refuse_other(path, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, _LOCK_BYTES, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise FolderBusy(
                f"{folder}: {holder or 'another process'} is writing there: wait until it has "
                "ended, or choose another folder with --out"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise
        if own and _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} (warifu {verb})\n".encode(), 0)
            return descriptor
        if not own and _is_at(path, descriptor):
            # Nobody holds it any more: while it is there, only who has its lock removes it, and
            # nobody makes another.
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _refuse_other(path: Path, descriptor: int) -> None:
    """Raises FolderBusy for what is no lock, such as another name of somebody's file: it would be
    overwritten."""
    about = os.fstat(descriptor)
    # None, where its last holder has just removed it.
    names = about.st_nlink
    if not stat.S_ISREG(about.st_mode) or names > 1 or about.st_size > _LOCK_BYTES:
        os.close(descriptor)
        raise FolderBusy(f"{path}: is not a lock of this program: remove it")


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one at ``path``: its last holder may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False

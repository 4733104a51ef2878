# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A keystore's files: written whole, for their owner alone, through no link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The longest document that is signed; SROS2's have 2 kB.
_MOST_BYTES = 4_000_000
_READ = (".pem", ".xml", ".p7s")
#: Files and folders that are looked through; an enclave has seven.
_MOST_FILES = 100_000
_ROOT = 0
#: Their rights to change a file or what is in a folder.
_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class KeystoreRefused(Exception):  # noqa: N818 - what happened, not what it is
    """A name, a file or a folder that will not do; the text is one line that names it and the
    fix."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else makes or changes this keystore meanwhile. Raises KeystoreRefused, OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeystoreRefused(
                f"{folder}: another `warifu dds keystore` is changing it: wait until it has ended"
            ) from None
        yield
    finally:
        os.close(descriptor)


def refuse_others(folder: Path) -> None:
    """Raises KeystoreRefused where the folder or anything in it belongs to somebody else than this
    user or root, or can be changed by others: the CA signs what stands there. And where anything in
    it is a link, or neither file nor folder: what is read, signed or written through a link could
    be anybody's, and openssl waits for a pipe. The folder itself may be a link."""
    if folder.exists():
        _refuse_of_others(folder, folder, folder.stat())
    left = _MOST_FILES
    for place, folders, files in os.walk(folder):
        left -= len(folders) + len(files)
        if left < 0:
            raise KeystoreRefused(
                f"{folder}: holds more than {_MOST_FILES:,} files: is it a keystore?"
            )
        for name in (*folders, *files):
            path = Path(place, name)
            about = path.lstat()
            if stat.S_ISLNK(about.st_mode):
                raise KeystoreRefused(
                    f"{path}: is a link, and links in a keystore are not followed: put a copy of "
                    "what it points to in its place (`ros2 security` makes such links: add to its "
                    "keystores with `ros2 security create_enclave`)"
                )
            if not (stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode)):
                raise KeystoreRefused(
                    f"{path}: is neither a file nor a folder: remove it, or restore the file"
                )
            _refuse_of_others(folder, path, about)
            if path.suffix in _READ and about.st_size > _MOST_BYTES:
                raise KeystoreRefused(
                    f"{path}: is longer than {_MOST_BYTES:,} bytes, the most that is read: "
                    "restore it from a copy"
                )


def _refuse_of_others(folder: Path, path: Path, about: os.stat_result) -> None:
    # The folder may be a link, which chown and chmod do not follow into.
    quoted = shlex.quote(str(folder.resolve() if folder.is_symlink() else folder))
    # As sshd looks at a user's files (sshd_config(5), StrictModes): root needs no trick.
    if about.st_uid not in {_ROOT, os.geteuid()}:
        raise KeystoreRefused(
            f"{path}: belongs to user {about.st_uid}, and the CA would sign what that user wrote: "
            f"run this as that user; or check it, then `chown -R {os.geteuid()} {quoted}`"
        )
    if about.st_mode & _OF_OTHERS:
        raise KeystoreRefused(
            f"{path}: is writable by its group or by others, and the CA would sign what they "
            f"wrote: check it, then `chmod -R go-w {quoted}`"
        )


def directory(path: Path) -> None:
    """A folder, and those above it: new ones can be changed by their owner alone, whatever the
    mask of new files (umask(2)), and this one is its owner's to read as well."""
    for above in reversed(path.parents):
        if not above.is_dir():
            above.mkdir(mode=0o755, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def take(folder: Path) -> None:
    """A folder that is to be a keystore: while it is empty, others lose the right to put something
    there. mkdir(1) gives it to a user's group under umask 002."""
    if folder.stat().st_uid == os.geteuid() and not any(folder.iterdir()):
        private(folder.resolve(), 0o755)


def private(path: Path, most: int = 0o700) -> None:
    """A file or folder that was there before: nobody else may look into it from now on, or do what
    `most` leaves out. Through no link: OSError."""
    # Opened without waiting, should a pipe be there.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & ~most & 0o777:
            os.fchmod(descriptor, mode & most)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """A file in the place of an older one, whole or not at all: for its owner alone, or for whom
    the older one was, but to be changed by nobody else."""
    mode = 0o600
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.lstat().st_mode) & 0o755 | 0o600
    # mkstemp makes it (O_EXCL), for its owner alone; a name in a folder is replaced, never what a
    # link of that name points to.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def text_of(path: Path) -> str:
    """A document, as it stands. Raises FileRefused and OSError."""
    from warifu.files import read_text

    return read_text(path, _MOST_BYTES)

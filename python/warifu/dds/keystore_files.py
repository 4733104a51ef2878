# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A keystore's files: written whole, for their owner alone, through no link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The longest document that is signed; SROS2's have 2 kB.
_MOST_BYTES = 4_000_000
_READ = (".pem", ".xml", ".p7s")
#: Files and folders that are looked through; an enclave has seven.
_MOST_FILES = 100_000


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
    """Raises KeystoreRefused where anything in the folder is a link, or neither file nor folder:
    what is read, signed or written through a link could be anybody's, and openssl waits for a pipe.
    The folder itself may be a link."""
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
            if path.suffix in _READ and about.st_size > _MOST_BYTES:
                raise KeystoreRefused(
                    f"{path}: is longer than {_MOST_BYTES:,} bytes, the most that is read: "
                    "restore it from a copy"
                )


def directory(path: Path) -> None:
    """A folder, and those above it: new ones are their owner's alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def private(path: Path) -> None:
    """A file or folder that was there before: nobody else may look into it from now on."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & 0o077:
        path.chmod(mode & 0o700)


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

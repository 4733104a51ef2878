# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The owner of results: what sudo writes for a user, the user must be able to replace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = 0


def give_back(*paths: Path) -> None:
    """Gives files and folders that root has written to the user who called sudo.

    Only below a folder that is that user's own: what lies in root's folders stays root's. The
    folders in between, which were made on the way, go with them. Links are not followed.
    """
    user, group = _number("SUDO_UID"), _number("SUDO_GID")
    if os.geteuid() != _ROOT or not user or group is None:
        return
    for path in paths:
        if not path.exists():
            continue
        above = _made_below(path.absolute(), user)
        for one in [] if above is None else [*above, *_below(path)]:
            with contextlib.suppress(OSError):
                if _owner(one) == _ROOT:
                    os.chown(one, user, group, follow_symlinks=False)


def _made_below(path: Path, user: int) -> list[Path] | None:
    """``path`` and the folders over it up to the first that is the user's; None if none is."""
    found: list[Path] = []
    for one in (path, *path.parents):
        if _owner(one) == user:
            return found
        found.append(one)
    return None


def _below(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        yield from (Path(folder) / name for name in (*folders, *files))


def _owner(path: Path) -> int:
    return os.lstat(path).st_uid


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else None

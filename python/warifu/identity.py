# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whose files are read and written when root was asked for with sudo: those of who asked.

Root that writes in a user's folder follows the links that the user puts there. So a process that
sudo has started reads and writes files as the user who called sudo (setfsuid(2)), and is root only
where it says so with `as_root`: in the lab's own folder, which nobody else may change. A command
that needs no root at all becomes that user for good.

Programs that are started are root again (execve(2) sets the file system's user to the effective
one), unless they get `of_caller`. The file system's user belongs to a thread, and threads take over
that of who started them (credentials(7)): `begin` comes before any is started.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ROOT = 0
#: What the kernel takes for a user; its largest number stands for none.
_USERS = range(2**31)
_USER_DIGITS = 10


@dataclass(frozen=True)
class Caller:
    """The user who called sudo."""

    user: int
    group: int
    groups: tuple[int, ...]
    name: str
    home: str


#: Where Python's and Rust's temporary files go (tempfile, std::env::temp_dir).
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


class CallerUnknown(Exception):  # noqa: N818 - what happened, not what it is
    """What sudo says of its caller is no user."""


class InstallationHidden(Exception):  # noqa: N818 - what happened, not what it is
    """The user who called sudo may not read Python or Warifu itself."""


#: Whose files they are; None where nobody called sudo, and once this process is that user.
_caller: Caller | None = None


def begin() -> None:
    """From now on files are those of the user who called sudo, if one did."""
    global _caller
    found = _of_sudo()
    if found is None:
        return
    os.setgroups(found.groups)
    _files(found.user, found.group)
    for path in (os.__file__, __file__):
        if not os.access(path, os.R_OK, effective_ids=True):
            raise InstallationHidden(
                f"{path} cannot be read by user {found.name}, for whom sudo runs this: make it "
                f"readable for others, or use `env -u SUDO_UID` in root's own folders"
            )
    for name in _TEMPORARY:
        # What is the lab's own must not lie where the user can put another folder in its place;
        # sudo leaves them out as well, unless it is told to keep them.
        os.environ.pop(name, None)
    _caller = found


def become_caller() -> None:
    """Gives up root for good, for a command that needs none."""
    global _caller
    caller = _caller
    if caller is None:
        return
    os.setresgid(caller.group, caller.group, caller.group)
    os.setresuid(caller.user, caller.user, caller.user)
    os.environ.update(_of_home(caller))
    _caller = None


def caller() -> Caller | None:
    """Whose files are read and written, where that is not this process's own user."""
    return _caller


@contextlib.contextmanager
def as_root() -> Iterator[None]:
    """Files are root's inside: only for what lies where nobody else can write."""
    with _files_inside(_ROOT, _ROOT):
        yield


@contextlib.contextmanager
def as_caller() -> Iterator[None]:
    """The opposite, inside `as_root`: for a file that the user named."""
    with (
        contextlib.nullcontext() if _caller is None else _files_inside(_caller.user, _caller.group)
    ):
        yield


def of_caller() -> dict[str, Any]:
    """Arguments of `subprocess.run` for a program that needs no root: it runs as the user who
    called sudo."""
    if _caller is None:
        return {}
    return {
        "user": _caller.user,
        "group": _caller.group,
        "extra_groups": _caller.groups,
        "env": os.environ | _of_home(_caller),
    }


def _of_home(caller: Caller) -> dict[str, str]:
    """What sudo sets to root's own (sudoers(5), env_reset)."""
    return {"HOME": caller.home, "USER": caller.name, "LOGNAME": caller.name}


def _of_sudo() -> Caller | None:
    user = _number("SUDO_UID")
    if not user:
        return None
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        # Of a directory that this machine does not ask.
        group = _number("SUDO_GID")
        group = user if group is None else group
        return Caller(user, group, (group,), str(user), "/")
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Caller(user, entry.pw_gid, groups, entry.pw_name, entry.pw_dir)


def _number(variable: str) -> int | None:
    """None without it, and where we are not root, who alone can act for another user."""
    value = os.environ.get(variable)
    if value is None or os.geteuid() != _ROOT:
        return None
    # To go on would be to write as root in the folder of a user.
    digits = value.isascii() and value.isdecimal() and len(value) <= _USER_DIGITS
    if not (digits and int(value) in _USERS):
        raise CallerUnknown(
            f"{variable} is {value!r}: expected the number of the user who called sudo; "
            "`env -u SUDO_UID` if nobody did"
        )
    return int(value)


@contextlib.contextmanager
def _files_inside(user: int, group: int) -> Iterator[None]:
    if _caller is None:
        yield
        return
    from warifu import _core

    before = _core.fs_user()
    _files(user, group)
    try:
        yield
    finally:
        _files(*before)


def _files(user: int, group: int) -> None:
    """Sets the file system's user and group of this thread, and with the user its capabilities
    over files."""
    from warifu import _core  # loaded where it is needed: most commands have no sudo before them

    try:
        _core.set_fs_user(user, group)
    except OSError:
        raise PermissionError(
            f"files cannot be those of user {user}: run it without sudo, or as root alone "
            "(`env -u SUDO_UID`)"
        ) from None

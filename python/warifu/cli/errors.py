# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exit codes, and every expected failure as one line on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OK = 0
#: A requirement or a gate failed, or every connection did.
FAILED = 1
#: A mistake in the command line, a study or a profile; or results that are damaged or
#: must not be compared.
USAGE = 2
#: This machine lacks something: a tool, a right, room on the disk; or the folder is taken.
ENVIRONMENT = 3
#: Ctrl-C; 128 + SIGINT, as shells have it.
INTERRUPTED = 130

#: Names of the exceptions of other rooms, so that their modules need not be imported to tell:
#: if one was raised, its module is loaded.
_USAGE = {"StudyError", "WarifuError", "ResultsError", "CompareError", "ReportError"}
_USAGE |= {"ResultsDamaged", "FileRefused", "KeystoreRefused", "DeviceError", "ReplayRefused"}
_ENVIRONMENT = {"LabError", "LabUnavailable", "RunRejected", "ToolMissing", "CalibrateError"}
_ENVIRONMENT |= {"CalibrationError", "ResultsMixed", "FolderBusy", "AnotherStudy", "StorageError"}
_ENVIRONMENT |= {"CallerUnknown", "InstallationHidden", "KeystoreError", "ProfileError"}
_ENVIRONMENT |= {"PortGone"}

_HINTS = {
    errno.ENOSPC: "make room on the disk, then run the same command again",
    errno.EDQUOT: "make room in your quota, then run the same command again",
    errno.EACCES: "choose a place that you can write to, or change its permissions",
    errno.EPERM: "run it as a user who may do that; `warifu doctor` says what is needed",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOENT: "check the name, or choose another place",
    errno.ENOTDIR: "a file is where a folder should be: choose another place, or move that file",
    errno.EEXIST: "a file is where a folder should be: choose another place, or move that file",
    errno.EISDIR: "a folder is where a file should be: choose another name, or move that folder",
    errno.ELOOP: "its symbolic links form a loop: name their target itself",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EADDRINUSE: "stop whatever uses that port, or choose another",
}


class Interrupted(Exception):  # noqa: N818 - what happened, not what it is
    """Ctrl-C in a command; its text, if it has one, says what is left."""


#: Where a command's work is its output alone.
NOTHING_WRITTEN = "interrupted; nothing was written"
NO_PROFILE = "interrupted; no profile was written, and an earlier one is unchanged"
#: Where nothing is known of what was kept.
_INTERRUPTED = "interrupted"


@contextmanager
def when_interrupted(words: str) -> Iterator[None]:
    """Ctrl-C inside says these words."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(words) from None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What fails inside is about this file: a write to a full disk names none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def guarded(work: Callable[[], int]) -> int:
    """Runs ``work``; what it raises becomes one line and an exit code."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, Interrupted) as interrupt:
        # One that is raised with words knows better what was kept.
        _say(str(interrupt) or _INTERRUPTED)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it; Python must not complain when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        known = _explain(error)
        if known is None:
            raise
        return known


def _explain(error: Exception) -> int | None:
    """Says what happened; None for what is a mistake of ours, which needs its traceback."""
    name = type(error).__name__
    if name == "NoArgsIsHelpError":
        # Its message is the help, as long as it is.
        print(error.format_message(), file=sys.stderr)  # type: ignore[attr-defined]
        return USAGE
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _usage(error)
    if name == "Abort":
        _say(_INTERRUPTED)
        return INTERRUPTED
    if name == "CardError":
        _say(str(error))
        return int(getattr(error, "exit_code", FAILED))
    if name == "Exit":
        return int(getattr(error, "exit_code", FAILED))
    if name in _USAGE:
        _say(str(error))
        return USAGE
    if name in _ENVIRONMENT:
        refused = "Permission denied" in str(error)
        _say(f"{error}{_of_sudo() if refused else ''}")
        return ENVIRONMENT
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        hint = _HINTS.get(error.errno or 0, "`warifu doctor` looks at this machine")
        if error.errno in (errno.EACCES, errno.EPERM):
            hint += _of_sudo()
        _say(f"{where}{error.strerror or error}: {hint}")
        return ENVIRONMENT
    if isinstance(error, (AttributeError, ImportError)) and _of_older_core(error):
        _say(f"the compiled part is older than this source: {_repair()}")
        return ENVIRONMENT
    if isinstance(error, ImportError) and error.name:
        _say(f"the Python package {error.name} cannot be loaded ({error}): {_repair()}")
        return ENVIRONMENT
    return None


def _repair() -> str:
    from warifu import tools

    return tools.repair()


def _of_sudo() -> str:
    """What to know of files where sudo was used."""
    caller = os.environ.get("SUDO_USER") or os.environ.get("SUDO_UID", "")
    if os.environ.get("SUDO_UID", "0") == "0":
        return ""
    return (
        f" (with sudo, files are read and written as {caller}; those that an older version has "
        f"left to root: `sudo chown -R {caller} FOLDER`; in root's own folders: `env -u SUDO_UID`)"
    )


def _of_older_core(error: AttributeError | ImportError) -> bool:
    """Whether the compiled part is there and lacks what this source asks it for."""
    core = sys.modules.get("warifu._core")
    if isinstance(error, AttributeError):
        return core is not None and error.obj is core
    # What cannot be loaded at all is not there.
    return core is not None and error.name == core.__name__


def _usage(error: Exception) -> int:
    """A mistake in the flags, as the parser words it, with the way to help."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "warifu"
    message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    # Whose error it is in the parser says nothing to the user.
    message = message.replace(": Value error, ", ": ", 1)
    _say(f"{message}: see `{command} --help`")
    return USAGE


def _say(text: str) -> None:
    """One line, whatever a file's name or another program put into the text."""
    from warifu.printable import printable

    print(f"warifu: {printable(' '.join(text.split()))}", file=sys.stderr)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Who made a result, when, on what machine and with which version."""

from __future__ import annotations

import datetime
import re
import secrets
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warifu import identity

if TYPE_CHECKING:
    from warifu.study import Loaded


def now() -> str:
    """The instant, RFC 3339 in UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_run_id(half: str) -> str:
    """A name for a run, sorted by time."""
    instant = datetime.datetime.now(datetime.UTC)
    return f"{half}-{instant:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def manifest(loaded: Loaded, half: str) -> dict[str, Any]:
    """What the command line knows of a run that is about to begin."""
    from warifu import _core, study
    from warifu.lab import kernel

    commit, dirty = version()
    return study.manifest(
        loaded,
        half,
        new_run_id(half),
        now(),
        commit=commit,
        dirty=dirty,
        machine=kernel.machine({}),
        tools={"warifu": _core.__version__},
    )


def version() -> tuple[str | None, bool | None]:
    """The commit of the checkout that runs and whether its sources differ; None elsewhere."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None, None
    commit = _git(checkout, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


#: What makes a prediction what it is, beside its profiles, which its manifest has.
_PREDICTOR = ("crates/core", "crates/predict", "crates/py")


def is_this_predictor(commit: str | None, dirty: bool | None) -> bool:
    """Whether the version that made a prediction would make it as this one does: the same commit,
    or one that differs in nothing that predicts. Also where one of the two is not known."""
    here, changed = version()
    if here is None or commit is None or (commit, dirty) == (here, changed):
        return True
    if dirty or changed or not re.fullmatch(r"[0-9a-f]{7,64}", commit):
        return False
    checkout = Path(__file__).resolve().parents[2]
    different = _git(checkout, "diff", "--name-only", commit, here, "--", *_PREDICTOR)
    return different == ""


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
            # Git runs what the checkout's own configuration says.
            **identity.of_caller(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

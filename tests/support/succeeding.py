# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that have to succeed, and whose own words count if they do not."""

from __future__ import annotations

import subprocess
from pathlib import Path


def must(*command: str | Path) -> None:
    """Runs it. Raises CalledProcessError, which a test's failure shows with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        done.check_returncode()
    except subprocess.CalledProcessError as error:
        error.add_note(f"{done.stdout}{done.stderr}")
        raise

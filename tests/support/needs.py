# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tests that not every machine or user can run. They are reported as skipped, with the reason;
WARIFU_SKIP_NOTHING=1, which continuous integration sets, makes that a failure (conftest.py)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from warifu.tools import SYSTEM_FOLDERS

SKIP_NOTHING = "WARIFU_SKIP_NOTHING"

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
"""For namespaces, TUN devices and real-time scheduling."""


def program(name: str) -> pytest.MarkDecorator:
    """A test that runs this program."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM_FOLDERS])
    missing = shutil.which(name, path=path) is None
    return pytest.mark.skipif(missing, reason=f"needs program {name}")


def file(path: Path, package: str) -> pytest.MarkDecorator:
    """A test that builds with what this package has."""
    return pytest.mark.skipif(not path.exists(), reason=f"needs package {package}")

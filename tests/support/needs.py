# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tests that not every machine or user can run. They are reported as skipped, with the reason;
WARIFU_SKIP_NOTHING=1, which continuous integration sets, makes that a failure (conftest.py)."""

from __future__ import annotations

import os
import shutil
import sys
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


def python(major: int, minor: int) -> pytest.MarkDecorator:
    """A test of what is built for this version of Python alone."""
    other = sys.version_info[:2] != (major, minor)
    return pytest.mark.skipif(other, reason=f"needs Python {major}.{minor}")


def found(condition: str, what: str) -> pytest.MarkDecorator:
    """A test of something that takes long to get: `condition`, an expression of the test's module,
    is asked when the test is about to run, and no sooner."""
    return pytest.mark.skipif(f"not ({condition})", reason=f"needs {what}")

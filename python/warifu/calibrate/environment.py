# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a calibration depends on: when any of it changes, the profile is stale."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable

from warifu import tools
from warifu.lab.kernel import processor_name


def machine() -> dict[str, str]:
    """`kernel`, `openssl`, `nginx` and `processor`; tools that are missing are left out."""
    ask: dict[str, Callable[[], str]] = {
        "kernel": lambda: os.uname().release,
        "openssl": lambda: _number(tools.version("openssl")),
        "nginx": lambda: _number(tools.version("nginx")),
        "processor": processor_name,
    }
    found = {}
    for key, answer in ask.items():
        with contextlib.suppress(tools.ToolMissing):
            found[key] = answer()
    return found


def differences(then: dict[str, str]) -> list[str]:
    """How this machine differs from what a record says."""
    return [
        f"{key} was {then.get(key, 'unknown')}, is {value}"
        for key, value in machine().items()
        if then.get(key) != value
    ]


def _number(text: str) -> str:
    found = re.search(r"\d+\.\d+\.\d+\w*", text)
    return found.group(0) if found else text

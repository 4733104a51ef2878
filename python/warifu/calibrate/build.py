# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which builds may be timed: costs of a development build would be too high, and look as good."""

from __future__ import annotations

import os

from warifu import _core, tools
from warifu.calibrate.errors import CalibrateError

VARIABLE = "WARIFU_TIME_DEVELOPMENT_BUILD"
"""Environment variable: `1` times a development build all the same, as tests do. What is written
then says so."""

DEVELOPMENT, RELEASE = "development", "release"

TIMED = ("warifu-link", "warifu-tls-client", "warifu-coap-client", "warifu-calibrate-bench")
"""Warifu's programs whose own computing is in what they time."""


def profile() -> str:
    """`release` if the compiled core and every program that times are; `development` otherwise.

    A missing program is reported where it is needed.
    """
    return DEVELOPMENT if _development() else RELEASE


def refuse_development() -> None:
    """Raises CalibrateError for a development build, unless VARIABLE allows it."""
    found = _development()
    if found and os.environ.get(VARIABLE) != "1":
        raise CalibrateError(
            f"{found[0]} is a development build, whose times mean nothing: "
            "run `scripts/setup --release`"
        )


def _development() -> list[str]:
    found = [] if _core.BUILD_PROFILE == RELEASE else ["warifu._core"]
    for name in TIMED:
        try:
            if "(development build)" in tools.version(name):
                found.append(name)
        except tools.ToolMissing:
            continue
    return found

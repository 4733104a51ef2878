# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which builds may be timed: costs of a development build would be too high, and look as good."""

from __future__ import annotations

import contextlib
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
    return DEVELOPMENT if _not_release() else RELEASE


def refuse_development() -> None:
    """Raises CalibrateError for a development build, unless VARIABLE allows it."""
    found = _not_release()
    if found and os.environ.get(VARIABLE) != "1":
        name, build = found[0]
        what = f"is a {build} build" if build else "does not say how it was built"
        raise CalibrateError(
            f"{name} {what}, so its times mean nothing: run `scripts/setup --release`"
        )


def _not_release() -> list[tuple[str, str]]:
    """What is not a release build, with what it is; empty where a program does not say."""
    builds = {"warifu._core": _core.BUILD_PROFILE}
    for name in TIMED:
        with contextlib.suppress(tools.ToolMissing):
            builds[name] = tools.build(name)
    return [(name, build) for name, build in builds.items() if build != RELEASE]

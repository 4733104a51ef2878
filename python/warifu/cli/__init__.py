# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command line. Nothing heavy is imported before it is needed: `warifu` starts at once."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from warifu.cli.errors import guarded

    def start() -> int:
        from warifu.cli.app import app

        result = app(standalone_mode=False)
        return result if isinstance(result, int) else 0

    sys.exit(guarded(start))

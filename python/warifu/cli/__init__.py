# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command line. Nothing heavy is imported before it is needed: `warifu` starts at once."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    # Ctrl-C before there is anything to say ends it without a traceback.
    python_takes = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if python_takes:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from warifu.cli.encoding import never_fail
    from warifu.cli.errors import guarded
    from warifu.identity import begin

    for stream in (sys.stdout, sys.stderr):
        never_fail(stream)

    def start() -> int:
        if python_takes:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        begin()
        from warifu.cli.app import app

        result = app(standalone_mode=False)
        return result if isinstance(result, int) else 0

    sys.exit(guarded(start))

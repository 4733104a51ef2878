# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs with more rights than their user, for as long as a test looks at them.

Such a program gives root's rights to whoever can run it. So it belongs to a group that no account
is in, `AS_USER` alone is let in, it takes no library and no path from its arguments, and it is
removed whatever the test comes to.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

USER = 65534
#: Nobody's: systemd gives out none of 65520 to 65533 (systemd.io/UIDS-GIDS), nor does Debian of
#: those above 65000 (Debian Policy 9.2.2).
GROUP = 65_530

AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", "--")
"""Before a command: it has the rights of nobody, and may run what is `setuid`."""


@contextlib.contextmanager
def setuid(program: Path) -> Iterator[Path]:
    """The program, as root, for who is in the group; it is removed at the end."""
    try:
        # Before the mode, of which chown(2) takes these rights away.
        os.chown(program, 0, GROUP)
        program.chmod(0o4710)
        yield program
    finally:
        program.unlink(missing_ok=True)


def path_of(name: str, path: Path) -> str:
    """An argument of a compiler that defines `name` as a path, in C's quotes, which are JSON's."""
    return f"-D{name}={json.dumps(str(path))}"

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A pipe that takes a file's place between a look at it and its opening."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SWAP = """
import os, sys
from pathlib import Path
{imports}
look = Path.stat
def and_swap(path, **how):
    about = look(path, **how)
    os.rename("pipe", {name!r})
    return about
Path.stat = and_swap
try:
    {call}
except Exception as error:
    print(error)
"""


def said_of_a_pipe(folder: Path, name: str, content: bytes, imports: str, call: str) -> str:
    """What `call` says that reads the file `name`, in a process of its own, which must not wait for
    a writer."""
    (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe")
    script = _SWAP.format(imports=imports, name=name, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True,
        timeout=30,
    )  # fmt: skip
    return done.stdout

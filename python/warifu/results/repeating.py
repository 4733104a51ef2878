# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command that makes results again, as a shell takes it."""

from __future__ import annotations

import shlex
from typing import Any

#: A study without a file is its flags alone (crates/core/model, COMMAND_LINE).
_NO_FILE = "command line"


def command(manifest: dict[str, Any], verb: str, program: str = "warifu") -> str:
    """`warifu predict study.toml --set 'link.rtt=80 ms'`; with sudo where root is needed."""
    study = manifest["study"]
    file = str(study.get("file") or "study.toml")
    parts = [] if file == _NO_FILE else [shlex.quote(file)]
    for path, value in study.get("overrides") or []:
        parts.append(_flag(str(path), str(value)))
    before = "" if verb in {"predict", "report"} else "sudo "
    return " ".join([f"{before}{program} {verb}", *parts])


def _flag(path: str, value: str) -> str:
    section, _, rest = path.partition(".")
    if section == "vary":
        return f"--vary {shlex.quote(f'{rest}={value}')}"
    if section == "require":
        return f"--require {shlex.quote(f'{rest} {value}')}"
    return f"--set {shlex.quote(f'{path}={value}')}"

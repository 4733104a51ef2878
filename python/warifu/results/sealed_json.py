# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A JSON file of a results folder beside its observations, as its manifest sealed it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from warifu.files import FileRefused, read_bytes
from warifu.printable import lone_surrogate
from warifu.results.manifest import ResultsDamaged, refuse_elsewhere


class MistakeError(ValueError):
    """What is wrong with such a file's content."""


def read_sealed(path: Path, manifest: dict[str, Any], name: str, most_bytes: int) -> object:
    """The value in a file of a folder; None where its manifest lists no such file.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    sealed = (manifest.get("files") or {}).get(name)
    if sealed is None:
        return None
    file = path / name
    refuse_elsewhere(path, file)
    try:
        content = read_bytes(file, most_bytes)
    except (FileRefused, OSError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise not_as_written(file, f"cannot be read ({what})") from None
    if hashlib.sha256(content).hexdigest() != sealed["sha256"]:
        raise not_as_written(file, "was changed after it was written (its SHA-256 differs)")
    try:
        text = content.decode()
        value: object = json.loads(text)
        if (key := lone_surrogate(text, value)) is not None:
            what = f"{key} holds half a letter (a lone surrogate), which is no text"
            raise not_as_written(file, what)
    except (ValueError, RecursionError):
        raise not_as_written(file, "is not JSON") from None
    return value


def not_as_written(file: Path, what: str) -> ResultsDamaged:
    """The error for such a file: predicting writes it anew."""
    return ResultsDamaged(f"{file}: {what}: run `warifu predict` again")

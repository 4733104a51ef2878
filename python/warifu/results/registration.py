# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pre-registration: a measured half names the prediction that was there before it was begun.

A prediction made afterwards, by a predictor that may have been changed by what was seen, is no
test of it; comparing says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from warifu.files import RESULTS_BYTES, FileRefused, read_bytes
from warifu.results.manifest import FILE_NAME, ResultsError, read_manifest

_KEPT = ("run_id", "commit", "dirty", "finished")
_SEAL = "manifest_sha256"


def registered(predicted: Path) -> dict[str, Any] | None:
    """What a measured half that is about to begin keeps of the prediction at a folder: its run,
    the predictor's commit, when it was finished, and the SHA-256 of its manifest, which has that of
    every file. None where there is no whole prediction."""
    try:
        manifest = read_manifest(predicted)
        content = read_bytes(predicted / FILE_NAME, RESULTS_BYTES)
    except (FileRefused, OSError, ResultsError):
        return None
    if not manifest.get("complete"):
        return None
    kept = {key: manifest.get(key) for key in _KEPT}
    return {**kept, _SEAL: hashlib.sha256(content).hexdigest()}


def version_words(commit: str | None, dirty: bool | None) -> str:
    """A version for people: `0123abcd with changes`; `?` where its commit is not known."""
    return f"{(commit or '?')[:8]}{' with changes' if dirty else ''}"


def was_before(predicted: Path, measured: Mapping[str, Any]) -> bool:
    """Whether the prediction at a folder is the one that was there, byte for byte, before the
    measurement of a manifest was begun, and was finished by then."""
    found, now = measured.get("registered"), registered(predicted)
    if not isinstance(found, dict) or now is None or _names(found) != _names(now):
        return False
    return _is_in_order(now.get("finished"), measured.get("started"))


def sealed_anew(predicted: Path, measured: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the measured half says of its prediction, whose manifest was written anew."""
    found, now = measured.get("registered"), registered(predicted)
    if not isinstance(found, dict) or now is None or found.get("run_id") != now["run_id"]:
        return None
    return {**found, _SEAL: now[_SEAL]}


def _is_in_order(first: object, then: object) -> bool:
    """Whether two times of manifests, RFC 3339, follow one another; manifests have seconds."""
    try:
        return datetime.fromisoformat(str(first)) <= datetime.fromisoformat(str(then))
    except (TypeError, ValueError):
        return False


def _names(of: Mapping[str, Any]) -> tuple[object, object]:
    return of.get("run_id"), of.get(_SEAL)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A folder's manifest, and whether manifest and files are as they were written.

The writer seals both: the manifest holds length and SHA-256 of each file of observations, and its
own SHA-256 (crates/core/results/src/manifest.rs). Each file is hashed once a process, before
its first row is read, whatever its size: that costs less than reading its rows does. Only folders
of schema version 1 may lack seals, and are then read unchecked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import warifu._core as _core
from warifu.files import RESULTS_BYTES, FileRefused, opened, read_text
from warifu.printable import clipped, is_utf8, lone_surrogate, printable
from warifu.results.pages import MOST_BYTES, MOST_FOOTER

FILE_NAME = "manifest.json"
#: Single connections of a prediction (crates/core/results/src/timeline.rs).
TIMELINES = "timelines.json"
#: What a connection takes on each board (crates/core/results/src/boards.rs).
BOARDS = "boards.json"
#: Connections by what their clients know of losses (crates/core/results/src/strata.rs).
STRATA = "strata.json"
#: How sure the probabilities of an exact prediction are (crates/core/results/src/noise.rs).
NOISE = "noise.json"

#: The folder of what became of each packet (`packets`).
PACKETS = "packets"

#: The halves of a tally, which are also the names of their folders below a study's.
PREDICTED, MEASURED = "predicted", "measured"

#: The key under which a manifest that was read holds the schema version it was written in.
WRITTEN_AS = "written_as"

#: Of a file of observations: what it may take once it is decompressed (`pages`) and its footer.
_MOST_BYTES = MOST_BYTES + MOST_FOOTER

_SEAL = re.compile(r'^\{\s*"manifest_sha256": "([0-9a-f]{64})"')
#: Files that were found as they were written: path, length, time of change and inode; SHA-256.
_hashes: dict[tuple[str, int, int, int], str] = {}


class ResultsError(Exception):
    """A results folder that cannot be read; its text is one line that says what to do."""


class ResultsDamaged(ResultsError):  # noqa: N818 - what happened, not what it is
    """Results that are not as they were written: nothing may be said from what is left."""


def read_manifest(path: Path) -> dict[str, Any]:
    """A folder's manifest. Raises ResultsError with what to do."""
    file = path / FILE_NAME
    if not is_utf8(str(path)):
        raise ResultsError(
            f"{printable(str(path))}: its name is not UTF-8, which files of results need: rename it"
        )
    refuse_elsewhere(path, file)
    try:
        text = read_text(file, RESULTS_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(
            f"{path}: is not a results folder (it has no manifest.json): "
            "name one, or make it with `warifu predict`"
        ) from None
    except FileRefused as error:
        raise ResultsError(f"{error}, or {_again(path)}") from None
    except OSError as error:
        raise ResultsError(
            f"{file}: cannot be read: {error.strerror}: check its rights, or {_again(path)}"
        ) from None
    written = _object(text)
    if (key := lone_surrogate(text, written)) is not None:
        raise ResultsDamaged(
            f"{file}: {key} holds half a letter (a lone surrogate), which is no text: put it back "
            f"as it was, or move {path} away and {_again(path)}"
        )
    _check_seals(file, text, written)
    try:
        # The core defines the format, so it says what is wrong with another.
        manifest = dict(json.loads(_core.read_manifest(text, str(file))))
    except _core.WarifuError as error:
        raise ResultsError(str(error)) from None
    manifest[WRITTEN_AS] = written["schema_version"]
    half = manifest["half"]
    if path.name in {PREDICTED, MEASURED} and half != path.name:
        raise ResultsDamaged(
            f"{file}: half is {half}, but its folder is that of the {path.name} half: move the "
            f"folder away and {_again(path)}"
        )
    return manifest


def _object(text: str) -> dict[str, Any]:
    """What a text holds as JSON; nothing where it is none, or no object."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def figures_of(manifest: dict[str, Any], case_id: str) -> list[dict[str, Any]]:
    """The figures that a case uses."""
    every = manifest["figures"]
    return [one for one in every if "cases" not in one or case_id in one["cases"]]


def what_of(figure: dict[str, Any]) -> dict[str, str]:
    """What a figure is (crates/core/results/src/figures.rs, What); empty where an older version
    wrote it."""
    return figure.get("what") or {}


def is_assumed(figure: dict[str, Any]) -> bool:
    """Whether a figure has no source."""
    # What is neglected is assumed to be nothing: listed in the report, but no figure. Of an older
    # version's figures it is not known which those are.
    return bool(figure.get("kind") == "assumed" and what_of(figure) and figure.get("number") != 0.0)


def check_files(path: Path, manifest: dict[str, Any], parts: list[Path]) -> None:
    """Raises ResultsDamaged unless the folder has the files that its manifest lists.

    A complete folder has no others. One that was cut short may: its last file came after its
    last manifest.
    """
    listed = manifest.get("files") or {}
    here = {f"observations/{part.name}" for part in parts}
    here |= {name for name in (TIMELINES, BOARDS, STRATA, NOISE) if (path / name).exists()}
    here |= {f"{PACKETS}/{file.name}" for file in (path / PACKETS).glob("[!.]*.parquet")}
    for name in sorted(listed.keys() - here):
        raise ResultsDamaged(
            f"{path / name}: is missing, but manifest.json lists it: {_again(path)}"
        )
    if listed and manifest.get("complete"):
        for name in sorted(here - listed.keys()):
            raise ResultsDamaged(
                f"{path / name}: is not listed in manifest.json: it is of another run: move it away"
            )


def check_file(path: Path, manifest: dict[str, Any], part: Path) -> None:
    """Raises ResultsDamaged if a file of observations is none, lies elsewhere, or is not the one
    that was written."""
    refuse_elsewhere(path, part)
    sealed = (manifest.get("files") or {}).get(f"observations/{part.name}")
    try:
        # One that no manifest lists is read as well, and must be a file.
        with opened(part) as file:
            found = os.fstat(file.fileno())
            if found.st_size > _MOST_BYTES:
                raise damaged(
                    part, f"has {found.st_size:,} bytes, and {_MOST_BYTES:,} are the most"
                )
            if sealed is None:
                return
            if found.st_size != sealed["bytes"]:
                raise damaged(part, f"has {found.st_size} bytes instead of {sealed['bytes']}")
            key = (str(part), found.st_size, found.st_mtime_ns, found.st_ino)
            if key not in _hashes:
                _hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
    except FileRefused as error:
        raise ResultsDamaged(f"{error}, or {_again(path)}") from None
    except OSError as error:
        raise damaged(part, f"cannot be read ({error.strerror})") from None
    if _hashes[key] != sealed["sha256"]:
        raise damaged(part, "was changed after it was written (its SHA-256 differs)")


def refuse_elsewhere(path: Path, file: Path) -> None:
    """Raises ResultsDamaged for a file of a results folder that is a link to one outside, which is
    none of its run; the folder itself may be a link."""
    try:
        real = file.resolve()
        if real.is_relative_to(path.resolve()):
            return
    except (OSError, RuntimeError):
        # A loop of links: opening it says so.
        return
    if ".." in file.relative_to(path).parts:
        raise ResultsDamaged(
            f"{clipped(str(file))}: is a path that leads out of its folder: {_again(path)}"
        )
    raise ResultsDamaged(
        f"{file}: is a link that leads out of its folder, to {real}: put the file itself there, or "
        f"{_again(path)}"
    )


def damaged(part: Path, what: str) -> ResultsDamaged:
    """What to say of a file of observations that must not be used."""
    return ResultsDamaged(f"{part}: {what}: remove it and {_again(part.parents[1])}")


def not_usable(path: Path, what: str) -> ResultsDamaged:
    """What to say of a folder whose manifest says what none does."""
    return ResultsDamaged(
        f"{path / FILE_NAME}: {what}: put it back as it was, or move {path} away and {_again(path)}"
    )


def _again(path: Path) -> str:
    verb = "measure" if path.name.startswith("measured") else "predict"
    return f"run `warifu {verb}` again"


def _check_seals(file: Path, text: str, manifest: dict[str, Any]) -> None:
    seal = _SEAL.match(text)
    if "manifest_sha256" in manifest or manifest.get("schema_version") == _core.SCHEMA_VERSION:
        blank = "" if seal is None else text.replace(seal[1], "0" * 64, 1)
        if seal is None or hashlib.sha256(blank.encode()).hexdigest() != seal[1]:
            why = "its SHA-256 differs"
            if "manifest_sha256" not in manifest:
                why = "manifest_sha256 is missing"
            raise ResultsDamaged(
                f"{file}: was changed after it was written ({why}): put it back as it was, or "
                f"move {file.parent} away and {_again(file.parent)}"
            )
    study = manifest.get("study", {})
    said = study.get("sha256") if isinstance(study, dict) else None
    if said and said != hashlib.sha256(str(study.get("text", "")).encode()).hexdigest():
        raise ResultsDamaged(
            f"{file}: study.text is not the text that study.sha256 was made of: move {file.parent} "
            f"away and {_again(file.parent)}"
        )

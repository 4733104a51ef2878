# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What became of each packet of a measured run: `packets/CASE_ID-FIRST_TRIAL.parquet` and the
lengths of messages beside it, as the lab keeps them (`warifu.lab.packets`).

A file is held against its seal in the manifest, and what it says that it is of against the run.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from warifu.files import RESULTS_BYTES, FileRefused, read_bytes
from warifu.results.manifest import ResultsDamaged, damaged, refuse_elsewhere
from warifu.results.pages import PagesRefused, refuse_large

#: The key of a file's metadata that says what it is of: version, run_id, case_id, first_trial and
#: trials, as JSON.
ABOUT = "warifu.packets"
VERSION = 1
#: Rows of a file: a part has at most 1,000 connections.
_MOST_ROWS = 20_000_000
#: The columns of either file. Of packets, `direction` 0 is the client's; `copy` counts from 1 those
#: with the same direction, sequence numbers and flags; `fate` is the log's, 0 for delivered;
#: `delay_ns` is null for what was not delivered; `at_ns` counts from just before the trial's
#: connect(). Of messages, `message` counts from 0 those of a direction in the order in which they
#: were sent; `bytes` are those on the wire.
COLUMNS: dict[str, dict[str, Any]] = {
    "packets": {
        "trial": pl.Int32,
        "direction": pl.UInt8,
        "seq": pl.UInt32,
        "ack": pl.UInt32,
        "payload": pl.UInt16,
        "flags": pl.UInt8,
        "copy": pl.UInt16,
        "fate": pl.UInt8,
        "delay_ns": pl.Int64,
        "at_ns": pl.Int64,
    },
    "messages": {
        "trial": pl.Int32,
        "direction": pl.UInt8,
        "message": pl.UInt16,
        "name": pl.String,
        "bytes": pl.UInt32,
    },
}


#: What reading a damaged file ends in.
_UNREADABLE = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class PartPackets:
    """What is kept of a part's packets."""

    first_trial: int
    trials: int
    packets: pl.DataFrame
    messages: pl.DataFrame


def has_packets(manifest: dict[str, Any], case_id: str) -> bool:
    """Whether the packets of any part of a case are kept."""
    cell = (manifest.get("cells") or {}).get(case_id) or {}
    return any(part.get("packets") is not None for part in cell.get("parts") or [])


def parts_with_packets(path: Path, manifest: dict[str, Any], case_id: str) -> Iterator[PartPackets]:
    """The parts of a case whose packets are kept, in the order of their trials; none for a case
    without TCP, and for a run of a version that kept none.

    Raises ResultsDamaged, with one line, for a file that is not as it was written, and for one of
    another run or part.
    """
    cell = (manifest.get("cells") or {}).get(case_id) or {}
    for part in sorted(cell.get("parts") or [], key=lambda one: int(one["first_trial"])):
        said = part.get("packets")
        if said is None:
            continue
        of = _of(manifest, case_id, part)
        tables = {kind: _read(path, manifest, said[kind]["file"], kind, of) for kind in COLUMNS}
        yield PartPackets(int(part["first_trial"]), int(part["trials"]), **tables)


def refuse_other_packets(path: Path, manifest: dict[str, Any]) -> None:
    """Raises ResultsDamaged, with one line, for packets that are not as they were written, or are
    of another run or part, without reading what is in them."""
    for case_id, cell in (manifest.get("cells") or {}).items():
        for part in cell.get("parts") or []:
            if (said := part.get("packets")) is not None:
                for kind in COLUMNS:
                    _sealed(path, manifest, said[kind]["file"], _of(manifest, case_id, part))


def _of(manifest: dict[str, Any], case_id: str, part: dict[str, Any]) -> dict[str, Any]:
    return {
        "run_id": manifest["run_id"],
        "case_id": case_id,
        "first_trial": part["first_trial"],
        "trials": part["trials"],
    }


def _read(
    path: Path, manifest: dict[str, Any], name: str, kind: str, of: dict[str, Any]
) -> pl.DataFrame:
    return _table(path / name, _sealed(path, manifest, name, of), kind)


def _sealed(path: Path, manifest: dict[str, Any], name: str, of: dict[str, Any]) -> bytes:
    """The bytes of a file that is as it was written."""
    file = path / name
    refuse_elsewhere(path, file)
    sealed = (manifest.get("files") or {}).get(name)
    if sealed is None:
        raise damaged(file, "is not listed in manifest.json")
    try:
        content = read_bytes(file, RESULTS_BYTES)
    except (FileRefused, OSError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise damaged(file, f"cannot be read ({what})") from None
    _refuse_other_run(file, content, of)
    if hashlib.sha256(content).hexdigest() != sealed["sha256"]:
        raise damaged(file, "was changed after it was written (its SHA-256 differs)")
    return content


def _refuse_other_run(file: Path, content: bytes, of: dict[str, Any]) -> None:
    """Before its seal, since that says less: the file of another run is whole."""
    try:
        about = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[ABOUT])
        found = {key: about[key] for key in of}
    except _UNREADABLE:
        raise damaged(file, "is no packet log that Warifu kept") from None
    for key, wanted in of.items():
        if found[key] != wanted:
            raise ResultsDamaged(
                f"{file}: is a packet log of {key} {found[key]}, but its folder is of {wanted}: "
                "put the log of this run there"
            )
    if about.get("version") != VERSION:
        raise ResultsDamaged(
            f"{file}: is a packet log of version {about.get('version')}, expected {VERSION}: use "
            "the Warifu that measured it"
        )


def _table(file: Path, content: bytes, kind: str) -> pl.DataFrame:
    try:
        refuse_large(io.BytesIO(content))
        found = pl.scan_parquet(io.BytesIO(content))
        if found.collect_schema() != pl.Schema(COLUMNS[kind]):
            raise damaged(file, "has other columns than a packet log")
        if (rows := int(found.select(pl.len()).collect().item())) > _MOST_ROWS:
            raise damaged(file, f"has {rows:,} rows, and {_MOST_ROWS:,} are the most")
        return found.collect()
    except PagesRefused as refused:
        raise damaged(file, str(refused)) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise damaged(file, "is no whole Parquet file") from None

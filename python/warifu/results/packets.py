# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What became of each packet of a measured run: `packets/CASE_ID-FIRST_TRIAL.parquet` and the
lengths of messages beside it, as the lab keeps them (`warifu.lab.packets`).

A file is held against its seal in the manifest, and what it says that it is of against the run.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from warifu.files import RESULTS_BYTES, FileRefused, read_bytes
from warifu.printable import clipped
from warifu.results.manifest import PACKETS, ResultsDamaged, damaged, not_usable, refuse_elsewhere
from warifu.results.pages import PagesRefused, refuse_large
from warifu.results.parts import Part, Ticks, parts_of, records_of

#: The key of a file's metadata that says what it is of: version, run_id, case_id, first_trial and
#: trials, as JSON.
ABOUT = "warifu.packets"
VERSION = 2
_VERSIONS = (1, VERSION)
#: The column that packets of the first version lack.
_START = "start_ns"
#: The key of a cell in an archived manifest that says that packets were kept of it.
REPLAYABLE = "replayable"
#: Rows of a file: a part has at most 1,000 connections.
_MOST_ROWS = 20_000_000
#: Rows of a trial: packets of 100 MB.
_MOST_ROWS_OF_A_TRIAL = 100_000
#: Of the fates of a log (crates/lab/link/src/packet_log.rs, LoggedFate) the first and the last.
_DELIVERED, _LAST_FATE = 0, 5
#: Thirty years: no connection takes longer.
_MOST_NS = 10**18
#: By how much the link may have read a packet before the client has read its clock.
_CLOCKS_NS = 1_000_000
#: Of an IPv4 packet of 65,535 B the headers of IP and TCP take 40 at least.
_MOST_PAYLOAD = 65_495
#: A handshake message of TLS has 2^24 B at most, and its records' headers beside them.
_MOST_MESSAGE = 1 << 25
_NAME = re.compile(PACKETS + r"/[0-9A-Za-z._-]+\.parquet")
#: The columns of either file. Of packets, `direction` 0 is the client's; `copy` counts from 1 those
#: with the same direction, sequence numbers and flags; `fate` is the log's, 0 for delivered;
#: `delay_ns` is null for what was not delivered; `at_ns` counts from just before the trial's
#: connect(), which was at `start_ns` of the kernel's monotonic clock. Of messages, `message` counts
#: from 0 those of a direction in the order in which they were sent; `bytes` are those on the wire.
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
        "start_ns": pl.Int64,
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
    ticks: Ticks | None


def has_packets(manifest: dict[str, Any], case_id: str) -> bool:
    """Whether the packets of any part of a case are kept."""
    return any(part.get("packets") is not None for part in records_of(manifest, case_id))


def can_be_replayed(manifest: dict[str, Any], case_id: str) -> bool:
    """Whether a case's connections can be replayed, or could before an archive left their packets
    out."""
    cell = (manifest.get("cells") or {}).get(case_id)
    was = isinstance(cell, dict) and cell.get(REPLAYABLE) is True
    return was or has_packets(manifest, case_id)


def parts_with_packets(path: Path, manifest: dict[str, Any], case_id: str) -> Iterator[PartPackets]:
    """The parts of a case whose packets are kept, in the order of their trials; none for a case
    without TCP, and for a run of a version that kept none.

    Raises ResultsDamaged, with one line, for a file that is not as it was written, and for one of
    another run or part.
    """
    for part in sorted(parts_of(manifest, case_id, path), key=lambda one: one.first_trial):
        if part.packets is None:
            continue
        tables = {kind: _read(path, manifest, case_id, part, kind) for kind in COLUMNS}
        yield PartPackets(part.first_trial, part.trials, **tables, ticks=part.ticks)


def refuse_other_packets(path: Path, manifest: dict[str, Any]) -> None:
    """Raises ResultsDamaged, with one line, for packets that are not as they were written, or are
    of another run or part, without reading what is in them."""
    for case_id in manifest.get("cells") or {}:
        for part in parts_of(manifest, case_id, path):
            if part.packets is not None:
                for kind in COLUMNS:
                    _sealed(path, manifest, case_id, part, kind)


def _read(
    path: Path, manifest: dict[str, Any], case_id: str, part: Part, kind: str
) -> pl.DataFrame:
    file, content = _sealed(path, manifest, case_id, part, kind)
    table = _table(file, content, kind)
    rows = part.packets[kind].get("rows")
    if rows is not None and rows != table.height:
        said_rows = f"manifest.json says {clipped(str(rows))}"
        raise damaged(file, f"has {table.height:,} rows, and {said_rows}")
    _refuse_values(file, table, kind, part.first_trial, part.trials)
    if kind == "packets" and _START not in table.columns:
        table = table.with_columns(pl.lit(None, pl.Int64).alias(_START))
    return table


def _sealed(
    path: Path, manifest: dict[str, Any], case_id: str, part: Part, kind: str
) -> tuple[Path, bytes]:
    """A file of a part's packets that is as it was written, and its bytes."""
    match part.packets:
        case {"packets": {"file": str(_)}, "messages": {"file": str(_)}}:
            name = str(part.packets[kind]["file"])
        case _:
            of_part = f"cells.{case_id} from trial {part.first_trial} on"
            what = f"the packets of {clipped(of_part)} have no files of packets and messages"
            raise not_usable(path, what)
    if not _NAME.fullmatch(name):
        raise not_usable(path, f"{clipped(name)} is no name of a packet log")
    file = path / name
    refuse_elsewhere(path, file)
    sealed = (manifest.get("files") or {}).get(name)
    if sealed is None:
        raise damaged(file, "is not listed in manifest.json")
    try:
        content = read_bytes(file, RESULTS_BYTES)
    except (FileRefused, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise damaged(file, f"cannot be read ({reason})") from None
    of = {
        "run_id": manifest["run_id"],
        "case_id": case_id,
        "first_trial": part.first_trial,
        "trials": part.trials,
    }
    _refuse_other_run(file, content, of)
    if hashlib.sha256(content).hexdigest() != sealed["sha256"]:
        raise damaged(file, "was changed after it was written (its SHA-256 differs)")
    return file, content


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
                f"{file}: is a packet log of {key} {clipped(str(found[key]))}, but its folder is "
                f"of {clipped(str(wanted))}: "
                "put the log of this run there"
            )
    if about.get("version") not in _VERSIONS:
        raise ResultsDamaged(
            f"{file}: is a packet log of version {clipped(str(about.get('version')))}, expected "
            f"{VERSION}: use the Warifu that measured it"
        )


def _schemas(kind: str) -> list[pl.Schema]:
    """The columns that a file of any version may have."""
    columns = COLUMNS[kind]
    first = {name: of for name, of in columns.items() if name != _START}
    return [pl.Schema(columns), pl.Schema(first)]


def _table(file: Path, content: bytes, kind: str) -> pl.DataFrame:
    try:
        refuse_large(io.BytesIO(content))
        found = pl.scan_parquet(io.BytesIO(content))
        schema = found.collect_schema()
        if schema not in _schemas(kind):
            raise damaged(file, "has other columns than a packet log")
        if (rows := int(found.select(pl.len()).collect().item())) > _MOST_ROWS:
            raise damaged(file, f"has {rows:,} rows, and {_MOST_ROWS:,} are the most")
        return found.collect()
    except PagesRefused as refused:
        raise damaged(file, str(refused)) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise damaged(file, "is no whole Parquet file") from None


def _refuse_values(file: Path, table: pl.DataFrame, kind: str, first: int, trials: int) -> None:
    """Raises ResultsDamaged for what no link and no client told."""
    for name in table.columns:
        if name != "delay_ns" and table[name].null_count():
            raise damaged(file, f"has a row without {name}")
    every = {
        "trial": pl.col("trial").is_between(first, first + trials - 1),
        "direction": pl.col("direction") <= 1,
    }
    delay = pl.col("delay_ns")
    of_packets = {
        "fate": pl.col("fate").is_between(_DELIVERED, _LAST_FATE),
        # What was delivered took its time, and what was not took none.
        "delay_ns": (pl.col("fate") == _DELIVERED) == delay.is_not_null(),
        "delay_ns ": delay.is_between(0, _MOST_NS).fill_null(value=True),
        "at_ns": pl.col("at_ns").is_between(-_CLOCKS_NS, _MOST_NS),
        "payload": pl.col("payload") <= _MOST_PAYLOAD,
        "copy": pl.col("copy") >= 1,
    }
    if _START in table.columns:
        start = pl.col(_START)
        # One instant of each trial.
        one = (start == start.first()).over("trial")
        of_packets[_START] = start.is_between(0, _MOST_NS) & one
    of_messages = {"bytes": pl.col("bytes").is_between(1, _MOST_MESSAGE)}
    every |= of_packets if kind == "packets" else of_messages
    found = table.select(possible.all().alias(name) for name, possible in every.items())
    for name, possible in found.row(0, named=True).items():
        if not possible:
            raise damaged(file, f"has a {name.strip()} that no packet log has")
    most = table.group_by("trial").len()["len"].max()
    if isinstance(most, int) and most > _MOST_ROWS_OF_A_TRIAL:
        said = f"and {_MOST_ROWS_OF_A_TRIAL:,} are the most"
        raise damaged(file, f"has {most:,} rows of one trial, {said}")

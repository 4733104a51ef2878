# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading what became of the packets of measured connections: `packets/CASE-FIRST.parquet`, and the
lengths of messages beside it, `packets/CASE-FIRST.messages.parquet`.

The lab writes them (`warifu.lab.packets`), a pair for each part of a cell.
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

from warifu.files import FileRefused, read_bytes
from warifu.results.manifest import ResultsDamaged, ResultsError, refuse_elsewhere
from warifu.results.pages import MOST_BYTES, PagesRefused, refuse_large

FOLDER = "packets"
VERSION = 1

_ABOUT = "warifu.packets"
_MESSAGES = ".messages.parquet"
_PACKETS = ".parquet"
#: A part of ten thousand connections has some 4 MB.
_MOST_FILE_BYTES = 256 << 20
_PACKET_TYPES = {
    "trial": pl.Int32,
    "direction": pl.UInt8,
    "seq": pl.UInt32,
    "ack": pl.UInt32,
    "payload": pl.UInt16,
    "flags": pl.UInt8,
    "delay_ns": pl.Int64,
    "at_ns": pl.Int64,
}
_MESSAGE_TYPES = {
    "trial": pl.Int32,
    "direction": pl.UInt8,
    "message": pl.UInt16,
    "name": pl.String,
    "bytes": pl.UInt32,
}
_UNREADABLE = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
_UP = 0

#: The lengths of messages on the wire with their names, in the order of each end.
Messages = dict[str, list[tuple[str, int]]]


@dataclass(frozen=True)
class PacketLog:
    """The packet logs of a measured half."""

    path: Path
    manifest: dict[str, Any]
    #: The names of its files, by case.
    _files: dict[str, list[str]]

    @staticmethod
    def open(path: Path, manifest: dict[str, Any]) -> PacketLog | None:
        """What the manifest of the half at ``path`` lists; None where nothing was logged."""
        files: dict[str, list[str]] = {}
        for name in sorted(manifest.get("files") or {}):
            folder, _, file = name.partition("/")
            if folder == FOLDER:
                files.setdefault(file.partition("-")[0], []).append(name)
        return PacketLog(path, manifest, files) if files else None

    def has(self, case_id: str) -> bool:
        """Whether packets of a case were logged."""
        return case_id in self._files

    def packets(self, case_id: str) -> pl.DataFrame:
        """The packets of a case as `_core.replay` takes them, in the order of their trials.

        Raises ResultsDamaged for a file that is not as it was written, ResultsError for one of
        another run.
        """
        found = self._read(case_id, lambda name: not name.endswith(_MESSAGES), _PACKET_TYPES)
        return found.sort("trial", maintain_order=True).select(
            "trial",
            (pl.col("direction") != _UP).alias("down"),
            # Packets may be stamped a moment before the client has read its clock.
            pl.col("at_ns").clip(0),
            "seq",
            pl.col("payload").alias("len"),
            "ack",
            "flags",
            pl.col("delay_ns").fill_null(-1),
        )

    def messages(self, case_id: str) -> dict[int, Messages]:
        """The lengths of a case's messages by trial. Raises as `packets`."""
        found = self._read(case_id, lambda name: name.endswith(_MESSAGES), _MESSAGE_TYPES)
        of: dict[int, Messages] = {}
        ordered = found.sort("trial", "direction", "message")
        for trial, direction, name, length in ordered.select(
            "trial", "direction", "name", "bytes"
        ).iter_rows():
            end = "client" if direction == _UP else "server"
            of.setdefault(trial, {}).setdefault(end, []).append((name, length))
        return of

    def _read(self, case_id: str, wanted: Any, types: dict[str, Any]) -> pl.DataFrame:
        names = [name for name in self._files.get(case_id, []) if wanted(name)]
        frames = list(self._frames(case_id, names, types))
        return pl.concat(frames) if frames else pl.DataFrame(schema=types)

    def _frames(
        self, case_id: str, names: list[str], types: dict[str, Any]
    ) -> Iterator[pl.DataFrame]:
        for name in names:
            file = self.path / name
            content = self._content(file, name)
            try:
                refuse_large(io.BytesIO(content))
                about = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[_ABOUT])
                frame = pl.read_parquet(io.BytesIO(content), columns=list(types))
                frame = frame.select(types).cast(pl.Schema(types))
            except (PagesRefused, *_UNREADABLE):
                raise _damaged(file, "is no packet log of this version") from None
            self._refuse_other(file, about, case_id)
            # Times, and how long a packet was on its way, are the only columns that may lack one.
            if any(frame[name].null_count() for name in types if name != "delay_ns"):
                raise _damaged(file, "lacks values")
            yield frame

    def _content(self, file: Path, name: str) -> bytes:
        refuse_elsewhere(self.path, file)
        try:
            content = read_bytes(file, _MOST_FILE_BYTES)
        except (FileRefused, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise _damaged(file, f"cannot be read ({what})") from None
        if hashlib.sha256(content).hexdigest() != self.manifest["files"][name]["sha256"]:
            raise _damaged(file, "was changed after it was written (its SHA-256 differs)")
        return content

    def _refuse_other(self, file: Path, about: dict[str, Any], case_id: str) -> None:
        """Raises ResultsError for a log of another run or case."""
        run_id = self.manifest.get("run_id")
        if about.get("version") != VERSION:
            raise ResultsError(
                f"{file}: is a packet log of version {about.get('version')}, and {VERSION} is read"
            )
        if (about.get("run_id"), about.get("case_id")) != (run_id, case_id):
            raise ResultsError(
                f"{file}: is the packet log of run {about.get('run_id')}, case "
                f"{about.get('case_id')}, and this is run {run_id}, case {case_id}: "
                "it does not belong here"
            )


def _damaged(file: Path, what: str) -> ResultsDamaged:
    return ResultsDamaged(f"{file}: {what}: run `warifu measure` again")

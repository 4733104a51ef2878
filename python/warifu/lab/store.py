# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The measured half's folder: parts of cells under way, one Parquet file a finished cell.

`FOLDER/parts/CASE_ID/FIRST-COUNT.json` holds the trials of one part until its cell is finished,
over TCP beside what became of their packets (`warifu.lab.packets`); then all trials go to
`FOLDER/observations/CASE_ID.parquet` in one atomic write, and the packets of each part to
`FOLDER/packets/CASE_ID-FIRST.parquet` and the lengths of messages beside it. Nothing that is whole
is ever overwritten by something that is not.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from warifu import _core
from warifu.files import (
    RESULTS_BYTES,
    FileRefused,
    read_bytes,
    read_text,
    replace_text,
    replacing,
)
from warifu.lab import packets
from warifu.lab.errors import LabError
from warifu.lab.trials import Trials
from warifu.printable import printable
from warifu.results.manifest import PACKETS
from warifu.results.values import MOST_AMOUNT

T = TypeVar("T")

PACKET_FILES = {"packets": ".parquet", "messages": ".messages.parquet"}
"""What is kept of a part's packets, and how the names of its files end."""


@dataclass(frozen=True)
class Part:
    """Consecutive trials of one cell, measured in one go."""

    case_id: str
    first_trial: int
    trials: int
    seed: int

    @property
    def file_name(self) -> str:
        """Names the part's file."""
        return f"{self.first_trial:07d}-{self.trials}.json"

    def packet_file(self, kind: str) -> str:
        """Names what is kept of its packets, of one of the kinds of `PACKET_FILES`."""
        return f"{self.case_id}-{self.first_trial}{PACKET_FILES[kind]}"


class Store:
    """Reads and writes the folder; every failure to write is a LabError that says what to do."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder if need be."""
        self.folder = folder
        self._is_new = not (folder / "manifest.json").exists()
        self._guarded(lambda: (folder / "observations").mkdir(parents=True, exist_ok=True))

    def remove_if_new(self) -> None:
        """Takes back a folder that was begun by this store and holds no part and no cell."""
        kept = [*self.folder.glob("parts/*/*.json"), *self.folder.glob("observations/*")]
        if not self._is_new or kept:
            return
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        # What cannot be removed is no worse than what happened before.
        with contextlib.suppress(OSError):
            (self.folder / "manifest.json").unlink(missing_ok=True)
            (self.folder / "observations").rmdir()
            self.folder.rmdir()

    def manifest(self) -> dict[str, Any] | None:
        """The manifest of an earlier run, if there is one."""
        path = self.folder / "manifest.json"
        try:
            text = read_text(path, RESULTS_BYTES)
            value = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError("is no object")
            if value.get("schema_version") == _core.SCHEMA_VERSION:
                # Whatever else it is, it is not taken up; see `_refuse_mixture`.
                value = json.loads(_core.read_manifest(text, printable(str(path))))
        except FileNotFoundError:
            return None
        except _core.WarifuError as error:
            raise LabError(f"{error}, after moving {self.folder} away") from None
        except (FileRefused, OSError, RecursionError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no manifest"
            raise LabError(
                f"{path}: cannot be read ({why}): move {self.folder} away to measure again"
            ) from None
        return dict(value)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Writes it atomically, after checking it."""
        self._guarded(lambda: _core.write_manifest(self.folder, json.dumps(manifest)))

    def has_part(self, part: Part, run_id: str, columns: Mapping[str, str]) -> bool:
        """Whether the part was measured before, by the same run with the same seed; `columns` has
        the trials' column of each metric."""
        return self._part(part, run_id, columns) is not None

    def write_part(
        self,
        part: Part,
        trials: Trials,
        record: dict[str, Any],
        kept: packets.Kept | None = None,
        run_id: str = "",
    ) -> None:
        """Keeps a measured part; `record` is what the manifest will say of it, to which it adds
        what is kept of its packets."""
        path = self._part_path(part)
        self._guarded(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        if kept is not None:
            record = {**record, "packets": self._write_packets(part, kept, run_id)}
        value = {"seed": part.seed, "run_id": run_id, "record": record, "trials": trials.columns}
        self._write(path, json.dumps(value) + "\n")

    def has_case(self, case_id: str) -> bool:
        """Whether the cell is finished."""
        return self._case_path(case_id).exists()

    def finish_case(
        self,
        study: str,
        canonical: str,
        run_id: str,
        evidence: str,
        parts: list[Part],
        columns: Mapping[str, str],
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Puts a cell's parts together as observations; `columns` has the trials' column of each
        metric.

        The parts' records, and length and SHA-256 of each file by its name in the folder.
        """
        rows = _empty_rows()
        records: list[dict[str, Any]] = []
        files: dict[str, dict[str, Any]] = {}
        for part in parts:
            value = self._part(part, run_id, columns)
            if value is None:
                raise LabError(f"{self._part_path(part)}: is gone or damaged: measure again")
            _append_rows(rows, part, Trials(value["trials"]), columns)
            records.append(value["record"])
            files |= self._put_packets(part, value["record"])
        path = self._case_path(parts[0].case_id)
        length, sha256 = self._guarded(
            lambda: _core.write_observations(
                str(path), study, canonical, run_id, "emulated", evidence, rows
            )
        )
        self._remove_other_packets(parts[0].case_id, set(files))
        files[self.file_of(parts[0].case_id)] = {"bytes": length, "sha256": sha256}
        return records, files

    def file_of(self, case_id: str) -> str:
        """The name of a finished cell's file in the folder."""
        return str(self._case_path(case_id).relative_to(self.folder))

    def is_of(self, name: str, case_id: str) -> bool:
        """Whether a file of the folder, by its name in it, is a finished cell's."""
        return name == self.file_of(case_id) or name.startswith(f"{PACKETS}/{case_id}-")

    def drop_parts(self, case_id: str) -> None:
        """Removes what a finished cell was put together from."""
        shutil.rmtree(self.folder / "parts" / case_id, ignore_errors=True)
        parts = self.folder / "parts"
        if parts.is_dir() and not any(parts.iterdir()):
            parts.rmdir()

    def _case_path(self, case_id: str) -> Path:
        return self.folder / "observations" / f"{case_id}.parquet"

    def _part_path(self, part: Part) -> Path:
        return self.folder / "parts" / part.case_id / part.file_name

    def _part(self, part: Part, run_id: str, columns: Mapping[str, str]) -> dict[str, Any] | None:
        """What was kept of a part; None where there is nothing that can be used."""
        try:
            value = json.loads(read_text(self._part_path(part), RESULTS_BYTES))
        except (FileRefused, OSError, RecursionError, ValueError):
            return None
        # Parts of a version that kept no run's name are of the manifest beside them.
        if not isinstance(value, dict) or value.get("run_id", run_id) != run_id:
            return None
        record: Any = value.get("record")
        whole = value.get("seed") == part.seed and _is_record(record, part)
        if not whole or not _are_trials(value.get("trials"), part, columns):
            return None
        return value if self._packets_are_there(part, record, run_id) else None

    def _write_packets(self, part: Part, kept: packets.Kept, run_id: str) -> dict[str, Any]:
        """Keeps them beside the part; what its record says of them."""
        about = {
            "run_id": run_id,
            "case_id": part.case_id,
            "first_trial": part.first_trial,
            "trials": part.trials,
        }
        tables = {"packets": kept.packets, "messages": kept.messages}
        said: dict[str, Any] = {"elsewhere": kept.elsewhere, "run_id": run_id}
        for kind, table in tables.items():
            path = self._part_path(part).parent / part.packet_file(kind)
            self._guarded(partial(packets.write, path, table, about))
            said[kind] = {
                "file": f"{PACKETS}/{path.name}",
                "rows": table.height,
                **_seal(path.read_bytes()),
            }
        return said

    def _packets_are_there(self, part: Part, record: dict[str, Any], run_id: str) -> bool:
        """Whether what a part's record says of its packets is beside it, by the length: this is
        asked for every part again and again."""
        # Parts of a version that kept none have none.
        said = record.get("packets")
        if said is None:
            return True
        if not isinstance(said, dict) or said.get("run_id", run_id) != run_id:
            return False
        folder = self._part_path(part).parent
        try:
            return all(
                said[kind]["file"] == f"{PACKETS}/{part.packet_file(kind)}"
                and isinstance(said[kind]["sha256"], str)
                and (folder / part.packet_file(kind)).stat().st_size == said[kind]["bytes"]
                for kind in PACKET_FILES
            )
        except (KeyError, OSError, TypeError):
            return False

    def _put_packets(self, part: Part, record: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Copies them to where a finished cell has them; the files' seals by their names. The
        part's own stay until the manifest says that the cell is finished. Raises LabError for one
        that is not as it was written."""
        said = record.get("packets")
        if said is None:
            return {}
        folder = self.folder / PACKETS
        self._guarded(lambda: folder.mkdir(exist_ok=True))
        files = {}
        for kind in PACKET_FILES:
            name = part.packet_file(kind)
            path = self._part_path(part).parent / name
            content = read_bytes(path, RESULTS_BYTES)
            sealed = _seal(content)
            if sealed != {key: said[kind][key] for key in sealed}:
                raise LabError(
                    f"{path}: was changed after it was written: remove it and run the same command "
                    "again"
                )
            self._guarded(partial(_replace, folder / name, content))
            files[said[kind]["file"]] = sealed
        return files

    def _remove_other_packets(self, case_id: str, names: set[str]) -> None:
        """Of an earlier measurement of the cell, in other parts."""
        for path in (self.folder / PACKETS).glob(f"{case_id}-*"):
            if f"{PACKETS}/{path.name}" not in names:
                self._guarded(path.unlink)

    def _write(self, path: Path, text: str) -> None:
        self._guarded(lambda: replace_text(path, text))

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            hint = (
                "make room and run the same command again, which goes on from here"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "choose a folder that can be written to"
            )
            where = error.filename or self.folder
            raise LabError(f"{where}: {error.strerror or error}: {hint}") from error
        except _core.WarifuError as error:
            raise LabError(str(error)) from error


def _is_record(record: object, part: Part) -> bool:
    """Whether it is what a manifest says of a part, and of this one."""
    if not isinstance(record, dict):
        return False
    of = {"first_trial": part.first_trial, "trials": part.trials, "seed": part.seed}
    shares = record.get("processor_shares")
    return (
        all(record.get(key) == value for key, value in of.items())
        and isinstance(shares, dict)
        and all(_is_number(shares.get(key)) for key in ("others", "stolen"))
        and all(isinstance(record.get(key), dict) for key in ("busy", "link"))
        and all(_is_number(record.get(key)) for key in ("others_max", "sitting"))
    )


def _are_trials(trials: object, part: Part, columns: Mapping[str, str]) -> bool:
    """Whether every column is there, with an entry for each trial of a part: a trial that lacks one
    would be lost without a word."""
    if not isinstance(trials, dict) or not trials.keys() >= {"failed", *columns.values()}:
        return False
    if any(not isinstance(one, list) or len(one) != part.trials for one in trials.values()):
        return False
    return all(type(one) is bool for one in trials["failed"]) and all(
        one is None or (_is_number(one) and 0 <= one < MOST_AMOUNT)
        for name in columns.values()
        for one in trials[name]
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(float(str(value)))


def _seal(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _replace(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _empty_rows() -> dict[str, list[Any]]:
    names = ("connection", "trial", "metric", "stage", "value", "unit", "weight", "seed")
    return {name: [] for name in names}


def _append_rows(
    rows: dict[str, list[Any]], part: Part, trials: Trials, columns: Mapping[str, str]
) -> None:
    """One row a metric and trial, but where it has no value (None); a failed connection has
    `connection.failed` alone."""
    units = {metric["name"]: metric["unit"] for metric in _core.metrics()}
    for index, failed in enumerate(trials.columns["failed"]):
        if failed:
            values = {"connection.failed": 1.0}
        else:
            found = {metric: trials.columns[name][index] for metric, name in columns.items()}
            values = {metric: float(value) for metric, value in found.items() if value is not None}
        for metric, value in values.items():
            row = (
                0, part.first_trial + index, metric, None, value, units[metric], 1.0, part.seed,
            )  # fmt: skip
            for column, item in zip(rows.values(), row, strict=True):
                column.append(item)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A judged study in small: both halves in one Parquet file, and a `run.json` that says what it was.

Times are kept to 1 us, which is finer than any table shows; packet logs, link reports and the text
of profiles are left out, and named by their hashes where they have one. `restore` makes a results
folder of it again, from which every table can be computed as it was.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl

import warifu._core as _core
from warifu.results.manifest import MEASURED, PREDICTED, WRITTEN_AS, ResultsError, read_manifest

#: What an archived manifest leaves out: large, or of no use to a table.
_LEFT_OUT = ("figures", "profiles", "link_reports", "cells", "rejections", "files", WRITTEN_AS)
#: The largest file that is worth committing.
MOST_BYTES = 2_000_000
_US = 1_000.0


def archive(folder: Path, target: Path) -> dict[str, Any]:
    """Writes a study's two halves as ``target``, a Parquet file; what `run.json` says of it.

    Raises ResultsError where a half is missing or the file would be too large to commit.
    """
    manifests = {half: read_manifest(folder / half) for half in (PREDICTED, MEASURED)}
    kept = {half: json.dumps(_without(manifest)) for half, manifest in manifests.items()}
    frames = [_rows(folder / half) for half in manifests]
    partial = target.with_name(f".{target.name}.partial")
    try:
        pl.concat(frames).write_parquet(
            partial, compression="zstd", compression_level=19, metadata=kept
        )
        content = partial.read_bytes()
        if len(content) > MOST_BYTES:
            raise ResultsError(
                f"{target}: would have {len(content):,} bytes: expected at most {MOST_BYTES:,}: "
                "judge fewer cells or trials in one study"
            )
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return _run(manifests) | {"archive": target.name, "sha256": hashlib.sha256(content).hexdigest()}


def restore(source: Path, folder: Path) -> None:
    """Makes the results folder of an archived study again. Raises ResultsError."""
    manifests = pl.read_parquet_metadata(source)
    rows = pl.read_parquet(source)
    for half in (PREDICTED, MEASURED):
        manifest = json.loads(manifests[half])
        part = folder / half / "observations" / "part-00000.parquet"
        part.parent.mkdir(parents=True)
        rows.filter(pl.col("run_id") == manifest["run_id"]).write_parquet(part)
        content = part.read_bytes()
        sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        manifest["files"] = {f"observations/{part.name}": sealed}
        try:
            _core.write_manifest(folder / half, json.dumps(manifest))
        except _core.WarifuError as error:
            raise ResultsError(str(error)) from None


def _rows(path: Path) -> pl.DataFrame:
    rows = pl.read_parquet(path / "observations" / "*.parquet")
    rounded = (pl.col("value") / _US).round() * _US
    return rows.with_columns(
        pl.when(pl.col("unit") == "ns").then(rounded).otherwise("value").alias("value")
    )


def _without(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in _LEFT_OUT}


def _run(manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What both halves were: under 10 kB, whatever their size."""
    predicted, measured = manifests[PREDICTED], manifests[MEASURED]

    def of_each(key: str) -> dict[str, Any]:
        return {half: manifest[key] for half, manifest in manifests.items()}

    return {
        "study": {key: predicted["study"][key] for key in ("name", "sha256")},
        "seed": predicted["seed"],
        "commit": of_each("commit"),
        "dirty": of_each("dirty"),
        "run_ids": of_each("run_id"),
        "calibration_run_ids": of_each("calibration_run_ids"),
        "started": of_each("started"),
        "finished": of_each("finished"),
        "machine": measured["machine"],
        "tools": of_each("tools"),
        "profiles": {half: _hashes(manifest) for half, manifest in manifests.items()},
        "cases": {half: len(manifest["cases"]) for half, manifest in manifests.items()},
        "trials": {PREDICTED: predicted["predict_trials"], MEASURED: measured["trials"]},
        "rejected_parts": len(measured["rejections"]),
        "worst_lateness_us": _worst_lateness_us(measured["link_reports"]),
        "worst_late_fraction": _worst_late_fraction(measured["link_reports"]),
        "warnings": measured["warnings"],
    }


def _hashes(manifest: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each profile that a half used."""
    return {f"{one['kind']} {one['name']}": one["sha256"] for one in manifest["profiles"]}


def _worst_lateness_us(reports: dict[str, Any]) -> dict[str, float]:
    """The largest P99 and maximum that the emulated link had in any window of any case."""
    found = [
        window[way]["lateness_us"]
        for windows in reports.values()
        for window in windows
        for way in ("a_to_b", "b_to_a")
        if way in window
    ]
    return {key: max((float(one[key]) for one in found), default=0.0) for key in ("p99", "max")}


def _worst_late_fraction(reports: dict[str, Any]) -> float:
    fractions = (
        float(window["late_fraction"]) for windows in reports.values() for window in windows
    )
    return max(fractions, default=0.0)

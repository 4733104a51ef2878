# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A judged study in small: both halves in one Parquet file, and a `run.json` that says what it was.

Times are kept to 1 us and as distributions: how often each value was seen, not in which trial.
Within a case and metric values ascend, and each is stored as the step from the one before, so that
a half of 240,000 connections has some hundred kilobytes. Of a measurement in parts the whole times
are kept by part and stratum (`warifu.results.kept_trials`), since gates need both.

`restore` makes a results folder of it again, whose manifests warn that it was restored. From it the
tables of metrics (each half's), of the comparison and of the requirements are computed again, each
time within 0.5 us of what it was. What was replayed is kept in a file beside it
(`warifu.results.replay_archive`). The inputs of the prediction, the link's reports on itself,
timelines and packet logs are not kept, nor is the text of profiles: `run.json` has the SHA-256 of
each profile and the worst lateness of the link.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import warifu._core as _core
from warifu.files import FileRefused, read_bytes, read_text, refuse_to_replace, replacing
from warifu.printable import clipped, printable
from warifu.results import kept_trials, replay_archive
from warifu.results.folder import Results, Setting
from warifu.results.manifest import (
    MEASURED,
    NOISE,
    PREDICTED,
    STRATA,
    WRITTEN_AS,
    ResultsDamaged,
    ResultsError,
)
from warifu.results.packets import REPLAYABLE, can_be_replayed
from warifu.results.pages import PagesRefused, refuse_large
from warifu.results.registration import sealed_anew, was_before
from warifu.results.replay import read_replay, write_replay
from warifu.results.version_1 import POLARS_TYPES

#: What an archived manifest leaves out: large, or of no use to a table.
_LEFT_OUT = (
    "costs",
    "figures",
    "profiles",
    "link_reports",
    "cells",
    "rejections",
    "files",
    WRITTEN_AS,
)
#: What is kept of a part's record (`warifu.results.parts`).
_OF_PART: tuple[str, ...] = ("first_trial", "trials", "processor_shares", "others_max", "busy")
_OF_PART += ("sitting", "start_late_ns", "alone", "began")
#: The largest file that is worth committing, and that is restored.
MOST_BYTES = 2_000_000
#: Rows that are restored, for which a gigabyte suffices: six times those of a judged study of 24
#: cells of 10,000 connections.
MOST_ROWS = 1_000_000
#: A value is stored as a whole number of ticks: of 1 us for times, of a millionth for the others.
_TICK_NS = 1_000
_TICKS_OF_ONE = 1_000_000

#: What one distribution shares; `stage` is null for the whole metric.
_GROUP = ("half", "case_id", "metric", "stage", "unit", "exact", "method", "evidence")
#: The columns of an archive beside those of the group: steps of ticks and of the trial's number,
#: which only stages have, since they belong together.
_SCHEMA = {
    **dict.fromkeys(_GROUP, pl.String),
    "exact": pl.Boolean,
    "connection": pl.UInt32,
    "trial": pl.Int64,
    "ticks": pl.Int64,
    "weight": pl.Float64,
}
#: What reading a damaged archive ends in.
_UNREADABLE = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
    ResultsError,
    _core.WarifuError,
)


def archive(folder: Path, target: Path) -> dict[str, Any]:
    """Writes a study's two halves as ``target``, a Parquet file; what `run.json` says of it.

    An older file is replaced by one that is whole. Raises ResultsError where a half is missing or
    damaged, and where the file cannot be written or would be too large to commit.
    """
    try:
        refuse_to_replace(target)
    except (FileRefused, OSError) as error:
        raise ResultsError(_cannot(target, error)) from None
    halves = {half: Results.open(folder / half) for half in (PREDICTED, MEASURED)}
    manifests = {half: _without(one.manifest) for half, one in halves.items()}
    if not was_before(folder / PREDICTED, halves[MEASURED].manifest):
        manifests[MEASURED].pop("registered", None)
    kept = {
        half: json.dumps({"manifest": manifests[half], "cases": one.cases})
        for half, one in halves.items()
    }
    # Read as the manifest sealed them, before they are passed on.
    _read_beside(halves[PREDICTED])
    for name in (STRATA, NOISE):
        if name in (halves[PREDICTED].manifest.get("files") or {}):
            kept[name] = (folder / PREDICTED / name).read_text()
    rows = pl.concat([_steps(one) for one in halves.values()])
    if rows.height > MOST_ROWS:
        raise ResultsError(
            f"{target}: would have {rows.height:,} rows: expected at most {MOST_ROWS:,}: "
            "judge fewer cells or trials in one study"
        )
    written = io.BytesIO()
    rows.write_parquet(
        written, compression="zstd", compression_level=19, statistics=False, metadata=kept
    )
    content = written.getvalue()
    if len(content) > MOST_BYTES:
        raise ResultsError(
            f"{target}: would have {len(content):,} bytes: expected at most {MOST_BYTES:,}: "
            "judge fewer cells or trials in one study"
        )
    try:
        with replacing(target) as file:
            file.write(content)
    except OSError as error:
        raise ResultsError(_cannot(target, error)) from None
    run = _run({half: one.manifest for half, one in halves.items()})
    run |= {"archive": target.name, "sha256": hashlib.sha256(content).hexdigest()}
    return run | _archive_replay(folder, target, halves)


def _archive_replay(folder: Path, target: Path, halves: dict[str, Results]) -> dict[str, Any]:
    """Writes the replay beside an archive; what `run.json` says of it. Without one an older file is
    removed, which would be of another run."""
    beside = replay_archive.name_of(target)
    found = read_replay(folder, halves[PREDICTED].run_id, halves[MEASURED].run_id)
    try:
        if not found:
            beside.unlink(missing_ok=True)
            return {"replay": None}
        runs = (halves[PREDICTED].run_id, halves[MEASURED].run_id)
        content = replay_archive.packed(found, runs)
        if len(content) > replay_archive.MOST_BYTES:
            raise ResultsError(
                f"{beside}: would have {len(content):,} bytes: expected at most "
                f"{replay_archive.MOST_BYTES:,}: judge fewer cells or trials in one study"
            )
        refuse_to_replace(beside)
        with replacing(beside) as file:
            file.write(content)
    except (FileRefused, OSError) as error:
        raise ResultsError(_cannot(beside, error)) from None
    return {"replay": {"archive": beside.name, "sha256": hashlib.sha256(content).hexdigest()}}


def restore(source: Path, folder: Path) -> None:
    """Makes the results folder of an archived study again; its manifests warn that it is one.

    Until it is whole it has a name that nobody knows beforehand, so that nothing else is removed.

    Raises ResultsError where the folder exists, ResultsDamaged for what is no archive, and
    StorageError where a manifest cannot be written.
    """
    if not source.is_file():
        raise ResultsError(f"{source}: is not a file: name an archive, made by `archive.py`")
    if folder.exists():
        raise ResultsError(f"{folder}: exists already: name a new folder")
    try:
        content = read_bytes(source, MOST_BYTES)
        beside = _replay_beside(source, content)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}.", suffix=".partial"
        ) as partial:
            whole = Path(partial) / folder.name
            _restore_halves(source, content, whole)
            _refuse_other_runs(source, whole)
            if beside is not None:
                _restore_replay(beside, whole)
            elif not source.with_suffix(".run.json").exists():
                # Nothing says that there was none.
                _mark_replayable(Results.open(whole / MEASURED), None)
            whole.rename(folder)
    except FileRefused as error:
        raise ResultsError(str(error)) from None
    except OSError as error:
        where = error.filename or folder
        raise ResultsError(
            f"{where}: cannot be read or written: {error.strerror or error}: choose another place"
        ) from None


def _restore_halves(source: Path, content: bytes, folder: Path) -> None:
    try:
        _restore(source, content, folder)
    except _core.StorageError:
        # Not the archive's fault: it must not be called damaged.
        raise
    except _UNREADABLE as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ResultsDamaged(
            f"{source}: is not a whole archive of a study ({first}): take it from where it was "
            "committed"
        ) from None


def _replay_beside(source: Path, content: bytes) -> Path | None:
    """The replay beside an archive, if there is one.

    Raises ResultsDamaged where both are not what `run.json` beside them says, if that is there.
    """
    run_file, beside = source.with_suffix(".run.json"), replay_archive.name_of(source)
    is_there = beside.exists() or beside.is_symlink()
    try:
        run = json.loads(read_text(run_file, MOST_BYTES))
        expected: dict[Path, str | None] = {source: run["sha256"]}
        found: dict[Path, str | None] = {source: hashlib.sha256(content).hexdigest()}
        if "replay" in run:
            expected[beside] = None if run["replay"] is None else run["replay"]["sha256"]
            found[beside] = None
    except FileNotFoundError:
        return beside if is_there else None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise _other_run(run_file, "does not say what archive it is of") from None
    if "replay" not in run and is_there:
        raise _other_run(run_file, f"does not say whether {beside.name} is of its run")
    if beside in found and is_there:
        try:
            of_replay = read_bytes(beside, replay_archive.MOST_BYTES)
        except (FileRefused, OSError) as refused:
            what = refused.strerror if isinstance(refused, OSError) else str(refused)
            raise _other_run(beside, f"cannot be read ({what})") from None
        found[beside] = hashlib.sha256(of_replay).hexdigest()
    for file, wanted in expected.items():
        if found[file] == wanted:
            continue
        if found[file] is None:
            raise _other_run(file, f"is missing, and {run_file.name} names it")
        said = "names no replay" if wanted is None else "has another SHA-256 of it"
        raise _other_run(file, f"is not of the run that {run_file.name} is of, which {said}")
    return beside if is_there else None


def _refuse_other_runs(source: Path, folder: Path) -> None:
    """Raises ResultsDamaged where an archive's halves are not the runs that `run.json` beside it
    names, if that is there."""
    run_file = source.with_suffix(".run.json")
    if not run_file.exists():
        return
    halves = [Results.open(folder / half) for half in (PREDICTED, MEASURED)]
    try:
        named = json.loads(read_text(run_file, MOST_BYTES))["run_ids"]
        other = next((one for one in halves if named[one.half] != one.run_id), None)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise _other_run(run_file, "does not say which runs it is of") from None
    if other is not None:
        raise _other_run(
            run_file,
            f"names the {other.half} run {clipped(printable(str(named[other.half])))}, and "
            f"{source.name} is of {clipped(printable(other.run_id))}",
        )


def _other_run(file: Path, what: str) -> ResultsDamaged:
    return ResultsDamaged(f"{file}: {what}: take it from where it was committed")


def _restore(source: Path, content: bytes, folder: Path) -> None:
    kept = pl.read_parquet_metadata(io.BytesIO(content))
    steps = _read(content)
    rows = steps.with_columns(pl.col("ticks", "trial").cum_sum().over(_GROUP))
    value = pl.when(pl.col("unit") == "ns").then(pl.col("ticks").cast(pl.Float64) * _TICK_NS)
    rows = rows.with_columns(value.otherwise(pl.col("ticks") / _TICKS_OF_ONE).alias("value"))
    rows = kept_trials.each(rows, MOST_ROWS)
    for half in (PREDICTED, MEASURED):
        about = json.loads(kept[half])
        manifest = about["manifest"]
        part = folder / half / "observations" / "part-00000.parquet"
        part.parent.mkdir(parents=True)
        _observations(rows.filter(pl.col("half") == half), manifest, about["cases"]).write_parquet(
            part
        )
        sealed = _write(part, part.read_bytes())
        restored = _restored(source.name, hashlib.sha256(content).hexdigest())
        if not source.with_suffix(".run.json").exists():
            restored += "; no run.json lay beside it that says what it must be"
        manifest["warnings"] = [*(manifest.get("warnings") or []), restored]
        manifest["files"] = {f"observations/{part.name}": sealed}
        for name in (STRATA, NOISE):
            if half == PREDICTED and name in kept:
                manifest["files"][name] = _write(folder / half / name, kept[name].encode())
        if half == MEASURED and (sealed_again := sealed_anew(folder / PREDICTED, manifest)):
            manifest["registered"] = sealed_again
        _core.write_manifest(folder / half, json.dumps(manifest))
        _read_all(Results.open(folder / half))


def _read_all(half: Results) -> None:
    """Raises ResultsDamaged for what was restored and cannot be read, before anybody sees it."""
    try:
        for case_id in half.cases:
            half.rows(case_id)
        _read_beside(half)
    except ResultsDamaged as error:
        # Neither where it was put together, nor how to make it again.
        what = str(error).removeprefix(f"{half.path}/").rpartition(": ")[0]
        raise ValueError(f"its {half.half} half: {what}") from None


def _read_beside(half: Results) -> None:
    """Raises ResultsDamaged for what lies beside the observations and is not as it was written."""
    half.strata("")
    half.noise("", "")


def _restore_replay(source: Path, folder: Path) -> None:
    halves = {half: Results.open(folder / half) for half in (PREDICTED, MEASURED)}
    runs = (halves[PREDICTED].run_id, halves[MEASURED].run_id)
    cases = replay_archive.unpacked(source, runs)
    measured = halves[MEASURED]
    for case_id, one in cases.items():
        known = case_id in measured.cases
        if not known or not replay_archive.is_of(one, measured.trials(case_id)):
            what = f"the times of case {clipped(case_id)} are not those of the archive beside it"
            raise _other_run(source, f"is of another run: {what}")
    write_replay(folder, *runs, cases)
    read_replay(folder, *runs)
    # Archives of older versions do not say what could be replayed.
    _mark_replayable(measured, cases)


def _mark_replayable(measured: Results, cases: Iterable[str] | None) -> None:
    """Notes in a manifest of which cases there is a replay; by default of all."""
    manifest = {key: value for key, value in measured.manifest.items() if key != WRITTEN_AS}
    for case_id in measured.cases if cases is None else cases:
        manifest["cells"].setdefault(case_id, {})[REPLAYABLE] = True
    _core.write_manifest(measured.path, json.dumps(manifest))


def _write(file: Path, content: bytes) -> dict[str, Any]:
    """Writes a file; its seal."""
    file.write_bytes(content)
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _read(content: bytes) -> pl.DataFrame:
    """The rows of an archive, once its footer says that they are an archive's and not too many:
    rows that repeat, and columns of nulls, take nearly no place in a file."""
    try:
        refuse_large(io.BytesIO(content))
    except PagesRefused as refused:
        raise ValueError(f"it {refused}") from None
    found = pl.scan_parquet(io.BytesIO(content))
    columns = found.collect_schema()
    if len(columns) != len(_SCHEMA):
        raise ValueError(f"it has {len(columns):,} columns instead of {len(_SCHEMA)}")
    if columns != pl.Schema(_SCHEMA):
        raise ValueError("its columns are of other types")
    # From the footer alone: Polars counts without reading.
    rows = int(found.select(pl.len()).collect().item())
    if rows > MOST_ROWS:
        raise ValueError(f"it has {rows:,} rows, and {MOST_ROWS:,} are the most that is read")
    read = found.collect()
    if not read["weight"].is_between(0.0, float(MOST_ROWS)).fill_null(value=False).all():
        raise ValueError("it has a weight that counts no trials")
    if set(read["half"]) - {PREDICTED, MEASURED}:
        raise ValueError("it has rows of neither half")
    return read


def _restored(source: str, sha256: str) -> str:
    """What every report and comparison of a restored folder says: compare and report show a
    manifest's warnings."""
    return (
        f"restored from the archive {source} (SHA-256 {sha256[:16]}...), which keeps times to "
        "1 us and neither inputs nor link reports"
    )


def _steps(results: Results) -> pl.DataFrame:
    """The observations of a half as an archive has them."""
    return pl.concat([_steps_of_case(results, case_id) for case_id in results.cases])


def _steps_of_case(results: Results, case_id: str) -> pl.DataFrame:
    per_ns = (pl.col("value") / _TICK_NS).round()
    ticks = pl.when(pl.col("unit") == "ns").then(per_ns)
    rows = results.rows(case_id).with_columns(
        ticks.otherwise((pl.col("value") * _TICKS_OF_ONE).round()).cast(pl.Int64).alias("ticks"),
        pl.lit(results.half).alias("half"),
        pl.lit(case_id).alias("case_id"),
    )
    whole = rows.filter(pl.col("stage").is_null())
    whole, single = kept_trials.apart(whole, results.whole(case_id), results.parts(case_id))
    whole = whole.group_by(*_GROUP, "ticks").agg(pl.col("weight").sum())
    whole = whole.with_columns(
        pl.lit(0, pl.UInt32).alias("connection"), pl.lit(None, pl.UInt64).alias("trial")
    )
    staged = rows.filter(pl.col("stage").is_not_null())
    schema = pl.Schema(_SCHEMA)
    both = pl.concat([one.select(*_SCHEMA).cast(schema) for one in (whole, single, staged)])
    both = both.sort(*_GROUP, "connection", "trial", "ticks").cast(pl.Schema(_SCHEMA))
    # The trial of what is counted by value is its place.
    place = pl.int_range(pl.len()).over(_GROUP)
    both = both.with_columns(pl.col("trial").fill_null(place))
    step = pl.col("ticks", "trial")
    return both.with_columns(step - step.shift(1, fill_value=0).over(_GROUP))


def _observations(
    rows: pl.DataFrame, manifest: dict[str, Any], cases: dict[str, dict[str, Setting]]
) -> pl.DataFrame:
    """Rows of an archive as observations, with every column."""
    types = {name: POLARS_TYPES[kind] for name, kind, _, _ in _core.columns()}
    known = [name for name in types if any(name in one for one in cases.values())]
    settings = pl.DataFrame(
        [{"case_id": case_id, **one} for case_id, one in cases.items()],
        schema={"case_id": pl.String} | {name: types[name] for name in known},
    )
    about = {"study": manifest["study"]["name"], "run_id": manifest["run_id"]}
    about |= {"seed": manifest["seed"]}
    joined = rows.join(settings, on="case_id", how="left", maintain_order="left")
    given = joined.with_columns(pl.lit(one).alias(name) for name, one in about.items())
    absent = [pl.lit(None).alias(name) for name in types if name not in given.columns]
    return given.with_columns(absent).select(list(types)).cast(pl.Schema(types))


def _cannot(target: Path, error: FileRefused | OSError) -> str:
    """Why an archive cannot be written."""
    if isinstance(error, FileRefused):
        return str(error)
    return f"{target}: cannot be written: {error.strerror or error}: choose another place"


def _without(manifest: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a manifest: of parts and rejections what tables say of them."""
    kept = {key: value for key, value in manifest.items() if key not in _LEFT_OUT}
    kept["cells"] = {
        case_id: {"trials": cell.get("trials"), "parts": [
            {key: part[key] for key in _OF_PART if key in part} for part in cell.get("parts") or []
        ]}
        for case_id, cell in (manifest.get("cells") or {}).items()
    }  # fmt: skip
    for case_id, cell in kept["cells"].items():
        # Packets are not kept: without this nothing would tell that a replay is missing.
        if can_be_replayed(manifest, case_id):
            cell[REPLAYABLE] = True
    kept["rejections"] = [
        {"case_id": one.get("case_id")} for one in manifest.get("rejections") or []
    ]
    return kept


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
        "registered": measured.get("registered"),
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
        (window.get(way) or {}).get("lateness_us") or {}
        for window in _windows(reports)
        for way in ("a_to_b", "b_to_a")
    ]
    return {
        key: max((float(one.get(key) or 0.0) for one in found), default=0.0)
        for key in ("p99", "max")
    }


def _worst_late_fraction(reports: dict[str, Any]) -> float:
    fractions = (float(window.get("late_fraction") or 0.0) for window in _windows(reports))
    return max(fractions, default=0.0)


def _windows(reports: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The link's report on each part of each case."""
    for report in reports.values():
        yield from report if isinstance(report, list) else [report]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A judged study kept in small gives the tables that it gave."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from support.paths import ROOT
from support.synthetic import Cell, Half
from warifu import _core
from warifu.compare.join import compare_folder
from warifu.report.accuracy import comparison_table, measurement_warnings, overview_table
from warifu.report.table import Format, render
from warifu.results import Results, ResultsDamaged, ResultsError, archive

CELLS = [Cell(), Cell(loss=0.02)]


def test_tables_from_an_archive(tmp_path: Path) -> None:
    whole, again = tmp_path / "whole", tmp_path / "again"
    way = {"lateness_us": {"p50": 9, "p99": 40.5, "max": 80}}
    window = {"accepted": True, "late_fraction": 0.0005, "a_to_b": way, "b_to_a": way}
    reports = {"link_reports": {CELLS[0].case_id: [window]}, "trials": 300}
    Half("predicted", CELLS, 2_000, seed=1).write(whole)
    Half("measured", CELLS, 300, seed=2, manifest=reports).write(whole)
    run = archive.archive(whole, tmp_path / "made-up.parquet")
    content = (tmp_path / "made-up.parquet").read_bytes()
    assert run["sha256"] == hashlib.sha256(content).hexdigest()
    assert run["archive"] == "made-up.parquet"
    assert run["worst_lateness_us"] == {"p99": 40.5, "max": 80.0}
    assert run["run_ids"] == {"predicted": "run-predicted-1", "measured": "run-measured-2"}
    assert len(json.dumps(run)) < 10_000

    archive.restore(tmp_path / "made-up.parquet", again)
    before, after = compare_folder(whole), compare_folder(again)
    for case, restored in zip(before.cases, after.cases, strict=True):
        assert (restored.label, restored.n_measured) == (case.label, case.n_measured)
        assert [one.verdict for one in restored.bytes] == [one.verdict for one in case.bytes]
        for row, other in zip(case.rows, restored.rows, strict=True):
            assert other.predicted == pytest.approx(row.predicted, abs=500)
            assert other.measured == pytest.approx(row.measured, abs=500)
    # What is committed is computed from the archive, and so anybody computes the same.
    archive.restore(tmp_path / "made-up.parquet", tmp_path / "elsewhere")
    text = render([overview_table(after), comparison_table(after)], Format.MD)
    anew = compare_folder(tmp_path / "elsewhere")
    assert render([overview_table(anew), comparison_table(anew)], Format.MD) == text


def test_archive_without_a_measurement(tmp_path: Path) -> None:
    Half("predicted", CELLS, 50, seed=1).write(tmp_path)
    with pytest.raises(ResultsError, match="measured: is not a results folder"):
        archive.archive(tmp_path, tmp_path / "made-up.parquet")
    assert not (tmp_path / "made-up.parquet").exists()


def test_archive_too_large_to_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    for half in ("predicted", "measured"):
        Half(half, CELLS, 50, seed=1).write(tmp_path)
    with pytest.raises(ResultsError, match="expected at most 100: judge fewer cells"):
        archive.archive(tmp_path, tmp_path / "made-up.parquet")
    assert not list(tmp_path.glob("*.parquet")) and not list(tmp_path.glob(".*"))


def test_two_halves_from_different_profiles(tmp_path: Path) -> None:
    for half, text in (("predicted", "new"), ("measured", "old")):
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        profile = {"kind": "device", "name": "this-host", "text": text, "sha256": sha256}
        runs = {"profiles": [profile], "calibration_run_ids": [text]}
        Half(half, CELLS, 50, seed=1, manifest=runs).write(tmp_path)
    run = archive.archive(tmp_path, tmp_path / "made-up.parquet")
    hashes = [run["profiles"][half]["device this-host"] for half in ("predicted", "measured")]
    assert hashes == [hashlib.sha256(text).hexdigest() for text in (b"new", b"old")]
    assert run["calibration_run_ids"] == {"predicted": ["new"], "measured": ["old"]}


def archived(tmp_path: Path, predicted: Half, measured: Half) -> Path:
    """Two halves, archived."""
    for half in (predicted, measured):
        half.write(tmp_path / "whole")
    archive.archive(tmp_path / "whole", tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def small(tmp_path: Path) -> Path:
    """An archive of little."""
    return archived(
        tmp_path, Half("predicted", CELLS, 50, seed=1), Half("measured", CELLS, 50, seed=2)
    )


def test_size_of_ten_thousand_connections_a_cell(tmp_path: Path) -> None:
    cells = [Cell(rtt_ms=rtt, loss=0.02) for rtt in (1, 60, 150)]
    measured = Half("measured", cells, 10_000, seed=2, client_bytes=(915, 916))
    path = archived(tmp_path, Half("predicted", cells, 200, seed=1), measured)
    # A judged study has 24 such cells, and may have 2 MB.
    assert path.stat().st_size < 3 * 2_000_000 / 24
    archive.restore(path, tmp_path / "again")
    again = Results.open(tmp_path / "again" / "measured")
    whole = Results.open(tmp_path / "whole" / "measured")
    for case_id in whole.cases:
        assert again.cases[case_id].items() >= whole.cases[case_id].items()
        for metric in ("https.establishment", "bytes.client_sent", "tcp.connect"):
            ours, theirs = (half.distribution(case_id, metric) for half in (whole, again))
            assert (ours.n, ours.failed) == (theirs.n, theirs.failed)
            most = 500.0 if metric != "bytes.client_sent" else 0.0
            for p in (0.001, 0.25, 0.5, 0.95, 0.999):
                assert theirs.quantile(p) == pytest.approx(ours.quantile(p), abs=most)


def test_stages_of_each_trial_stay_together(tmp_path: Path) -> None:
    path = archived(
        tmp_path,
        Half("predicted", CELLS, 2_000, seed=1, failed=3),
        Half("measured", CELLS, 50, seed=2),
    )
    archive.restore(path, tmp_path / "again")
    again, whole = (Results.open(tmp_path / one / "predicted") for one in ("again", "whole"))
    for case_id in whole.cases:
        assert again.failures(case_id) == 3.0
        for slowest in (False, True):
            stages = again.stages(case_id, slowest)
            assert stages == pytest.approx(whole.stages(case_id, slowest), abs=500)


def test_archive_is_not_called_damaged_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, _: str) -> None:
        raise _core.StorageError(f"{folder}/manifest.json: no space left on the device: free some")

    path = small(tmp_path)
    monkeypatch.setattr(_core, "write_manifest", full)
    with pytest.raises(_core.StorageError, match="no space left on the device"):
        archive.restore(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_results_of_version_1(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "goldens" / "version-1", tmp_path / "whole")
    old = Results.open(tmp_path / "whole" / "predicted")
    new = Half("measured", [Cell()], 50, seed=2).write(tmp_path / "whole")
    archive.archive(tmp_path / "whole", tmp_path / "a.parquet")
    archive.restore(tmp_path / "a.parquet", tmp_path / "again")
    again = Results.open(tmp_path / "again" / "predicted")
    assert again.cases == old.cases
    for case_id in old.cases:
        whole = old.whole(case_id)
        times, before = again.distribution(case_id, whole), old.distribution(case_id, whole)
        assert times.values == pytest.approx(before.values, abs=500)
        assert again.label(case_id) == old.label(case_id)
    assert Results.open(tmp_path / "again" / "measured").run_id == Results.open(new).run_id


def test_names_that_are_taken(tmp_path: Path) -> None:
    path = small(tmp_path)
    before = path.read_bytes()
    path.write_bytes(b"an older archive")
    archive.archive(tmp_path / "whole", path)
    assert path.read_bytes() == before
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(ResultsError, match=r"folder\.parquet: cannot be written: Is a dir"):
        archive.archive(tmp_path / "whole", tmp_path / "folder.parquet")
    with pytest.raises(ResultsError, match="whole: exists already: name a new folder"):
        archive.restore(path, tmp_path / "whole")
    with pytest.raises(ResultsError, match=r"none\.parquet: is not a file: name an archive"):
        archive.restore(tmp_path / "none.parquet", tmp_path / "again")
    with pytest.raises(ResultsError, match=r"nowhere.*: cannot be written: .*: choose another"):
        archive.archive(tmp_path / "whole", tmp_path / "nowhere" / "a.parquet")
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match=r"file.*: choose another place"):
        archive.restore(path, tmp_path / "file" / "again")


def test_damaged_half_is_not_archived(tmp_path: Path) -> None:
    Half("measured", CELLS, 50, seed=2).write(tmp_path)
    folder = Half("predicted", CELLS, 50, seed=1).write(tmp_path)
    part = next((folder / "observations").iterdir())
    part.write_bytes(part.read_bytes()[:3_000])
    with pytest.raises(ResultsDamaged, match=f"{part}: cannot be read"):
        archive.archive(tmp_path, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def about(path: Path) -> dict[str, str]:
    """The manifests in an archive."""
    kept = pl.read_parquet_metadata(path)
    return {half: kept[half] for half in ("predicted", "measured")}


def without_manifests(path: Path) -> None:
    pl.read_parquet(path).write_parquet(path)


def other_columns(path: Path) -> None:
    rows = pl.read_parquet(path).with_columns(pl.col("ticks").cast(pl.String))
    rows.write_parquet(path, metadata=about(path))


def other_manifest(path: Path) -> None:
    none = {half: json.dumps({"manifest": 7, "cases": []}) for half in ("predicted", "measured")}
    pl.read_parquet(path).write_parquet(path, metadata=none)


def other_cases(path: Path) -> None:
    kept = {half: json.loads(text) for half, text in about(path).items()}
    kept["measured"]["cases"] = {CELLS[0].case_id: {"rtt_ns": "sixty"}}
    texts = {half: json.dumps(one) for half, one in kept.items()}
    pl.read_parquet(path).write_parquet(path, metadata=texts)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes().replace(b"emulated", b"emulate!")),
        without_manifests,
        other_columns,
        other_manifest,
        other_cases,
    ],
)
def test_damaged_archive(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    path = small(tmp_path)
    damage(path)
    with pytest.raises(ResultsDamaged, match="is not a whole archive of a study") as error:
        archive.restore(path, tmp_path / "again")
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "again").exists() and not list(tmp_path.glob(".*"))


_MOST_KB = 600_000
"""What Python and Polars take without any rows, four times."""
_RESTORES = """
import re, sys
from pathlib import Path
from warifu.results import ResultsDamaged, archive
try:
    archive.restore(Path(sys.argv[1]), Path(sys.argv[2]))
except ResultsDamaged as error:
    print(error)
# Its own: getrusage(2) keeps what the process had before it became this program.
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def repeated(path: Path) -> None:
    row = pl.read_parquet(path).head(1)
    few = pl.concat([row] * 2_000)
    pl.concat([few] * 10_000).write_parquet(path, metadata=about(path), row_group_size=262_144)


def widened(path: Path) -> None:
    nothing = [pl.lit(None, pl.String).alias(f"more{number}") for number in range(500)]
    rows = pl.read_parquet(path).with_columns(nothing)
    rows.write_parquet(path, metadata=about(path))


@pytest.mark.parametrize(
    ("swell", "words"),
    [(repeated, "it has 20,000,000 rows, and 1,000,000 are the most that is read"),
     (widened, "it has 512 columns instead of 12")],
)  # fmt: skip
def test_rows_and_columns_without_number_in_a_small_archive(
    tmp_path: Path, swell: Callable[[Path], object], words: str
) -> None:
    """Half a megabyte of one row again and again took 5.9 GB."""
    path = small(tmp_path)
    swell(path)
    assert path.stat().st_size < 1_000_000
    done = subprocess.run(
        [sys.executable, "-c", _RESTORES, path, tmp_path / "again"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said, peak = done.stdout.splitlines()
    assert words in said
    assert int(peak) < _MOST_KB


def test_archive_of_more_rows_than_are_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_ROWS", 100)
    with pytest.raises(ResultsError, match=r"rows: expected at most 100: judge fewer cells"):
        small(tmp_path)
    assert not (tmp_path / "a.parquet").exists()


def test_file_longer_than_any_archive(tmp_path: Path) -> None:
    with (tmp_path / "a.parquet").open("wb") as file:
        file.truncate(archive.MOST_BYTES + 1)
    with pytest.raises(ResultsError, match=r"a\.parquet: is longer than 2,000,000 bytes"):
        archive.restore(tmp_path / "a.parquet", tmp_path / "again")


def test_folder_that_somebody_made_beside_the_target_stays(tmp_path: Path) -> None:
    (other := tmp_path / ".again.partial").mkdir()
    (other / "notes").write_text("somebody's")
    archive.restore(small(tmp_path), tmp_path / "again")
    assert (other / "notes").read_text() == "somebody's"
    (tmp_path / "new").mkdir()
    assert (tmp_path / "again").stat().st_mode == (tmp_path / "new").stat().st_mode


JUDGED = sorted((ROOT / "studies" / "accuracy").rglob("*.run.json"))


def test_there_are_judged_studies() -> None:
    assert len(JUDGED) >= 2


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.name)
def test_what_is_kept_of_a_judged_study(path: Path, tmp_path: Path) -> None:
    assert path.stat().st_size < 10_000
    run = json.loads(path.read_text())
    name = path.name.removesuffix(".run.json")
    assert run["study"]["name"] == f"accuracy-{name}"
    study = path.with_name(f"{name}.toml").read_bytes()
    assert run["study"]["sha256"] == hashlib.sha256(study).hexdigest()
    table = path.with_name(f"{name}.md").read_text()
    assert f"beside {run['trials']['predicted']} predicted" in table
    if run["archive"] is None:
        return
    # What is committed is what the archive says.
    kept = path.with_name(run["archive"])
    assert run["sha256"] == hashlib.sha256(kept.read_bytes()).hexdigest()
    archive.restore(kept, tmp_path / "kept")
    again = compare_folder(tmp_path / "kept")
    overview, details = overview_table(again), comparison_table(again, judged_only=True)
    # Above the tables, where the answer is: once for both halves, or for each.
    warnings = [one for one in again.warnings if "restored from the archive" in one]
    assert warnings and all(warning in table for warning in warnings)
    told = measurement_warnings(warnings)
    overview.notes = [note for note in overview.notes if note not in told]
    assert render([overview, details], Format.MD) in table

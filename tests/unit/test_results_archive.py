# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A judged study kept in small gives the tables that it gave."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from support.paths import ROOT
from support.synthetic import Cell, Half
from warifu.compare.join import compare_folder
from warifu.report.summaries import comparison_table, overview_table
from warifu.report.table import Format, render
from warifu.results import ResultsError, archive

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


JUDGED = sorted((ROOT / "studies" / "accuracy").glob("*.run.json"))


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
    assert (
        render([overview_table(again), comparison_table(again, judged_only=True)], Format.MD)
        in table
    )

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu report`: the comparison that it needs, and its warnings."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from support.commands import Run, one_line
from support.synthetic import Cell, Half, change_manifest, write_manifest
from support.synthetic import study as made_up
from warifu.cli.errors import FAILED, OK, USAGE
from warifu.results import archive


def test_report_makes_the_comparison_that_is_missing_or_old(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    code, out, err = warifu("report", "s")
    assert (code, out) == (OK, "")
    assert "report: s/report.html" in err
    first = (tmp_path / "s" / "comparison.json").read_text()
    path = tmp_path / "s" / "measured" / "manifest.json"
    manifest = json.loads(path.read_text())
    write_manifest(path.parent, {**manifest, "run_id": "another-run"})
    (part,) = path.parent.glob("observations/*.parquet")
    pl.read_parquet(part).with_columns(run_id=pl.lit("another-run")).write_parquet(part)
    assert warifu("report", "s")[0] == OK
    assert "another-run" not in first
    assert "another-run" in (tmp_path / "s" / "comparison.json").read_text()


@pytest.mark.parametrize("form", [(), ("--format", "md")])
def test_a_report_warns_of_a_measurement_of_something_else(
    warifu: Run, tmp_path: Path, form: tuple[str, ...]
) -> None:
    Half("predicted", [Cell()], 500, seed=1).write(tmp_path / "s")
    Half("measured", [Cell(rtt_ms=99)], 50, seed=2).write(tmp_path / "s")
    code, _, err = warifu("report", "s", *form)
    assert code == OK
    assert "warning: " in err
    assert "have no case in common" in err
    (tmp_path / "s" / "measured" / "manifest.json").write_text('{"schema_version": 0}')
    code, _, err = warifu("report", "s", *form)
    assert code == OK
    assert "schema_version is 0" in err


@pytest.mark.parametrize("form", [(), ("--format", "csv")])
def test_report_warns_of_an_interrupted_half(
    warifu: Run, tmp_path: Path, form: tuple[str, ...]
) -> None:
    made_up(tmp_path / "s", [Cell()], n=50)
    change_manifest(tmp_path / "s" / "predicted", complete=False, predict_trials=50_000)
    for verb in (("report", *form), ("compare", *form)):
        code, _, err = warifu(*verb, "s")
        assert code in {OK, FAILED}
        assert err.count("warning: The predicted half is not complete: 20,000 of 50,000 tri") == 1


@pytest.mark.parametrize("form", [(), ("--format", "md")])
def test_report_of_a_measured_half_alone(
    warifu: Run, tmp_path: Path, form: tuple[str, ...]
) -> None:
    Half("measured", [Cell()], 50, seed=2).write(tmp_path / "s")
    code, _, err = warifu("report", "s", *form)
    assert code == OK
    assert "warning: s: has no predicted half, so the measured one is reported alone: run" in err
    assert (tmp_path / "s" / "report.html").exists() == (not form)


@pytest.mark.parametrize("verb", ["compare", "report"])
def test_folder_of_one_program_on_the_simulated_chip(
    warifu: Run, tmp_path: Path, verb: str
) -> None:
    half = Half("predicted", [Cell()], 50, seed=1).write(tmp_path / "results")
    half.rename(tmp_path / "results" / "m3")
    change_manifest(tmp_path / "results" / "m3", half="emulated")
    code, _, err = warifu(verb, "results/m3")
    assert code == USAGE
    words = "warifu: results/m3: holds a run of one program on the simulated Cortex-M3, which is"
    assert one_line(err).startswith(words)


@pytest.mark.parametrize("verb", [("compare",), ("report",), ("report", "--format", "md")])
def test_restored_archive_says_so(warifu: Run, tmp_path: Path, verb: tuple[str, ...]) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    archive.archive(tmp_path / "s", tmp_path / "kept.parquet")
    archive.restore(tmp_path / "kept.parquet", tmp_path / "again")
    code, out, err = warifu(*verb, "again")
    assert code == OK
    said = (out and out + err) or (tmp_path / "again" / "report.html").read_text()
    assert "restored from the archive kept.parquet (SHA-256 " in said
    assert "which keeps times to 1 us and neither inputs nor link reports" in said

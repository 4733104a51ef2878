# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu compare`: verdicts in every format, with the warnings that belong to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import STUDY, Run, one_line
from support.synthetic import Cell, Half, change_manifest
from support.synthetic import study as made_up
from warifu.cli import ending, verdicts
from warifu.cli.errors import FAILED, OK, USAGE
from warifu.compare.rows import Row
from warifu.compare.stats import Interval
from warifu.compare.store import load


def test_compare_prints_every_format_and_keeps_the_result(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    code, out, err = warifu("compare", "s")
    assert code == OK
    assert "pass" in out
    assert (tmp_path / "s" / "comparison.json").is_file()
    assert "\x1b" not in out + err
    assert warifu("compare", "s", "--format", "csv")[1].startswith("case_id,label,metric,")
    whole = json.loads(warifu("compare", "s", "--format", "json")[1])
    names = [table["name"] for table in whole["tables"]]
    shown = ["overview", "comparison", "null_models", "conditions", "distances"]
    assert names == ["cases", "requirements", *shown]
    assert "| :--- |" in warifu("compare", "s", "--format", "md")[1]
    assert r"\toprule" in warifu("compare", "s", "--format", "latex")[1]


@pytest.mark.parametrize("of_both", [False, True], ids=["measured", "both"])
@pytest.mark.parametrize("form", ["table", "md", "latex", "json", "csv"])
def test_warnings_of_the_measurement_stand_beside_the_verdicts(
    warifu: Run, tmp_path: Path, form: str, of_both: bool
) -> None:
    """Once, even where the prediction has the same."""
    warning = "other work took up to 97 of the processors"
    ours = {"warnings": [warning]} if of_both else {}
    Half("predicted", [Cell()], 20_000, seed=1, manifest=ours).write(tmp_path / "s")
    Half("measured", [Cell()], 300, 2, manifest={"warnings": [warning]}).write(tmp_path / "s")
    _, out, err = warifu("compare", "s", "--format", form)
    assert out.count(warning) + err.count(warning) == 1
    kept = load(tmp_path / "s")
    assert kept is not None
    assert kept.warnings == [warning]
    warifu("report", "s")
    assert f"Warning: {warning}." in (tmp_path / "s" / "report.html").read_text()


def test_a_failing_gate_is_code_1(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300, scale=1.05)
    code, out, _ = warifu("compare", "s")
    assert code == FAILED
    assert "fail" in out


@pytest.mark.parametrize(
    ("statistic", "named"),
    [
        ("p50", "median"),
        ("p95", "P95"),
        ("mean", "mean"),
        ("p95 - p50", "P95 - median"),
        ("replayed: p95", "replayed P95"),
        ("replayed: p50 of differences", "replayed P50 of differences"),
    ],
)
def test_failing_statistics_have_plain_names(statistic: str, named: str) -> None:
    row = Row("https.establishment", statistic, 2e6, 1e6, 1e6, Interval(0.9e6, 1.1e6))
    assert ending._off(row) == f"the predicted {named} is 100.0% above the measured one"


def test_no_connection_that_succeeded_is_code_1(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=0, failed=300)
    for form in ("table", "md", "json", "csv"):
        code, out, _ = warifu("compare", "s", "--format", form)
        assert code == FAILED
        assert "responses" in out
        assert "nan" not in out
    _, out, _ = warifu("compare", "s")
    said = "responses, 100.0 % predicted and 0.0 % measured, more than its gate of 1 points"
    assert said in " ".join(out.split())


def test_a_half_of_which_nothing_came_is_none(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    for part in (tmp_path / "s" / "measured" / "observations").iterdir():
        part.unlink()
    change_manifest(tmp_path / "s" / "measured", complete=False, finished=None)
    assert warifu("report", "s")[0] == OK
    code, _, err = warifu("compare", "s")
    assert code == USAGE
    assert "has no measured half" in one_line(err)


def test_results_of_a_study_are_found_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    assert verdicts.results_folder(tmp_path / "three.toml") == Path("results/three")
    assert verdicts.results_folder(tmp_path) == tmp_path

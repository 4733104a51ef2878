# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results of schema version 2 as it was at first are read, compared and reported.

`goldens/version-2` has the form that the program wrote at commit 6fedbca: `server_workers` and
`concurrent` have 16 bits, the metrics of scenarios and `https.response_complete` are absent, and
the figures of a manifest are text without `what`, `number` and `last_digit_ns`. The rows and all
else are of a later run of one case, ten trials predicted and five measured; types, figures and
the TCP profile were then put back into that form.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from support.paths import ROOT
from support.synthetic import change_manifest
from warifu import _core
from warifu.compare.join import compare
from warifu.report.page import render
from warifu.results import Results, ResultsDamaged, each_part

OLD = ROOT / "tests" / "goldens" / "version-2"
HALVES = ("predicted", "measured")


def part_of(folder: Path) -> Path:
    (part,) = (folder / "observations").iterdir()
    return part


def test_golden_has_the_narrower_columns_and_the_figures_without_fields() -> None:
    for half in HALVES:
        schema = pl.read_parquet_schema(part_of(OLD / half))
        assert (schema["server_workers"], schema["concurrent"]) == (pl.UInt16, pl.UInt16)
        manifest = json.loads((OLD / half / "manifest.json").read_text())
        assert manifest["schema_version"] == _core.SCHEMA_VERSION == 2
        assert not any(
            {"what", "number", "last_digit_ns"} & one.keys() for one in manifest["figures"]
        )


@pytest.mark.parametrize(("half", "trials"), [("predicted", 10.0), ("measured", 5.0)])
def test_settings_and_rows_of_columns_that_were_narrower(half: str, trials: float) -> None:
    results = Results.open(OLD / half)
    ((case_id, case),) = results.cases.items()
    assert (case["server_workers"], case["concurrent"], results.concurrent(case_id)) == (1, 1, 1)
    assert results.distribution(case_id, "https.establishment").n == trials
    (rows,) = each_part(OLD / half, ("https.establishment",))
    assert rows["weight"].sum() == trials


def test_comparison_and_page_of_older_results() -> None:
    predicted, measured = (Results.open(OLD / half) for half in HALVES)
    comparison = compare(predicted, measured)
    (case,) = comparison.cases
    assert (case.case_id, case.failed_measured) == ("1b710e5f380a4c49", 0)
    assert "Where the time goes" in render(OLD, comparison)


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("connection", pl.UInt64, "column connection is of type UInt64, not UInt32"),
        ("concurrent", pl.Int16, "column concurrent is of type Int16, not UInt32"),
        ("value", pl.UInt16, "column value is of type UInt16, not Float64"),
    ],
)
def test_column_that_is_wider_signed_or_no_integer_is_refused(
    tmp_path: Path, name: str, other: type[pl.DataType], words: str
) -> None:
    folder = tmp_path / "predicted"
    shutil.copytree(OLD / "predicted", folder)
    rows = pl.read_parquet(part_of(folder))
    rows.with_columns(pl.col(name).cast(other, strict=False)).write_parquet(part_of(folder))
    change_manifest(folder, files={})
    with pytest.raises(ResultsDamaged, match=words):
        Results.open(folder)

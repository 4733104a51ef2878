# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results of schema version 1, whose settings were all text, are read with their types.

`goldens/version-1/predicted` was written by the last commit of that version (8073174): two cases
of ten trials, `server.workers = 8`, one without loss and one with loss in bursts.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu.compare.case import mean_loss
from warifu.report.page import render
from warifu.results import Results, ResultsError, each_part

OLD = ROOT / "tests" / "goldens" / "version-1"


def test_settings_have_their_types() -> None:
    results = Results.open(OLD / "predicted")
    free, bursty = (results.cases[case_id] for case_id in results.cases)
    assert (free["server"], free["server_workers"]) == ("host", 8)
    assert (free["rtt_ns"], free["mtu"], free["nagle"]) == (150_000_000, 1_428, False)
    assert (free["rate_up_bps"], free["server_name"]) == (1_000_000, None)
    assert (free["loss_model"], free["loss_mean"], free["loss_bad"]) == ("none", 0.0, None)
    assert (bursty["loss_model"], bursty["loss_bad"]) == ("gilbert_elliott", 0.5)
    assert [mean_loss(results, one) for one in results.cases] == [
        0.0,
        pytest.approx(0.5 * 0.01 / 0.31),
    ]


def test_rows_keep_their_values() -> None:
    results = Results.open(OLD / "predicted")
    for case_id in results.cases:
        times = results.distribution(case_id, results.whole(case_id))
        assert times.n == 10.0
        assert sum(results.stages(case_id).values()) == pytest.approx(times.mean(), rel=1e-9)
        assert results.method(case_id) == "simulated"
        assert results.evidence(case_id) == "assumed"
    (part,) = each_part(results.path, ("https.establishment",))
    assert part["weight"].sum() == 20.0


def test_labels_and_a_page() -> None:
    results = Results.open(OLD / "predicted")
    first = next(iter(results.cases))
    assert results.label(first) == "loss 0 %"
    case = next(one["case"] for one in results.manifest["cases"] if one["case_id"] == first)
    assert case["server"] == {"profile": "host", "workers": 8}
    assert "Where the time goes" in render(OLD, None)


def test_folder_without_its_cases(tmp_path: Path) -> None:
    folder = tmp_path / "predicted"
    shutil.copytree(OLD / "predicted", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["manifest_sha256"]
    (folder / "manifest.json").write_text(json.dumps(manifest | {"cases": {}}))
    with pytest.raises(ResultsError) as refused:
        Results.open(folder)
    assert str(refused.value) == (
        f"{folder}/manifest.json: cases is empty, so the types of its settings are unknown: run "
        "the study again, or use the version that wrote it (schema_version 1)"
    )

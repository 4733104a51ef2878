# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`strata.json`: a prediction's connections by what the client knows of its losses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import _core, study
from warifu.results import Results

STUDY = """
name = "strata"
seed = 7
trials = 10
predict_trials = 4000
device = "xeon-2-5-ghz-vm"
server = "xeon-2-5-ghz-vm"
key_store = "software"
[link]
profile = "loopback"
rtt = "60 ms"
[stack]
protocol = "https"
authentication = "mutual"
[vary]
"link.loss" = ["0 %", "5 %"]
"stack.tls" = ["1.2", "1.3"]
"""


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strata")
    (folder / "study.toml").write_text(STUDY)
    loaded = study.load(folder / "study.toml", profiles=[ROOT / "profiles"])
    manifest = study.manifest(loaded, "predicted", "run-1", "")
    _core.predict(loaded.study, folder / "predicted", json.dumps(manifest))
    return folder / "predicted"


def test_strata_make_up_all_connections(predicted: Path) -> None:
    found = json.loads((predicted / "strata.json").read_text())
    results = Results.open(predicted)
    assert list(found["cases"]) == sorted(results.cases)
    for case_id, case in found["cases"].items():
        strata = case["strata"]
        whole = results.distribution(case_id, case["metric"])
        count = sum(one["count"] for one in strata)
        assert count == case["trials"] - whole.failed
        mean = sum(one["count"] * one["mean_ns"] for one in strata) / count
        assert mean == pytest.approx(whole.mean(), rel=1e-9)


def test_strata_without_loss_are_one(predicted: Path) -> None:
    found = json.loads((predicted / "strata.json").read_text())
    results = Results.open(predicted)
    for case_id, case in found["cases"].items():
        counts = [(one["syn_timeouts"], one["retransmissions"]) for one in case["strata"]]
        if results.cases[case_id]["loss_mean"] == 0.0:
            assert counts == [(0, 0)]
        else:
            # A SYN or its answer is lost in 9.75 % of connections.
            waited = sum(one["count"] for one in case["strata"] if one["syn_timeouts"])
            assert waited / case["trials"] == pytest.approx(0.0975, abs=0.015)
            assert {(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)} <= set(counts)


def test_null_models_of_mutual_tls(predicted: Path) -> None:
    found = json.loads((predicted / "strata.json").read_text())
    results = Results.open(predicted)
    for case_id, case in found["cases"].items():
        null = case["null_models"]
        # TCP, two round trips of TLS 1.2 or one of 1.3, and the request.
        assert null["round_trips"] == {"1.2": 4.0, "1.3": 3.0}[str(results.cases[case_id]["tls"])]
        assert null["rtt_ns"] == 60_000_000
        if results.cases[case_id]["loss_mean"] == 0.0:
            both = null["round_trips"] * null["rtt_ns"] + null["computing_ns"]
            mean = results.distribution(case_id, case["metric"]).mean()
            assert both == pytest.approx(mean, rel=0.002)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`strata.json`: a prediction's connections by what the client knows of its losses."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT
from warifu import _core, study
from warifu.results import Results, ResultsDamaged
from warifu.results.strata import read_strata

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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trials": 0}, "trials is 0: expected 1 or more"),
        ({"trials": 1e308}, "trials is 1e\\+308: expected a number from 0"),
        ({"trials": 30}, "strata have 50 of 30 trials"),
        ({"strata": [{"count": 51}]}, "strata have 51 of 50 trials"),
        ({"strata": [{"count": 30}, {"count": 21, "syn_timeouts": 1}]}, "have 51 of 50 trials"),
        ({"strata": [{"variance_ns2": 1e40}]}, "variance_ns2 is 1e\\+40: expected a number"),
    ],
)
def test_strata_of_other_connections(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    stratum = {"syn_timeouts": 0, "retransmissions": 0, "count": 50, "mean_ns": 9}
    stratum |= {"variance_ns2": 1}
    models = {"round_trips": 3, "rtt_ns": 5, "computing_ns": 7}
    case: dict[str, Any] = {
        "metric": "https.establishment",
        "null_models": models,
        "trials": 50,
        "strata": [{}],
    }
    case |= change
    case["strata"] = [stratum | one for one in case["strata"]]
    content = json.dumps({"version": 1, "cases": {"x": case}}).encode()
    (tmp_path / "strata.json").write_bytes(content)
    sealed = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    with pytest.raises(ResultsDamaged, match=words):
        read_strata(tmp_path, {"files": {"strata.json": sealed}})

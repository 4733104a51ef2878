# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real DDS participants over the emulated link."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support import needs
from support.laboratory import make_dds_case, study_of
from warifu.lab import Settings, measure
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, PartResult
from warifu.lab.dds import driver
from warifu.lab.store import Part
from warifu.results import Results

pytestmark = [needs.root, needs.program("ddsperf"), needs.program("idlc")]

MS = 1_000_000
TRIALS = 5
FAST = Settings(rate_per_second=50.0, late_fraction_max=1.0, timeout_seconds=10.0)


def run(cell: Cell, trials: int = TRIALS) -> PartResult:
    with Bench(FAST) as bench:
        result = bench.run(cell, Part(cell.case_id, 0, trials, 7), lambda: False)
    assert result is not None
    return result


def sites(counts: list[Mapping[str, Any]]) -> dict[str, int]:
    return {one["function"]: one["calls"] for one in counts}


@pytest.mark.parametrize("crypto", ["none", "builtin", "warifu"])
def test_each_sample_is_answered_after_a_round_trip(crypto: str) -> None:
    columns = run(make_dds_case(stack__crypto=crypto, link__rtt=40 * MS)).trials.columns
    assert columns["failed"] == [False] * TRIALS
    for there_and_back, there in zip(columns["round_trip_ns"], columns["one_way_ns"], strict=True):
        assert there_and_back >= 40 * MS
        assert 20 * MS <= there <= there_and_back - 20 * MS
    # A busy machine may make any but the fastest late.
    assert min(columns["round_trip_ns"]) < 80 * MS
    discovery, *others = columns["discovery_ns"]
    # An announcement, its answer, and the endpoints after it.
    assert discovery > 40 * MS
    assert others == [None] * (TRIALS - 1)


def test_authentication_makes_discovery_longer() -> None:
    def discovery(crypto: str) -> int:
        record = run(make_dds_case(stack__crypto=crypto, link__rtt=60 * MS)).record
        return min(record["dds"]["discovery_ns"].values())

    # The handshake's three messages and the keys' exchange. A busy machine may make either longer,
    # and the one that must be shorter the fastest of several is.
    assert discovery("builtin") > min(discovery("none") for _ in range(3)) + 60 * MS


def test_ends_that_do_not_match_fail_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 2.0)
    loss = {"kind": "independent", "probability": 1.0}
    result = run(make_dds_case(stack__crypto="builtin", link__loss=loss))
    assert result.trials.columns["failed"] == [True] * TRIALS
    assert result.record["dds"] == {"discovery_ns": {}, "plugin": {}}


@pytest.mark.parametrize("aead", ["AES-128-GCM", "AEGIS-128L", "ChaCha20-Poly1305"])
def test_plugin_protects_what_the_governance_says(aead: str) -> None:
    cell = make_dds_case(
        stack__crypto="warifu", stack__aead=aead, stack__rtps_protection="NONE"
    )  # fmt: skip
    result = run(cell)
    assert result.trials.columns["failed"] == [False] * TRIALS
    for end in ("client", "server"):
        counted = sites(result.record["dds"]["plugin"][end])
        assert counted["encode_serialized_payload"] == TRIALS
        assert counted["decode_serialized_payload"] == TRIALS
        assert counted["encode_datawriter_submessage"] >= 2 * TRIALS
        assert "encode_rtps_message" not in counted
        refused = sum(one["refused"] for one in result.record["dds"]["plugin"][end])
        assert refused == 0


def test_sample_that_was_lost_is_sent_again_and_counts() -> None:
    loss = {"kind": "independent", "probability": 0.1}
    result = run(make_dds_case(link__loss=loss, link__rtt=40 * MS), trials=30)
    link = result.record["link"]
    assert link["a_to_b"]["dropped_by_loss"] + link["b_to_a"]["dropped_by_loss"] > 0
    columns = result.trials.columns
    assert columns["failed"] == [False] * 30
    # What fills a hole was asked for: a round trip more.
    assert max(columns["round_trip_ns"]) >= 80 * MS


def test_study_of_dds_becomes_observations(tmp_path: Path) -> None:
    cells = [make_dds_case(), make_dds_case(stack__crypto="warifu", stack__aead="AEGIS-256")]
    summary = measure(study_of(*cells), tmp_path / "measured", trials=4, settings=FAST)
    assert summary.complete
    results = Results.open(tmp_path / "measured")
    for cell in cells:
        frame = results.rows(cell.case_id)
        by_metric = {
            metric: frame.filter(frame["metric"] == metric)["value"].to_list()
            for metric in ("dds.round_trip", "dds.one_way", "dds.discovery")
        }
        assert [len(values) for values in by_metric.values()] == [4, 4, 1]
        assert all(value > 0 for values in by_metric.values() for value in values)
        assert set(frame["method"]) == {"emulated"}
    secured = results.cases[cells[1].case_id]
    assert (secured["dds_crypto"], secured["dds_aead"]) == ("warifu", "AEGIS-256")
    assert secured["rtps_protection"] == "SIGN"
    manifest = json.loads((tmp_path / "measured" / "manifest.json").read_text())
    assert "Cyclone DDS 0.10" in manifest["tools"]["cyclonedds-probe"]

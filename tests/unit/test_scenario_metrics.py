# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What several connections of a trial take together."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from support.studies import MANIFEST, PROFILES, host
from support.synthetic import change_manifest
from warifu import _core
from warifu.compare.case import compare_case
from warifu.compare.require import Judged, judge_all, requirements
from warifu.report.summaries import half_table
from warifu.results import Results

STUDY = """
name = "gateway"
seed = 7
trials = 50
predict_trials = 6000
device = "host"
server = "host"
stack = "https/tls1.3"
key_store = "iot-safe-sakomoto"
link = { profile = "loopback", rtt = "60 ms", loss = "2 %" }
pattern = { concurrent = 4 }

[require]
"""


def several(require: str = "", **overrides: str) -> _core.Study:
    """A study whose device opens four connections at once."""
    pairs = [(path.replace("__", "."), value) for path, value in overrides.items()]
    return _core.Study.parse(STUDY + require, "gateway.toml", [*PROFILES, host()], pairs)


def whole_metrics(folder: Path) -> pl.DataFrame:
    """The rows of whole metrics, the connection null for those of a scenario."""
    rows = pl.read_parquet(folder / "observations" / "*.parquet")
    rows = rows.filter(pl.col("stage").is_null())
    return rows.select(pl.col("metric").cast(pl.String), "connection", "trial", "value", "weight")


def test_scenario_lasts_as_long_as_its_slowest_connection(tmp_path: Path) -> None:
    _core.predict(several(predict_trials="300"), tmp_path, MANIFEST, keep="trials")
    rows = whole_metrics(tmp_path)
    each = rows.filter(pl.col("metric") == "https.establishment").group_by("trial")
    slowest = dict(each.agg(pl.col("value").max()).iter_rows())
    scenarios = rows.filter(pl.col("metric") == "scenario.duration")
    assert scenarios.height == 300
    assert scenarios["connection"].is_null().all()
    # All begin at once, but for the time that the loop is busy with the others.
    for trial, value in scenarios.select("trial", "value").iter_rows():
        assert value >= slowest[trial]
        assert value - slowest[trial] < 5e6
    together = rows.filter(pl.col("metric") == "bytes.link").group_by("trial")
    bytes_link = dict(together.agg(pl.col("value").sum()).iter_rows())
    sums = rows.filter(pl.col("metric") == "scenario.bytes_link")
    assert dict(sums.select("trial", "value").iter_rows()) == bytes_link


def test_each_trial_counts_once_in_a_distribution_of_scenarios(tmp_path: Path) -> None:
    _core.predict(several(), tmp_path, MANIFEST)
    results = Results.open(tmp_path)
    (case_id,) = results.cases
    scenarios = results.distribution(case_id, "scenario.duration")
    assert (scenarios.n, scenarios.independent) == (6_000, 6_000)
    connections = results.distribution(case_id, "https.establishment")
    assert (connections.n, connections.independent) == (24_000, 6_000)
    assert scenarios.quantile(0.5) > connections.quantile(0.5)


def test_failed_connection_fails_its_scenario(tmp_path: Path) -> None:
    _core.predict(several(link__loss="60 %", predict_trials="500"), tmp_path, MANIFEST)
    results = Results.open(tmp_path)
    (case_id,) = results.cases
    connections = results.failed_share(case_id)
    scenarios = results.failed_share(case_id, "scenario.duration")
    assert 0.0 < connections < scenarios
    assert results.distribution(case_id, "scenario.failed").n == 500
    assert results.distribution(case_id, "scenario.duration").failed == scenarios * 500


def judged(folder: Path, require: str) -> list[Judged]:
    """The verdicts of a study's bounds."""
    study = several(require)
    _core.predict(study, folder, MANIFEST)
    return judge_all(Results.open(folder), requirements(study.require))


def test_bounds_on_scenarios_are_judged(tmp_path: Path) -> None:
    require = '"scenario.duration.p95" = "< 20 s"\n"scenario.failed.mean" = "< 1 %"\n'
    duration, failed = judged(tmp_path, require)
    assert (str(duration.verdict), str(failed.verdict)) == ("pass", "pass")
    # Four signatures, one after the other.
    assert 1_800e6 < duration.value < 20_000e6


def test_bound_on_scenarios_of_which_a_prediction_has_none_names_them(tmp_path: Path) -> None:
    _core.predict(several(predict_trials="50"), tmp_path, MANIFEST)
    # As a version wrote it that had connections alone.
    (part,) = (tmp_path / "observations").iterdir()
    rows = pl.read_parquet(part).filter(~pl.col("metric").cast(pl.String).str.contains("scenario"))
    rows.write_parquet(part)
    change_manifest(tmp_path, files={})
    bound = ("scenario.duration", "p95", "<", 20e9, "scenario.duration.p95 < 20 s")
    (one,) = judge_all(Results.open(tmp_path), requirements([bound]))
    assert str(one.verdict) == "undecided"
    assert one.remark == "no scenario gave a value of scenario.duration"


def test_bound_on_the_scenario_of_one_connection_is_refused() -> None:
    with pytest.raises(_core.WarifuError, match=r"set pattern\.concurrent to 2 or more"):
        several('"scenario.duration.p95" = "< 20 s"\n', pattern__concurrent="1")


def test_more_connections_than_memory_holds_are_refused() -> None:
    with pytest.raises(
        _core.WarifuError, match=r"predict_trials is 6000: with 65535 .* at most 305"
    ):
        several(pattern__concurrent="65535")


def test_table_of_several_connections_has_their_whole_time(tmp_path: Path) -> None:
    _core.predict(several(predict_trials="300"), tmp_path, MANIFEST)
    table = half_table(Results.open(tmp_path))
    headings = [column.head for column in table.columns]
    assert headings[6:8] == ["all P50", "all P95"]
    (record,) = table.records
    assert record["scenario.duration_p95_ns"] >= record["scenario.duration_p50_ns"] > 1_800e6


LONG = """
name = "download"
seed = 7
trials = 50
device = "host"
server = "host"
stack = "https/tls1.3"
link = { profile = "loopback", rtt = "60 ms", rate = "1 Mbit/s" }
pattern = { response_body = "48 KiB" }
"""


def test_end_of_a_long_response_is_compared_without_a_gate(tmp_path: Path) -> None:
    study = _core.Study.parse(LONG, "download.toml", [*PROFILES, host()])
    for half in ("predicted", "measured"):
        manifest = json.loads(MANIFEST) | {"half": half, "run_id": half}
        _core.predict(study, tmp_path / half, json.dumps(manifest))
    for part in (tmp_path / "measured").glob("observations/*.parquet"):
        pl.read_parquet(part).with_columns(method=pl.lit("emulated")).write_parquet(part)
    change_manifest(tmp_path / "measured", files={}, trials=None)
    halves = [Results.open(tmp_path / half) for half in ("predicted", "measured")]
    (case_id,) = halves[0].cases
    found = compare_case(halves[0], halves[1], case_id)
    assert found.later == ["https.response_complete"]
    first, complete = found.row("p50"), found.row("p50", "https.response_complete")
    assert first is not None and complete is not None
    assert first.gate is not None
    assert complete.gate is None
    # 32 KiB are left after the first record: 262 ms at 1 Mbit/s.
    assert 262e6 < complete.predicted - first.predicted < 300e6

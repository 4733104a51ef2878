# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Strata and null models of a study, held-out cells, and conditions that keep from judging."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from support.synthetic import Cell, Half, change_manifest
from warifu.compare.case import sittings_ns
from warifu.compare.comparison import CaseComparison, Comparison
from warifu.compare.gates import Verdict
from warifu.compare.join import compare, compare_folder
from warifu.compare.store import load, save
from warifu.report.accuracy import overview_table
from warifu.report.accuracy_details import conditions_table, null_table
from warifu.results import Results, ResultsDamaged, archive
from warifu.results.strata import StrataOfCase, read_strata

LOSSY, FREE = Cell(loss=0.02), Cell()


def parts(count: int, trials: int, **more: object) -> list[dict[str, Any]]:
    each = trials // count
    return [{"first_trial": at * each, "trials": each, "seed": 1, **more} for at in range(count)]


def measured(folder: Path, cell: Cell, n: int, scale: float = 1.0, **more: object) -> Path:
    """The measured half in ten parts, with SYN timeouts and retransmissions of each trial."""
    cells = {cell.case_id: {"trials": n, "parts": parts(10, n, **more)}}
    path = Half("measured", [cell], n, 2, scale, manifest={"cells": cells}).write(folder)
    (file,) = (path / "observations").iterdir()
    rows = pl.read_parquet(file)
    whole = rows.filter(pl.col("metric") == "https.establishment")
    base = 3 * 60e6 * scale
    late = whole["value"].to_numpy() > base + 30e6
    more_rows = [
        whole.with_columns(pl.lit(name).alias("metric"), pl.lit("1").alias("unit"),
                           pl.Series("value", values))
        for name, values in (
            ("tcp.syn_timeouts", np.zeros(n)),
            ("tcp.client_retransmissions", late.astype(np.float64)),
        )
    ]  # fmt: skip
    pl.concat([rows, *more_rows]).write_parquet(file)
    return path


def strata_json(half: Results, case_id: str) -> dict[str, Any]:
    """The strata of a prediction by the same rule."""
    times = half.trials(case_id).values
    late = times > 3 * 60e6 + 30e6
    strata = [
        {"syn_timeouts": 0, "retransmissions": int(again), "count": float(of.size),
         "mean_ns": float(of.mean()), "variance_ns2": float(of.var())}
        for again, of in ((False, times[~late]), (True, times[late])) if of.size
    ]  # fmt: skip
    models = {"round_trips": 3.0, "rtt_ns": 60_000_000, "computing_ns": 1.8e6}
    case = {"metric": "https.establishment", "null_models": models, "trials": times.size}
    return {"version": 1, "cases": {case_id: case | {"strata": strata}}}


def seal(path: Path, value: object) -> None:
    """Writes `strata.json` as the runner does, sealed by the manifest."""
    content = json.dumps(value).encode()
    (path / "strata.json").write_bytes(content)
    files = {"strata.json": {"bytes": len(content), "sha256": sha256(content).hexdigest()}}
    for part in (path / "observations").iterdir():
        seen = part.read_bytes()
        name = f"observations/{part.name}"
        files[name] = {"bytes": len(seen), "sha256": sha256(seen).hexdigest()}
    change_manifest(path, files=files)


def compared(
    folder: Path, cell: Cell, n: int = 20_000, scale: float = 1.0, **more: object
) -> Comparison:
    path = Half("predicted", [cell], 100_000, seed=1).write(folder)
    seal(path, strata_json(Results.open(path), cell.case_id))
    measured(folder, cell, n, scale, **more)
    return compare_folder(folder)


def verdicts(case: CaseComparison, words: str) -> list[Verdict | None]:
    return [row.verdict for row in case.rows if row.statistic.startswith(words)]


def test_strata_of_a_perfect_prediction_pass(tmp_path: Path) -> None:
    comparison = compared(tmp_path, LOSSY)
    (case,) = comparison.cases
    assert verdicts(case, "share: ") == [Verdict.PASS] * 2
    means = {row.statistic: row.verdict for row in case.rows if row.statistic.startswith("mean: ")}
    assert means["mean: SYN again 0, sent again 0"] is Verdict.PASS
    assert case.missing == ["nothing was replayed"]
    save(comparison, tmp_path)
    assert load(tmp_path) == comparison


def test_mean_of_a_stratum_that_is_off_by_twice_its_gate_fails(tmp_path: Path) -> None:
    """What the lottery hides: connections without a loss are 4.1 % slower than predicted."""
    (case,) = compared(tmp_path, LOSSY, scale=1.0 / (1.0 - 0.041)).cases
    row = case.row("mean: SYN again 0, sent again 0")
    assert row is not None
    assert row.verdict is Verdict.FAIL


def test_a_measurement_without_strata_says_so(tmp_path: Path) -> None:
    path = Half("predicted", [LOSSY], 20_000, seed=1).write(tmp_path)
    seal(path, strata_json(Results.open(path), LOSSY.case_id))
    Half("measured", [LOSSY], 500, seed=2).write(tmp_path)
    comparison = compare_folder(tmp_path)
    (case,) = comparison.cases
    assert not verdicts(case, "share: ")
    why = "SYN timeouts and retransmissions were not measured"
    assert why in case.missing
    assert any(why in note for note in overview_table(comparison).notes)


def test_null_models_stand_beside_the_prediction(tmp_path: Path) -> None:
    comparison = compared(tmp_path, FREE)
    (case,) = comparison.cases
    found = {(one.model, one.statistic): one for one in case.null_models}
    assert len(found) == 4
    ours, without = case.row("p50"), found["k x RTT", "p50"]
    assert ours is not None
    assert without.error_ns == pytest.approx(180e6 - ours.measured)
    assert without.error_ns == pytest.approx(-1.8e6, abs=0.05e6)
    assert without.verdict.endswith("times nearer")
    table = null_table(comparison)
    assert [row[2] for row in table.cells[:2]] == ["k x RTT", "k x RTT + computing"]


def test_a_prediction_that_a_null_model_beats_is_told(tmp_path: Path) -> None:
    """Measured 1 % faster: three round trips alone are nearer than our prediction."""
    (case,) = compared(tmp_path, FREE, scale=0.99).cases
    assert {one.verdict for one in case.null_models if one.model == "k x RTT"} == {
        "no better than it"
    }


def test_a_cell_that_calibrated_the_prediction_is_not_judged(tmp_path: Path) -> None:
    for half, seed in (("predicted", 1), ("measured", 2)):
        Half(half, [FREE, LOSSY], 4_000, seed=seed).write(tmp_path)
    predicted = Results.open(tmp_path / "predicted")
    predicted.manifest["calibration_case_ids"] = [FREE.case_id]
    comparison = compare(predicted, Results.open(tmp_path / "measured"))
    free, lossy = comparison.cases
    assert free.verdict is None
    assert free.not_judged == "was calibrated on this cell"
    assert {row.no_statement for row in free.rows if row.gate} == {free.not_judged}
    # The figures stay.
    assert free.row("p50") is not None
    assert lossy.not_judged == ""
    notes = overview_table(comparison).notes
    assert f"Not judged: was calibrated on this cell ({free.label})." in notes


@pytest.mark.parametrize(
    ("change", "judged"),
    [
        ({}, False),
        ({"protocol": "coap"}, True),
        ({"rtt": 20_000_000}, True),
        ({"session": "resumed"}, True),
        ({"group": "x25519"}, True),
    ],
)
def test_a_case_of_a_calibrated_cell_is_not_judged(
    tmp_path: Path, change: dict[str, object], judged: bool
) -> None:
    """Other losses, bodies or links make another case, but not another cell."""
    for half, seed in (("predicted", 1), ("measured", 2)):
        Half(half, [FREE, LOSSY], 4_000, seed=seed).write(tmp_path)
    predicted = Results.open(tmp_path / "predicted")
    known = {"case_id": "0", "protocol": "https", "rtt": 60_000_000, "tls": "1.3"}
    predicted.manifest["calibration_cases"] = [known | {"session": "full"} | change]
    for case in compare(predicted, Results.open(tmp_path / "measured")).cases:
        assert (case.not_judged == "") == judged


@pytest.mark.parametrize(
    ("server", "more", "judged"),
    [(0.054, {}, True), (0.06, {}, False), (0.06, {"alone": True}, True)],
)
def test_a_cell_whose_connections_waited_for_each_other_is_not_judged(
    tmp_path: Path, server: float, more: dict[str, object], judged: bool
) -> None:
    busy = {"client": 0.02, "server": server}
    (case,) = compared(tmp_path, FREE, 4_000, busy=busy, **more).cases
    assert (case.verdict is not None) == judged
    assert case.not_judged == (
        ""
        if judged
        else "the server was busy for 6.0 % of the time, 5.5 % are allowed: connections waited "
        "for each other"
    )


def test_one_part_beside_which_others_worked_is_enough(tmp_path: Path) -> None:
    cells = {FREE.case_id: {"trials": 4_000, "parts": [
        {**one, "processor_shares": {"others": 0.3 if at == 3 else 0.001, "stolen": 0.0}}
        for at, one in enumerate(parts(10, 4_000))
    ]}}  # fmt: skip
    Half("measured", [FREE], 4_000, 2, manifest={"cells": cells}).write(tmp_path)
    Half("predicted", [FREE], 20_000, seed=1).write(tmp_path)
    (case,) = compare_folder(tmp_path).cases
    assert case.not_judged == "other work took 30.0 % of the processors, 5 % are allowed"


@pytest.mark.parametrize(("others", "judged"), [(0.04, True), (0.06, False)])
def test_a_cell_beside_which_others_worked_is_not_judged(
    tmp_path: Path, others: float, judged: bool
) -> None:
    shares = {"others": others, "stolen": 0.001}
    comparison = compared(tmp_path, FREE, 4_000, processor_shares=shares)
    (case,) = comparison.cases
    assert (case.verdict is not None) == judged
    assert case.not_judged == (
        "" if judged else "other work took 6.1 % of the processors, 5 % are allowed"
    )
    (row,) = conditions_table(comparison).records
    assert row["others"] == pytest.approx(others + 0.001)


def test_conditions_of_a_cell(tmp_path: Path) -> None:
    busy = {"client": 0.02, "server": 0.04}
    path = measured(tmp_path, FREE, 2_000, busy=busy, start_late_ns=1_250_000)
    Half("predicted", [FREE], 20_000, seed=1).write(tmp_path)
    change_manifest(path, rejections=[{"case_id": FREE.case_id, "reasons": []}, {"case_id": "x"}])
    comparison = compare_folder(tmp_path)
    (row,) = conditions_table(comparison).cells
    assert row[1:7] == ["10", "1", "1", "1.25", "4.0 %", "0.0 %"]


def test_two_sittings_of_a_cell_widen_the_gate_of_the_spread(tmp_path: Path) -> None:
    """The machine of the second sitting has a tail twice as long."""
    n = 8_000
    cells = {FREE.case_id: {"trials": n, "parts": [
        {**one, "sitting": int(at >= 5)} for at, one in enumerate(parts(10, n))
    ]}}  # fmt: skip
    path = Half("measured", [FREE], n, 2, manifest={"cells": cells}).write(tmp_path)
    (file,) = (path / "observations").iterdir()
    second = (pl.col("trial") >= n // 2) & (pl.col("metric") == "https.establishment")
    middle = 181.8e6
    value = pl.when(second).then(middle + (pl.col("value") - middle) * 2.0)
    rows = pl.read_parquet(file)
    rows.with_columns(value.otherwise(pl.col("value")).alias("value")).write_parquet(file)
    Half("predicted", [FREE], 20_000, seed=1).write(tmp_path)
    row = compare_folder(tmp_path).cases[0].row("p95 - p50")
    assert row is not None
    assert row.gate == "what two sittings differ by"
    assert row.width is not None
    assert row.width > 0.3 * row.measured


def test_sittings_that_differ_by_chance_alone_widen_no_gate() -> None:
    """Each sitting draws of one law; the difference of two is the trials' own noise."""
    rng = np.random.default_rng(21)
    part, sitting = np.arange(4_000) // 400, np.arange(4_000) // 2_000
    same = []
    for _ in range(60):
        values = 180e6 + rng.gamma(2.0, 0.5e6, 4_000)
        same.append(sittings_ns(sitting, part, values)["p95"])
        # A sitting that was cut short tells nothing.
        short = (np.arange(4_000) >= 3_700).astype(np.int64)
        assert sittings_ns(short, part, values) == {"p95": 0.0, "p99": 0.0}
    # 15 % of the distance is some 0.27 ms.
    assert float(np.median(same)) < 0.05e6
    wider = [
        sittings_ns(sitting, part, 180e6 + rng.gamma(2.0, 0.5e6, 4_000) * (1.0 + sitting))["p95"]
        for _ in range(20)
    ]
    assert 1.2e6 < float(np.median(wider)) < 2.4e6


def test_rare_strata_that_are_predicted_never_to_occur_are_judged(tmp_path: Path) -> None:
    """One in a hundred measured connections lost its SYN; the prediction knows of none."""
    path = Half("predicted", [LOSSY], 100_000, seed=1).write(tmp_path)
    seal(path, strata_json(Results.open(path), LOSSY.case_id))
    folder = measured(tmp_path, LOSSY, 10_000)
    (file,) = (folder / "observations").iterdir()
    lost = (pl.col("metric") == "tcp.syn_timeouts") & (pl.col("trial") % 100 == 0)
    value = pl.when(lost).then(1.0).otherwise(pl.col("value"))
    pl.read_parquet(file).with_columns(value.alias("value")).write_parquet(file)
    row = compare_folder(tmp_path).cases[0].row("share: all others")
    assert row is not None
    assert row.measured == pytest.approx(0.01)
    assert (row.predicted, row.verdict) == (0.0, Verdict.FAIL)


def test_an_archive_keeps_what_the_gates_need(tmp_path: Path) -> None:
    """Parts, strata and null models; every verdict and error comes out again."""
    busy = {"client": 0.02, "server": 0.04}
    first = compared(tmp_path / "first", LOSSY, 5_000, busy=busy)
    archive.archive(tmp_path / "first", tmp_path / "kept.parquet")
    archive.restore(tmp_path / "kept.parquet", tmp_path / "again")
    again = compare_folder(tmp_path / "again")
    (one,), (other,) = first.cases, again.cases
    assert other.conditions == one.conditions
    assert [row.statistic for row in other.rows] == [row.statistic for row in one.rows]
    for before, after in zip(one.rows, other.rows, strict=True):
        assert after.verdict == before.verdict, before.statistic
        if math.isfinite(before.interval.half_width) and before.metric == one.metric:
            scale = 1.0 if before.unit == "1" else before.measured
            half = before.interval.half_width
            assert after.interval.half_width == pytest.approx(half, rel=0.02, abs=1e-5 * scale)
    # To 1 us, which is a twentieth of the smallest of these errors.
    nearer = [model.times_nearer for model in one.null_models]
    assert [model.times_nearer for model in other.null_models] == pytest.approx(nearer, rel=0.2)


def read(folder: Path, value: object) -> dict[str, StrataOfCase]:
    content = json.dumps(value).encode()
    (folder / "strata.json").write_bytes(content)
    files = {"strata.json": {"bytes": len(content), "sha256": sha256(content).hexdigest()}}
    return dict(read_strata(folder, {"files": files}))


def case_of(**changes: object) -> dict[str, Any]:
    stratum = {
        "syn_timeouts": 0,
        "retransmissions": 2,
        "count": 5,
        "mean_ns": 1.5,
        "variance_ns2": 0,
    }
    models = {"round_trips": 4, "rtt_ns": 60_000_000, "computing_ns": 3.1e6}
    case = {"metric": "m", "null_models": models, "trials": 5, "strata": [stratum], "cdf": None}
    return {"version": 1, "cases": {"c": case | changes}}


def test_strata_are_read_as_written(tmp_path: Path) -> None:
    found = read(tmp_path, case_of())["c"]
    assert found.strata[0, 2].count == 5.0
    assert found.null_models.with_computing_ns == pytest.approx(243.1e6)
    assert read_strata(tmp_path, {"files": {}}) == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"version": 2, "cases": {}}, "version is 2: expected 1"),
        ({"cases": {}}, "has no version or cases"),
        (case_of(trials=-1), "cases.c.trials is -1: expected a number from 0 on"),
        (case_of(trials=True), "cases.c.trials is True: expected a number from 0 on"),
        (case_of(strata=[{"syn_timeouts": 3}]), r"strata\[0\].syn_timeouts is 3: expected 0 to 2"),
        (case_of(strata=[7]), r"strata\[0\] is no table"),
        (case_of(null_models={}), "null_models.round_trips is None"),
    ],
)
def test_damaged_strata_are_refused_in_one_line(tmp_path: Path, value: object, said: str) -> None:
    with pytest.raises(ResultsDamaged, match=said) as refused:
        read(tmp_path, value)
    assert "\n" not in str(refused.value)

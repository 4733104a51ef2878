# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ten studies on the profiles that come with Warifu: their predictions do not change unnoticed.

Each study in `goldens/predictions/` is predicted trial by trial, and the SHA-256 of its
observations stands in `goldens/predictions.json`. What is hashed is what a prediction says (which
case, trial and connection, which metric and stage, how much), not how it is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import polars as pl
import pytest

from support.paths import ROOT
from warifu import _core, study

STUDIES = ROOT / "tests" / "goldens" / "predictions"
GOLDEN = ROOT / "tests" / "goldens" / "predictions.json"
LATER = [
    "https.response_complete",
    "scenario.duration",
    "scenario.bytes_link",
    "scenario.failed",
    "tcp.syn_timeouts",
    "tcp.client_retransmissions",
]
"""Metrics that came after the hashes; they have hashes of their own."""

NAMES = sorted(path.stem for path in STUDIES.glob("*.toml"))


def observations(name: str, folder: Path) -> pl.DataFrame:
    """Every trial of a study, in an order of its own."""
    loaded = study.load(STUDIES / f"{name}.toml", profiles=[ROOT / "profiles"])
    manifest = study.manifest(loaded, "predicted", "run-1", "")
    _core.predict(loaded.study, folder, json.dumps(manifest), keep="trials")
    place = {case.id: index for index, case in enumerate(loaded.study.cases)}
    rows = pl.read_parquet(folder / "observations" / "*.parquet")
    rows = rows.with_columns(
        pl.col("case_id").cast(pl.String).replace_strict(place, return_dtype=pl.Int64).alias("case")
    )
    # The whole metric, whose stage is null, was hashed by this word from the first.
    rows = rows.with_columns(pl.col("stage").fill_null("all"))
    return rows.sort("case", "trial", "connection", "metric", "stage")


def digest(rows: pl.DataFrame) -> str:
    """The SHA-256 of what the rows say."""
    columns = ["case", "trial", "connection", "metric", "stage", "value", "weight", "seed"]
    hashed = hashlib.sha256()
    for row in rows.select(columns).iter_rows():
        case, trial, connection, metric, stage, value, weight, seed = row
        line = f"{case} {trial} {connection} {metric} {stage} {value:.0f} {weight:.0f} {seed}\n"
        hashed.update(line.encode())
    return hashed.hexdigest()


def test_there_are_ten() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_predicted_as_before(name: str, tmp_path: Path) -> None:
    rows = observations(name, tmp_path / name)
    is_later = pl.col("metric").cast(pl.String).is_in(LATER)
    first, later = rows.filter(~is_later), rows.filter(is_later)
    found: dict[str, object] = {"rows": first.height, "sha256": digest(first)}
    if later.height:
        found |= {"later_rows": later.height, "later_sha256": digest(later)}
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("WARIFU_UPDATE_GOLDENS"):
        GOLDEN.write_text(json.dumps({**golden, name: found}, indent=1, sort_keys=True) + "\n")
        return
    assert found == golden.get(name)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Rows of schema version 1, whose settings were all text, as rows of the current version.

No setting is recovered from that text: the types come from each case's canonical form, which the
manifest holds (crates/core/results/src/version_1.rs refuses one without).
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

import warifu._core as _core

#: The types of columns, by the words of `_core.columns`.
POLARS_TYPES = {
    "text": pl.String,
    "bool": pl.Boolean,
    "u16": pl.UInt16,
    "u32": pl.UInt32,
    "u64": pl.UInt64,
    "f64": pl.Float64,
}


def upgraded(rows: pl.LazyFrame, manifest: dict[str, Any]) -> pl.LazyFrame:
    """The same rows with every column of the current schema."""
    every = [(name, POLARS_TYPES[kind]) for name, kind, _, _ in _core.columns()]
    settings = [
        {"case_id": case["case_id"], **_core.settings(json.dumps(case["case"]))}
        for case in manifest["cases"]
    ]
    of_settings = {name: kind for name, kind in every if name in settings[0]}
    cases = pl.LazyFrame(settings, schema=of_settings)
    evidence = {case["case_id"]: case["evidence"] for case in manifest["cases"]}
    case_id, stage = pl.col("case_id").cast(pl.String), pl.col("stage").cast(pl.String)
    kept = ("study", "run_id", "metric", "unit")
    rows = rows.select(
        case_id,
        pl.col(kept).cast(pl.String),
        pl.when(stage != "all").then(stage).alias("stage"),
        pl.lit(None, pl.String).alias("step"),
        pl.lit(None, pl.UInt64).alias("from_ns"),
        pl.lit(None, pl.UInt64).alias("until_ns"),
        pl.lit(manifest["methods"][0]).alias("method"),
        case_id.replace_strict(evidence, return_dtype=pl.String).alias("evidence"),
        pl.col("connection", "trial", "value", "weight", "seed"),
        pl.lit(value=False).alias("exact"),
    )
    joined = rows.join(cases, on="case_id", how="left", maintain_order="left")
    return joined.select(name for name, _ in every)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A measured half names the prediction that was there before it, and is believed by its seal."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from support.synthetic import Cell, Half, change_manifest
from warifu.compare.join import compare_folder
from warifu.results import archive
from warifu.results.registration import registered

FREE = Cell()


def folder(place: Path) -> Path:
    predicted = Half("predicted", [FREE], 2_000, seed=1).write(place)
    known = registered(predicted)
    assert known is not None
    Half("measured", [FREE], 400, seed=2, manifest={"registered": known}).write(place)
    return place


def test_a_prediction_that_was_there_before_is_registered(tmp_path: Path) -> None:
    assert compare_folder(folder(tmp_path)).registered


def test_a_prediction_that_was_changed_under_its_name_is_not(tmp_path: Path) -> None:
    change_manifest(folder(tmp_path) / "predicted", finished="2026-11-21T06:00:00Z")
    assert not compare_folder(tmp_path).registered


def test_a_prediction_that_ended_after_the_measurement_was_begun_is_not(tmp_path: Path) -> None:
    late = Half("predicted", [FREE], 2_000, seed=1).write(tmp_path)
    change_manifest(late, finished="2099-01-01T00:00:00Z")
    known = registered(late)
    Half("measured", [FREE], 400, seed=2, manifest={"registered": known}).write(tmp_path)
    assert not compare_folder(tmp_path).registered


def test_another_prediction_is_not(tmp_path: Path) -> None:
    folder(tmp_path)
    part = next((tmp_path / "predicted").glob("observations/*.parquet"))
    pl.read_parquet(part).with_columns(run_id=pl.lit("another")).write_parquet(part)
    change_manifest(tmp_path / "predicted", run_id="another")
    assert not compare_folder(tmp_path).registered


def test_one_that_nothing_names_is_not(tmp_path: Path) -> None:
    Half("predicted", [FREE], 2_000, seed=1).write(tmp_path)
    Half("measured", [FREE], 400, seed=2).write(tmp_path)
    assert not compare_folder(tmp_path).registered


def test_an_archive_keeps_what_was_checked(tmp_path: Path) -> None:
    for name, changed in (("same", False), ("changed", True)):
        place = folder(tmp_path / name)
        if changed:
            change_manifest(place / "predicted", finished="2026-11-21T06:00:00Z")
        archive.archive(place, tmp_path / f"{name}.parquet")
        archive.restore(tmp_path / f"{name}.parquet", tmp_path / f"{name}-again")
        assert compare_folder(tmp_path / f"{name}-again").registered is not changed

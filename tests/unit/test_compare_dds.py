# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Verdicts on predictions of DDS whose errors are known."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from support.paths import ROOT
from support.synthetic import Cell, Half, change_manifest
from warifu.calibrate import dds as calibration
from warifu.cli import dds_comparison
from warifu.compare import dds
from warifu.compare.comparison import CompareError
from warifu.compare.gates import Verdict
from warifu.report.table import Format, render

PROFILE = """\
[[primitive]]
name = "aead.seal.AEGIS-256.keyed"
per_byte = "0.5 ns"
[[primitive]]
name = "aead.open.AEGIS-256.keyed"
per_byte = "0.7 ns"
"""
PLAIN_NS = 200_000.0


@dataclass(frozen=True)
class DdsCell(Cell):
    """A length under AEGIS-256, or without security."""

    sample: int = 1_000
    crypto: str = "warifu"
    truth_ns: float = 300_000.0

    @property
    def case_id(self) -> str:
        return f"{self.sample:08x}{len(self.crypto):08x}"

    @property
    def columns(self) -> dict[str, Any]:
        secured = {
            "dds_aead": "AEGIS-256",
            "data_protection": "ENCRYPT",
            "metadata_protection": "ENCRYPT",
            "rtps_protection": "NONE",
        }
        both = {
            "device": "this-host",
            "server": "this-host",
            "link": "loopback",
            "loss_model": "none",
            "loss_mean": 0.0,
            "protocol": "dds",
            "concurrent": 1,
            "response_body": self.sample,
            "dds_crypto": self.crypto,
        }
        return both if self.crypto == "none" else both | secured

    def establishments(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        truth = PLAIN_NS if self.crypto == "none" else self.truth_ns
        return {"client_compute": truth * rng.gamma(400.0, 1 / 400.0, n)}


@dataclass
class DdsHalf(Half):
    """One way alone; each cell's times are multiplied by a factor of its own."""

    factors: Sequence[float] = ()

    def _rows(self, cell: Cell, run_id: str, rng: np.random.Generator) -> pl.DataFrame:
        rows = super()._rows(cell, run_id, rng)
        factor = self.factors[self.cells.index(cell) % len(self.factors)] if self.factors else 1.0
        whole = (pl.col("metric") == "https.establishment") & pl.col("stage").is_null()
        return rows.filter(whole).with_columns(
            pl.lit(dds.METRIC).alias("metric"), pl.col("value") * factor
        )


def study(
    folder: Path,
    factors: Sequence[float],
    lengths: int = 8,
    samples: int = 800,
    text: str = PROFILE,
) -> Path:
    """A study whose predictions are those factors off."""
    cells: list[Cell] = [DdsCell(sample=1_000 * k) for k in range(1, lengths + 1)]
    cells += [DdsCell(sample=1_000 * k, crypto="none") for k in range(1, lengths + 1)]
    profile = {"kind": "device", "name": "this-host", "text": text}
    profile["sha256"] = sha256(text.encode()).hexdigest()
    manifest = {"profiles": [profile]}
    DdsHalf(
        "predicted", cells, 2_000, 1, client_bytes=(1,), manifest=manifest, factors=factors
    ).write(folder)
    DdsHalf("measured", cells, samples, 2, client_bytes=(1,)).write(folder)
    return folder


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ((1.03, 0.96), Verdict.PASS),
        ((1.25, 0.8), Verdict.FAIL),
        ((1.02, 1.35), Verdict.UNDECIDED),
    ],
)
def test_verdict_by_the_interval(
    tmp_path: Path, factors: tuple[float, ...], verdict: Verdict
) -> None:
    found = dds.compare_folder(study(tmp_path, factors))
    assert found.verdict is verdict
    assert len(found.cells) == 8
    low, high = found.error.interval
    assert low <= found.error.value <= high
    errors = sorted(abs(factor - 1.0) for factor in factors)
    assert errors[0] - 0.02 < found.error.value < errors[-1] + 0.02


def test_few_cells_decide_nothing(tmp_path: Path) -> None:
    found = dds.compare_folder(study(tmp_path, (1.0,), lengths=5))
    assert found.verdict is Verdict.UNDECIDED
    assert "5 cells are too few" in found.why_undecided


def test_null_model_is_plain_and_bytes_by_the_ciphers_speed(tmp_path: Path) -> None:
    found = dds.compare_folder(study(tmp_path, (1.0,)))
    for cell in found.cells:
        sample = int(cell.case_id[:8], 16)
        # Two layers, each sealed at 0.5 and opened at 0.7 ns a byte.
        assert cell.null == pytest.approx(PLAIN_NS + 2 * 1.2 * sample, rel=0.02)
    assert found.nearer == (8, 8)
    assert found.null is not None
    assert found.null.value > 0.25


@pytest.mark.parametrize(
    "text",
    [
        "primitive = 3",
        "primitive = [3, [], 'x']",
        "primitive = " + "[" * 20_000,
        "[[primitive]]\nname = 3",
        *(
            PROFILE.replace('"0.5 ns"', value).replace('"0.7 ns"', value)
            for value in (
                '"x"', '"1 ns to 2 ns"', '"3 cycles"', '"nan ns"', '"inf ns"', '"-1 ns"', "3",
                '{ value = "1 ns to 2 ns" }', "{ value = 3 }", "{}", "9" * 5_000,
            )
        ),
    ],
    ids=lambda text: text[-40:],
)  # fmt: skip
def test_profile_that_says_no_plain_speed_gives_no_null_model(tmp_path: Path, text: str) -> None:
    """Whatever a manifest holds for one."""
    found = dds.compare_folder(study(tmp_path, (1.0,), text=text))
    assert {cell.null for cell in found.cells} == {None}
    assert found.verdict is Verdict.PASS


def test_speed_with_its_evidence_is_a_speed(tmp_path: Path) -> None:
    text = PROFILE.replace('"0.5 ns"', '{ value = "0.5 ns", kind = "assumed" }')
    found = dds.compare_folder(study(tmp_path, (1.0,), text=text))
    assert None not in {cell.null for cell in found.cells}


def test_more_cells_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = study(tmp_path, (1.0,))
    monkeypatch.setattr(dds, "MOST_CELLS", 8)
    assert len(dds.compare_folder(folder).cells) == 8
    monkeypatch.setattr(dds, "MOST_CELLS", 7)
    with pytest.raises(CompareError, match="have 8 secured cases in common, and 7 at most"):
        dds.compare_folder(folder)


def test_tables_begin_with_the_verdict(tmp_path: Path) -> None:
    tables = dds_comparison.tables(dds.compare_folder(study(tmp_path, (1.3, 1.2))))
    text = render(tables, Format.TABLE)
    assert text.startswith("FAIL: one way in 8 secured cells is predicted within 2")
    assert "nearer than the null model in" in text
    first = json.loads(render(tables, Format.JSON))
    assert "fail" in json.dumps(first)
    # The farthest cell comes first.
    errors = [abs(float(str(record["error"]))) for record in tables[1].records]
    assert errors == sorted(errors, reverse=True)


def test_halves_that_cannot_be_judged(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="no predicted half"):
        dds.compare_folder(tmp_path)
    folder = study(tmp_path / "plain", (1.0,))
    for half in ("predicted", "measured"):
        for file in (folder / half / "observations").glob("*00000006.parquet"):
            file.unlink()
    with pytest.raises(CompareError, match="no secured case of DDS in common"):
        dds.compare_folder(folder)


def test_a_prediction_made_after_the_measurement_is_told(tmp_path: Path) -> None:
    folder = study(tmp_path, (1.0,))
    assert dds.compare_folder(folder).warnings == []
    change_manifest(folder / "measured", started="2026-11-21T04:59:59Z")
    (warning,) = dds.compare_folder(folder).warnings
    assert "predicted after the measurement had begun" in warning


def test_judged_cells_are_not_calibrations() -> None:
    judged = tomllib.loads((ROOT / "studies" / "dds-held-out.toml").read_text())
    lengths = set(judged["vary"]["pattern.response_body"])
    assert not lengths & {*calibration.LENGTHS, *calibration.SECURED_LENGTHS}
    assert "stack" not in judged
    assert all("AES-256" not in stack for stack in judged["vary"]["stack"])
    # SROS2's, which a study has that names none.
    assert ("ENCRYPT", "ENCRYPT", "SIGN") not in calibration.GOVERNANCES
    for text in calibration.study_texts(10)[1:]:
        assert judged["pattern"]["path"] not in text


def lose(folder: Path, case_id: str, samples: int) -> None:
    """As many samples more of a measured case, which were lost."""
    file = folder / "measured" / "observations" / f"{case_id}.parquet"
    rows = pl.read_parquet(file)
    lost = pl.concat([rows.head(1)] * samples).with_columns(
        metric=pl.lit("connection.failed"), value=pl.lit(1.0), unit=pl.lit("1"),
        trial=pl.int_range(rows.height, rows.height + samples, dtype=pl.UInt64, eager=True),
    )  # fmt: skip
    pl.concat([rows, lost]).write_parquet(file)
    cells = json.loads((folder / "measured" / "manifest.json").read_text())["cells"]
    cells[case_id]["trials"] = cells[case_id]["parts"][0]["trials"] = rows.height + samples
    change_manifest(folder / "measured", cells=cells)


@pytest.mark.parametrize(
    ("factors", "verdict"), [((1.03, 0.96), Verdict.PASS), ((1.25, 0.8), Verdict.FAIL)]
)
def test_a_cell_that_lost_more_than_half_leaves_a_verdict(
    tmp_path: Path, factors: tuple[float, ...], verdict: Verdict
) -> None:
    folder = study(tmp_path, factors)
    lose(folder, DdsCell(sample=1_000).case_id, 801)
    lose(folder, DdsCell(sample=2_000).case_id, 790)
    lose(folder, DdsCell(sample=3_000, crypto="none").case_id, 900)
    found = dds.compare_folder(folder)
    assert found.verdict is verdict
    assert [cell.samples for cell in found.cells] == [1_590, *[800] * 6]
    assert [cell.null is None for cell in found.cells] == [False, True, *[False] * 5]
    assert found.null is not None and np.isfinite(found.null.value)
    (said,) = [one for one in found.warnings if "arrived" in one]
    assert said.endswith(": 800 of 1,601 samples arrived; it is not judged")


def test_cells_that_all_lost_more_than_half_are_no_comparison(tmp_path: Path) -> None:
    folder = study(tmp_path, (1.0,), lengths=2)
    for sample in (1_000, 2_000):
        lose(folder, DdsCell(sample=sample).case_id, 801)
    with pytest.raises(CompareError, match="no secured case got half of its samples"):
        dds.compare_folder(folder)


def test_columns_of_one_choice_are_drawn_together() -> None:
    losses = [("none", None, 64), ("random", 0.01, 64), ("none", None, 700), ("random", 0.01, 700)]
    cases = [
        {"loss_model": model, "loss_mean": mean, "response_body": size, "rtt": size * 2, "seed": 1}
        for model, mean, size in losses
    ]
    factors = dds._factors(cases)
    assert sorted(map(sorted, factors.values())) == [
        ["loss_mean", "loss_model"],
        ["response_body", "rtt"],
    ]
    assert sorted(factors) == ["loss_mean+loss_model", "response_body+rtt"]


def test_weighted_median_is_the_median_of_as_many_copies() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(7, 400))
    weights = rng.integers(0, 4, size=values.shape).astype(np.float64)
    weights[0] += 1
    expected = [
        np.median(np.repeat(of, by.astype(int))) for of, by in zip(values.T, weights.T, strict=True)
    ]
    assert np.allclose(dds._weighted_medians(values, weights), expected)


def test_errors_that_a_length_shares_are_no_evidence_of_many() -> None:
    """Six ciphers at five lengths are not thirty independent cells."""

    def cell(cipher: int, length: int) -> dds.Cell:
        levels = {"cipher": (cipher,), "response_body": (length,)}
        factor = 1.3 if length == 0 else 1.02
        return dds.Cell(f"{cipher}-{length}", "", factor, 1.0, 1, None, levels)

    cells = [cell(cipher, length) for cipher in range(6) for length in range(5)]
    errors = np.array([cell.error for cell in cells])
    drawn = np.repeat(errors[:, None], dds.REPLICATES, axis=1)
    rng = np.random.default_rng(1)
    found = dds._estimate(errors, drawn, dds._weights(cells, rng))
    assert found.value == pytest.approx(0.02)
    assert found.interval.high == pytest.approx(0.3)
    # The same errors in cells that share nothing.
    alone = [replace(one, levels={"cell": one.case_id}) for one in cells]
    found = dds._estimate(errors, drawn, dds._weights(alone, rng))
    assert found.interval.high == pytest.approx(0.02)


def test_a_byte_s_time_is_a_number_or_the_middle_of_a_law() -> None:
    for text, expected in (
        ('"0.8 ns"', 0.8),
        ('{ value = "0.5 ns", kind = "assumed" }', 0.5),
        ('{ quantiles = "1 2.5 40", unit = "ns" }', 2.5),
        ('{ quantiles = [1, 2], unit = "us" }', 1_500.0),
        ('{ quantiles = [], unit = "ns" }', None),
        ('{ quantiles = [1, "x"], unit = "ns" }', None),
        ('{ quantiles = 3, unit = "ns" }', None),
        ('{ quantiles = [1], unit = "years" }', None),
        ("5", None),
    ):
        profile = f'[[primitive]]\nname = "aead.seal.AES-256-GCM"\nper_byte = {text}\n'
        found = dds._speeds(profile).get("aead.seal.AES-256-GCM")
        assert found == expected, text

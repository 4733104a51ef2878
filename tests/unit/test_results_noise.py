# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How sure the probabilities of an exact prediction are: what is read, and what statistics make
of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warifu.results import Distribution, ResultsDamaged
from warifu.results.noise import Noise, read_noise

NOISE = Noise((0.6, 1.0), (0.01, 0.001), 2.0)
ENTRY = {"share_errors": [0.01, 0.001], "mean_error": 2.0}
WHOLE = {"version": 1, "band_ends": [0.6, 1.0], "cases": {"c": {"https.establishment": ENTRY}}}


def exact(noise: Noise | None = None) -> Distribution:
    values = np.arange(1.0, 1_001.0)
    return Distribution.of(values, np.full(1_000, 1e-3), exact=True, noise=noise)


def read(tmp_path: Path, value: object) -> Mapping[str, Mapping[str, Noise]]:
    content = json.dumps(value).encode()
    (tmp_path / "noise.json").write_bytes(content)
    sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return read_noise(tmp_path, {"files": {"noise.json": sealed}})


def test_each_share_has_the_error_of_its_band() -> None:
    shares = (0.0, 0.59, 0.6, 0.99, 1.0)
    assert [NOISE.share_error(share) for share in shares] == [0.01, 0.01, 0.001, 0.001, 0.001]


def test_ends_are_as_far_as_the_noise_reaches() -> None:
    of = exact(noise=NOISE)
    # 1.96 standard errors of the rank are 19.6 of a thousand values.
    assert of.quantile_ends(0.5) == pytest.approx((481.0, 520.0), abs=1.0)
    assert of.quantile_ends(0.9) == pytest.approx((898.0, 902.0), abs=1.0)
    assert of.share_ends(0.5) == pytest.approx((0.4804, 0.5196))
    assert of.share_ends(0.9999) == (pytest.approx(0.9999 - 0.00196), 1.0)
    assert of.mean_ends() == pytest.approx((500.5 - 3.92, 500.5 + 3.92))
    assert exact().quantile_ends(0.5) == (500.0, 500.0)


def test_noise_comes_on_top_of_what_was_left_out() -> None:
    less = Distribution.of(
        np.arange(1.0, 991.0), np.full(990, 1e-3), exact=True, residual=0.01, noise=NOISE
    )
    assert less.quantile_ends(0.5) == pytest.approx((471.0, 520.0), abs=1.0)
    # The last is among what was left out.
    assert less.quantile_ends(0.99)[1] == np.inf
    low, high = less.mean_ends()
    assert low < 495.5 * 0.99 and high == np.inf
    assert less.mean_ends(2_000.0)[1] == pytest.approx((495.5 + 3.92) * 0.99 + 20.0)
    assert less.coarse(10).quantile_ends(0.5)[0] < less.quantile(0.5)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == {"c": {"https.establishment": NOISE}}
    assert read_noise(tmp_path, {"files": {}}) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version is 2: expected 1"),
        ({"version": True}, "version is True: expected 1"),
        ({"band_ends": [0.6, 0.5, 1.0]}, "band_ends do not ascend to 1"),
        ({"band_ends": [0.6, 0.9]}, "band_ends do not ascend to 1"),
        ({"band_ends": [0.6, "1"]}, "band_ends has 1: expected numbers from 0 to 1"),
        ({"cases": []}, "has no version, band_ends or cases"),
        ({"cases": {}}, "has no case"),
        ({"cases": {"c": []}}, "cases.c is no table"),
        ({"cases": {"c": {"m": {"share_errors": [0.1, 0.1]}}}}, "has no share_errors or mean"),
        ({"cases": {"c": {"m": ENTRY | {"share_errors": [0.1]}}}}, "has 1 entries: expected 2"),
        ({"cases": {"c": {"m": ENTRY | {"share_errors": [0.1, -1]}}}}, "expected numbers from 0"),
        ({"cases": {"c": {"m": ENTRY | {"mean_error": None}}}}, "has None: expected numbers"),
        ({"cases": {"c": {"m": ENTRY | {"mean_error": 10**400}}}}, "expected numbers from 0"),
        ({"cases": {"c": {"m": ENTRY | {"mean_error": math.nan}}}}, "expected numbers from 0"),
        ({"cases": {"c": {"m": ENTRY | {"mean_error": math.inf}}}}, "expected numbers from 0"),
    ],
)
def test_what_none_wrote_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ResultsDamaged, match=r"noise\.json: ") as refused:
        read(tmp_path, WHOLE | change)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_of_nothing_is_none_that_was_written(tmp_path: Path) -> None:
    with pytest.raises(ResultsDamaged, match="has no version, band_ends or cases"):
        read(tmp_path, None)

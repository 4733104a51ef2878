# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Entropy of memory cells at power-up, on images whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from warifu.entropy import estimate_cells

FAST = ["most common value", "collision", "Markov", "compression", "t-tuple"]


def captures(count: int, cells: int, noisy: float, seed: int = 1) -> list[bytes]:
    """A chip whose pattern is random, and where each bit of a capture is its opposite with a
    probability of `noisy`."""
    chance = np.random.default_rng(seed)
    pattern = chance.integers(0, 2, cells, dtype=np.uint8)
    return [
        np.packbits(pattern ^ (chance.random(cells) < noisy).astype(np.uint8)).tobytes()
        for _ in range(count)
    ]


def test_noise_is_the_entropy_and_the_chips_pattern_is_none() -> None:
    found = estimate_cells(captures(100, 4096, 0.03), FAST)
    assert found.ones == pytest.approx(0.5, abs=0.03)
    assert found.changing == pytest.approx(0.03, rel=0.05)
    assert found.unstable == pytest.approx(1 - 0.97**100, rel=0.02)
    # -log2(0.97) is 0.0439; the estimators' confidence takes some of it, compression most.
    assert found.by_cells["most common value"] == pytest.approx(0.0439, rel=0.1)
    assert found.average == pytest.approx(0.0439, rel=0.1)
    assert 0.01 < found.bits <= 0.0439
    assert found.millibits == int(found.bits * 1000)


def test_memory_that_never_changes_has_no_entropy() -> None:
    found = estimate_cells(captures(20, 8192, 0.0))
    assert (found.bits, found.millibits, found.changing) == (0.0, 0, 0.0)


def test_cells_that_change_together_are_judged_by_the_least_estimate() -> None:
    # Each capture is the pattern or its complement: a bit for a whole capture.
    chance = np.random.default_rng(2)
    pattern = chance.integers(0, 256, 512, dtype=np.uint8)
    images = [(pattern ^ (255 if chance.random() < 0.5 else 0)).tobytes() for _ in range(60)]
    found = estimate_cells(images, FAST)
    assert found.average > 0.5
    assert found.bits < 0.01


def test_progress_counts_the_estimates_of_both_orders() -> None:
    said: list[tuple[int, int, str]] = []
    estimate_cells(captures(20, 1024, 0.1), FAST[:2], lambda *step: said.append(step))
    assert said == [
        (0, 4, "most common value, in the order of cells"),
        (1, 4, "collision, in the order of cells"),
        (2, 4, "most common value, in the order of captures"),
        (3, 4, "collision, in the order of captures"),
        (4, 4, ""),
    ]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([b"\0" * 8] * 9, "at least 10"),
        ([b"\0" * 8] * 9 + [b"\0" * 9], "8 and 9 bytes"),
        ([b""] * 10, "0 bytes"),
    ],
)
def test_captures_that_do_not_fit_are_refused(images: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate_cells(images)

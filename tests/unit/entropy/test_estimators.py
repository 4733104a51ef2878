# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The estimators of SP 800-90B against its examples, its reference implementation, and laws."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.paths import ROOT
from warifu.entropy import assess, bounds, estimators, predictors
from warifu.entropy.repeats import Repeats

LINES = [
    line.split(" = ")
    for line in (ROOT / "vectors" / "sp800-90b" / "vectors.txt").read_text().splitlines()
    if not line.startswith("#")
]
EXAMPLES = [(call.split()[1:], bits) for call, bits in LINES if call.startswith("example")]
RUNS = [(call.split()[1:], float(bits)) for call, bits in LINES if call.startswith("run")]


def samples(text: str) -> estimators.Samples:
    return np.array([int(digit) for digit in text], dtype=np.int64)


@pytest.mark.parametrize(("call", "bits"), EXAMPLES)
def test_worked_examples_of_the_standard(call: list[str], bits: str) -> None:
    name, *parameters, text = call
    given = samples(text)
    of: dict[str, Callable[[], float]] = {
        "most-common-value": lambda: estimators.most_common_value(given),
        "collision": lambda: estimators.collision(given),
        "markov": lambda: estimators.markov(given),
        "compression": lambda: estimators.compression(given, int(parameters[0])),
        "t-tuple": lambda: estimators.t_tuple(given, int(parameters[0])),
        "longest-repeated-substring": lambda: estimators.longest_repeated_substring(
            given, int(parameters[0])
        ),
        "multi-mcw": lambda: predictors.multi_mcw(
            given, [int(one) for one in parameters[0].split(",")]
        ),
        "lag": lambda: predictors.lag(given, int(parameters[0])),
        "multi-mmc": lambda: predictors.multi_mmc(given, int(parameters[0])),
        "lz78y": lambda: predictors.lz78y(given, int(parameters[0])),
    }
    # The standard rounds between its steps.
    digits = len(bits.split(".")[1])
    assert of[name]() == pytest.approx(float(bits), abs=2 * 10.0**-digits)


@pytest.mark.parametrize(("call", "bits"), RUNS)
def test_bits_follow_from_counts_as_in_the_reference_implementation(
    call: list[str], bits: float
) -> None:
    name, *numbers = call
    values = [float(one) for one in numbers]
    of: dict[str, Callable[[], float]] = {
        "upper": lambda: bounds.bits(bounds.upper(values[0], int(values[1]))),
        "collision": lambda: bounds.collision(values[0]),
        "markov": lambda: bounds.markov(
            (values[0], values[1]), ((values[2], values[3]), (values[4], values[5]))
        ),
        "compression": lambda: bounds.compression(values[0], int(values[1]), 1000),
        "prediction": lambda: bounds.prediction(*(int(one) for one in values)),
    }
    assert of[name]() == pytest.approx(bits, rel=1e-7)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=2, max_size=60))
def test_repeats_are_those_of_counting_each_tuple(values: list[int]) -> None:
    found = Repeats.of(np.array(values, dtype=np.int64))
    most, pairs = [], []
    for length in itertools.count(1):
        counts = collections.Counter(
            tuple(values[at : at + length]) for at in range(len(values) - length + 1)
        )
        if length > 1 and max(counts.values(), default=0) < 2:
            break
        most.append(max(counts.values()))
        pairs.append(sum(math.comb(count, 2) for count in counts.values()))
    assert found.most.tolist() == most
    assert found.pairs.tolist() == pairs


def biased(length: int, share: float, seed: int) -> estimators.Samples:
    return (np.random.default_rng(seed).random(length) < share).astype(np.int64)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.03])
def test_independent_bits_are_never_overestimated_by_much(share: float) -> None:
    # All but two estimate a lower bound; those of LRS and of distances may be above by chance.
    true = -math.log2(max(share, 1 - share))
    found = assess(biased(60_000, share, 3))
    assert min(found.values()) <= true
    assert found["most common value"] == pytest.approx(true, rel=0.1)
    assert found["Markov"] == pytest.approx(true, rel=0.1)
    for name in ("MultiMCW prediction", "MultiMMC prediction", "LZ78Y prediction"):
        assert found[name] <= true * 1.02, name
    if share == 0.03:
        assert found["most common value"] < 0.05


def test_period_is_found_by_those_that_look_for_it() -> None:
    period = biased(100, 0.5, 5)
    found = assess(np.tile(period, 200))
    assert found["most common value"] > 0.8
    for name in ("lag prediction", "MultiMMC prediction", "t-tuple"):
        assert found[name] < 0.02, name


def test_copies_of_the_bit_before_are_found() -> None:
    # Half of the bits repeat the one before: 0.415 bits by the best guess, which is that bit.
    chance = np.random.default_rng(9)
    values = [0]
    for copy, new in zip(chance.random(40_000) < 0.5, chance.integers(0, 2, 40_000), strict=True):
        values.append(values[-1] if copy else int(new))
    found = assess(np.array(values))
    true = -math.log2(0.75)
    for name in ("Markov", "lag prediction", "MultiMMC prediction", "LZ78Y prediction"):
        assert found[name] == pytest.approx(true, rel=0.05), name
    assert found["most common value"] > 0.9


@pytest.mark.parametrize("value", [0, 1])
def test_constant_bits_have_no_entropy(value: int) -> None:
    found = assess(np.full(20_000, value, dtype=np.int64))
    assert min(found.values()) == 0.0
    assert found["most common value"] == 0.0

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The predictors of SP 800-90B, computed for whole arrays, against the standard's steps one sample
at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warifu.entropy import bounds, predictors


def bits(hits: list[bool], symbols: int) -> float:
    longest = run = 0
    for hit in hits:
        run = run + 1 if hit else 0
        longest = max(longest, run)
    return bounds.prediction(sum(hits), longest, len(hits), symbols)


def contest(values: list[int], first: int, guesses: Callable[[int], list[int | None]]) -> float:
    """Sections 6.3.7 to 6.3.9, the steps that they have in common: the scoreboard."""
    scores, winner, hits = [], 0, []
    for at in range(first, len(values)):
        said = guesses(at)
        scores = scores or [0] * len(said)
        hits.append(said[winner] == values[at])
        for which, guess in enumerate(said):
            if guess == values[at]:
                scores[which] += 1
                if scores[which] >= scores[winner]:
                    winner = which
    return bits(hits, len(set(values)))


def multi_mcw(values: list[int], windows: Sequence[int]) -> float:
    def guess(at: int, window: int) -> int | None:
        if at < window:
            return None
        counts = Counter(values[at - window : at])
        equal = [one for one, count in counts.items() if count == max(counts.values())]
        return max(equal, key=lambda one: max(i for i in range(at) if values[i] == one))

    return contest(values, windows[0], lambda at: [guess(at, window) for window in windows])


def lag(values: list[int], lags: int) -> float:
    def guesses(at: int) -> list[int | None]:
        return [values[at - of] if of <= at else None for of in range(1, lags + 1)]

    return contest(values, 1, guesses)


def likeliest(counts: Counter[int]) -> int:
    return max(counts, key=lambda one: (counts[one], one))


def multi_mmc(values: list[int], depth: int, most: int) -> float:
    models: list[dict[tuple[int, ...], Counter[int]]] = [{} for _ in range(depth)]

    def guesses(at: int) -> list[int | None]:
        said: list[int | None] = []
        for of, model in enumerate(models, start=1):
            past = tuple(values[at - 1 - of : at - 1])
            if of < at and (past in model or len(model) < most):
                model.setdefault(past, Counter())[values[at - 1]] += 1
            known = model.get(tuple(values[at - of : at])) if of <= at else None
            said.append(likeliest(known) if known else None)
        return said

    return contest(values, 2, guesses)


def lz78y(values: list[int], longest: int, most: int) -> float:
    model: dict[tuple[int, ...], Counter[int]] = {}
    hits = []
    for at in range(longest + 1, len(values)):
        for of in range(longest, 0, -1):
            past = tuple(values[at - 1 - of : at - 1])
            if past in model or len(model) < most:
                model.setdefault(past, Counter())[values[at - 1]] += 1
        guess, seen = None, 0
        for of in range(longest, 0, -1):
            known = model.get(tuple(values[at - of : at]), Counter())
            if known and known[likeliest(known)] > seen:
                guess = likeliest(known)
                seen = known[guess]
        hits.append(guess == values[at])
    return bits(hits, len(set(values)))


@st.composite
def sequences(draw: st.DrawFn) -> list[int]:
    """Short ones of few symbols, some of them periodic, some mostly of one symbol."""
    symbols = draw(st.sampled_from([[0], [0, 1], [0, 3], [0, 1, 2], [1, 2, 5, 7]]))
    values = draw(st.lists(st.sampled_from(symbols), min_size=20, max_size=150))
    kind = draw(st.sampled_from(["any", "periodic", "mostly one"]))
    if kind == "periodic":
        period = draw(st.integers(1, 12))
        return [values[at % period] for at in range(len(values))]
    if kind == "mostly one":
        return [value if at % 7 == 0 else symbols[0] for at, value in enumerate(values)]
    return values


@settings(max_examples=300, deadline=None)
@given(
    values=sequences(),
    windows=st.lists(st.integers(1, 15), min_size=1, max_size=4, unique=True).map(sorted),
    of=st.integers(1, 9),
    most=st.integers(1, 40),
)
def test_whole_arrays_give_what_steps_give(
    values: list[int], windows: list[int], of: int, most: int
) -> None:
    samples = np.array(values, dtype=np.int64)
    assert predictors.multi_mcw(samples, windows) == multi_mcw(values, windows)
    assert predictors.lag(samples, of) == lag(values, of)
    assert predictors.multi_mmc(samples, of, most) == multi_mmc(values, of, most)
    assert predictors.lz78y(samples, of, most) == lz78y(values, of, most)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_scoreboard_goes_on_from_block_to_block(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = (np.random.default_rng(7).random(3000) < share).astype(np.int64)
    of = (predictors.multi_mcw, predictors.lag, predictors.multi_mmc)
    whole = [each(samples) for each in of]
    monkeypatch.setattr(predictors, "_BLOCK", 37)
    assert [each(samples) for each in of] == whole

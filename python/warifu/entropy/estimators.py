# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The estimators of NIST SP 800-90B section 6.3 for data that may depend on what came before.

Each takes samples from 0 on as integers, and gives bits of min-entropy a sample. Collision, Markov
and compression are for bits alone, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from warifu.entropy import bounds, predictors
from warifu.entropy.repeats import Repeats

Samples = NDArray[np.int64]

#: A tuple that occurs less often says nothing (section 6.3.5).
OFTEN = 35
#: Of the deviation of the logarithms of 6-bit blocks (section 6.3.4).
_CORRECTION = 0.5907


def most_common_value(samples: Samples) -> float:
    """Section 6.3.1."""
    count = int(np.bincount(samples).max())
    return bounds.bits(bounds.upper(count / len(samples), len(samples)))


def collision(samples: Samples) -> float:
    """Section 6.3.2."""
    values = samples.tolist()
    twos = threes = at = 0
    while at + 1 < len(values):
        if values[at] == values[at + 1]:
            twos += 1
            at += 2
        elif at + 2 < len(values):
            threes += 1
            at += 3
        else:
            break
    count = twos + threes
    if count < 2:
        raise ValueError(f"{len(samples)} samples: too few to estimate from")
    mean = (2 * twos + 3 * threes) / count
    deviation = float(np.sqrt(max(0.0, (4 * twos + 9 * threes - count * mean**2) / (count - 1))))
    return bounds.collision(bounds.lower(mean, deviation, count))


def markov(samples: Samples) -> float:
    """Section 6.3.3."""
    ones = float(samples.mean())
    before, after = samples[:-1], samples[1:]
    rows = []
    for value in (0, 1):
        there = after[before == value]
        one = float(there.mean()) if len(there) else 0.0
        rows.append((1.0 - one if len(there) else 0.0, one))
    return bounds.markov((1.0 - ones, ones), tuple(rows))


def compression(samples: Samples, learned: int = 1000) -> float:
    """Section 6.3.4."""
    blocks = len(samples) // 6
    if blocks <= learned + 1:
        return 1.0
    words = samples[: 6 * blocks].reshape(blocks, 6) @ (1 << np.arange(5, -1, -1))
    last = [0] * 64
    distances = []
    for at, word in enumerate(words.tolist(), start=1):
        if at > learned:
            distances.append(at - last[word] if last[word] else at)
        last[word] = at
    logs = np.log2(np.array(distances, dtype=np.float64))
    count = len(logs)
    mean = float(logs.mean())
    spread = max(0.0, float((logs**2).sum()) / (count - 1) - mean**2)
    deviation = _CORRECTION * float(np.sqrt(spread))
    return bounds.compression(bounds.lower(mean, deviation, count), blocks, learned)


def t_tuple(samples: Samples, often: int = OFTEN) -> float:
    """Section 6.3.5."""
    return _t_tuple(Repeats.of(samples), often)


def longest_repeated_substring(samples: Samples, often: int = OFTEN) -> float:
    """Section 6.3.6."""
    return _longest_repeated_substring(Repeats.of(samples), often)


def _t_tuple(repeats: Repeats, often: int) -> float:
    most = repeats.most
    lengths = np.arange(1, len(most) + 1)
    counted = lengths[most >= often]
    if len(counted) == 0:
        return bounds.bits(bounds.upper(1 / repeats.samples, repeats.samples))
    shares = most[: len(counted)] / (repeats.samples - counted + 1)
    return bounds.bits(bounds.upper(float((shares ** (1 / counted)).max()), repeats.samples))


def _longest_repeated_substring(repeats: Repeats, often: int) -> float:
    rare = np.nonzero(repeats.most < often)[0]
    repeated = rare[repeats.pairs[rare] > 0]
    if len(repeated) == 0:
        return 1.0 if len(rare) == 0 else bounds.bits(1 / repeats.samples)
    lengths = (repeated + 1).astype(np.float64)
    places = repeats.samples - lengths + 1
    shares = repeats.pairs[repeated] / (places * (places - 1) / 2)
    return bounds.bits(bounds.upper(float((shares ** (1 / lengths)).max()), repeats.samples))


#: All of them, by the standard's names.
ESTIMATORS: dict[str, Callable[[Samples], float]] = {
    "most common value": most_common_value,
    "collision": collision,
    "Markov": markov,
    "compression": compression,
    "t-tuple": t_tuple,
    "longest repeated substring": longest_repeated_substring,
    "MultiMCW prediction": predictors.multi_mcw,
    "lag prediction": predictors.lag,
    "MultiMMC prediction": predictors.multi_mmc,
    "LZ78Y prediction": predictors.lz78y,
}


def assess(
    samples: Samples,
    names: Sequence[str] | None = None,
    begins: Callable[[str], None] = lambda _: None,
) -> dict[str, float]:
    """Bits a sample by each estimator (all by default) for a sequence of bits. `begins` is told the
    name of each before its turn."""
    repeats: Repeats | None = None
    found = {}
    for name in names or ESTIMATORS:
        begins(name)
        if name in ("t-tuple", "longest repeated substring"):
            repeats = repeats or Repeats.of(samples)
            of = _t_tuple if name == "t-tuple" else _longest_repeated_substring
            found[name] = of(repeats, OFTEN)
        else:
            found[name] = ESTIMATORS[name](samples)
    return found

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How much entropy a cell of a chip's memory has at power-up, from captures of one chip.

Most cells come up the same each time: that pattern differs from chip to chip and looks random, and
has no entropy for who has seen it. What counts is what changes between power-ups. So each capture
is taken as its difference from the value that each cell has most often, and the estimators of NIST
SP 800-90B judge these bits in the order of cells and in the order of captures (its restart tests,
section 3.1.4, look at both as well). The least estimate is the cells'.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warifu.entropy.estimators import ESTIMATORS, assess

#: Fewer captures do not show what a cell has most often.
LEAST_CAPTURES = 10
#: Samples that the standard asks for (section 3.1.1).
ASKED_SAMPLES = 1_000_000
#: Samples that the estimators look at, in each order: more take minutes, and memory in proportion.
USED_SAMPLES = 2 * ASKED_SAMPLES


@dataclass(frozen=True)
class Cells:
    """What captures of one chip show."""

    captures: int
    cells: int
    ones: float
    """The share of cells that come up as 1."""
    changing: float
    """The share of bits that differ from what their cell has most often."""
    unstable: float
    """The share of cells that changed at all."""
    average: float
    """The mean over cells of each one's min-entropy by its own frequency: the figure that papers
    on memory give. It takes cells to be independent."""
    by_cells: dict[str, float]
    """Estimates for the bits in the order of cells, capture after capture."""
    by_captures: dict[str, float]
    """Estimates for the bits in the order of captures, cell after cell."""

    @property
    def bits(self) -> float:
        """Min-entropy a cell: the least of all estimates."""
        return min(self.average, *self.by_cells.values(), *self.by_captures.values())

    @property
    def millibits(self) -> int:
        """The parameter `millibits_per_cell` of munacl_random_source, rounded down."""
        return int(self.bits * 1000)


def estimate_cells(
    captures: Sequence[bytes],
    names: Sequence[str] | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Cells:
    """Estimates from captures of the same memory of one chip, by all estimators or those of
    `names`. `progress` is told how many estimates are done, of how many, and which one comes.
    Raises ValueError for too few captures, and for ones that differ in length."""
    if len(captures) < LEAST_CAPTURES:
        raise ValueError(
            f"{len(captures)} captures: at least {LEAST_CAPTURES} of one chip are needed"
        )
    lengths = {len(one) for one in captures}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"captures of {' and '.join(map(str, sorted(lengths)))} bytes: expected the same memory"
        )
    bits = np.unpackbits(
        np.frombuffer(b"".join(captures), dtype=np.uint8).reshape(len(captures), -1), axis=1
    )
    ones = bits.sum(axis=0, dtype=np.int64)
    usual = (2 * ones >= len(captures)).astype(np.uint8)
    changes = bits ^ usual
    often = np.maximum(ones, len(captures) - ones) / len(captures)
    wanted = list(names or ESTIMATORS)
    # Of the cells that are looked at in the order of captures, and no others.
    looked_at = changes[:, : -(-USED_SAMPLES // len(captures))].T
    orders: dict[str, dict[str, float]] = {}
    for order, array in (("cells", changes), ("captures", looked_at)):
        sequence = array.reshape(-1)[:USED_SAMPLES].astype(np.int64)
        steps = itertools.count(len(orders) * len(wanted))

        def begins(name: str, order: str = order, steps: Iterator[int] = steps) -> None:
            progress(next(steps), 2 * len(wanted), f"{name}, in the order of {order}")

        orders[order] = (
            assess(sequence, wanted, begins) if sequence.any() else dict.fromkeys(wanted, 0.0)
        )
    progress(2 * len(wanted), 2 * len(wanted), "")
    return Cells(
        len(captures),
        bits.shape[1],
        float(bits.mean()),
        float(changes.mean()),
        float((often < 1).mean()),
        float(-np.log2(often).mean()),
        orders["cells"],
        orders["captures"],
    )

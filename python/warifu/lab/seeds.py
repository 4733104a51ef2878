# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Seeds and the order of a measurement, from the study's seed alone."""

from __future__ import annotations

import hashlib
import random

from warifu.lab.case import Cell, parts_of, trials_a_part
from warifu.lab.store import Part


def part_seed(study_seed: int, case_id: str, first_trial: int) -> int:
    """The seed of a part's link and pauses, 63 bits; other cases and parts do not change it.

    63, because the Parquet readers of some tools know signed integers alone.
    """
    text = f"warifu lab {study_seed} {case_id} {first_trial}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def cut(study_seed: int, cell: Cell, trials: int, most: int) -> list[Part]:
    """A cell's parts in their order."""
    parts = []
    first = 0
    for count in parts_of(trials, trials_a_part(cell, most)):
        seed = part_seed(study_seed, cell.case_id, first)
        parts.append(Part(cell.case_id, first, count, seed))
        first += count
    return parts


def interleave(study_seed: int, cells: list[list[Part]]) -> list[Part]:
    """All parts in rounds, one part of each cell a round, each round in an order of its own.

    So whatever drifts (temperature, a neighbour on the host) meets all cells alike.
    """
    chance = random.Random(study_seed)
    order: list[Part] = []
    for round_number in range(max(map(len, cells), default=0)):
        round_parts = [cell[round_number] for cell in cells if round_number < len(cell)]
        chance.shuffle(round_parts)
        order += round_parts
    return order

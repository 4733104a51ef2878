# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What clients of all protocols have in common: their pauses, and the columns that they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SPREAD = 0.5
"""Pauses between connections vary by this share of their mean, evenly: connections over a link
with delay would otherwise meet in the same phase again and again."""


@dataclass(frozen=True)
class Trials:
    """Columns of equal length, one entry a trial: those of a driver (`warifu.lab.driver`), in the
    units of their metrics, and `failed` (bool). A failed trial's other entries are 0; an entry is
    None where the trial has no value of its own."""

    columns: dict[str, list[Any]]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading results folders: what comparing and reporting know of the world."""

from warifu.results.boards import OnBoards
from warifu.results.distribution import Distribution, Floats
from warifu.results.folder import (
    FAILED,
    KINDS,
    Results,
    Setting,
    duration,
    each_part,
    halves,
    interruptions,
    labels,
    weakest,
)
from warifu.results.manifest import (
    MEASURED,
    PREDICTED,
    ResultsDamaged,
    ResultsError,
    figures_of,
    is_assumed,
    read_manifest,
    what_of,
)
from warifu.results.timelines import Timeline, Timelines, read_timelines

__all__ = [
    "FAILED",
    "KINDS",
    "MEASURED",
    "PREDICTED",
    "Distribution",
    "Floats",
    "OnBoards",
    "Results",
    "ResultsDamaged",
    "ResultsError",
    "Setting",
    "Timeline",
    "Timelines",
    "duration",
    "each_part",
    "figures_of",
    "halves",
    "interruptions",
    "is_assumed",
    "labels",
    "read_manifest",
    "read_timelines",
    "weakest",
    "what_of",
]

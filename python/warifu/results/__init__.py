# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading results folders: what comparing and reporting know of the world."""

from warifu.results.distribution import Distribution
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
    read_manifest,
)

__all__ = [
    "FAILED",
    "KINDS",
    "MEASURED",
    "PREDICTED",
    "Distribution",
    "Results",
    "ResultsDamaged",
    "ResultsError",
    "Setting",
    "duration",
    "each_part",
    "figures_of",
    "halves",
    "interruptions",
    "labels",
    "read_manifest",
    "weakest",
]

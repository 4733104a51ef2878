# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading results folders: what comparing and reporting know of the world."""

from warifu.results.distribution import Distribution
from warifu.results.folder import (
    FAILED,
    KINDS,
    MEASURED,
    PREDICTED,
    Results,
    Setting,
    duration,
    each_part,
    halves,
    labels,
    weakest,
)
from warifu.results.manifest import (
    ResultsDamaged,
    ResultsError,
    case_of,
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
    "case_of",
    "duration",
    "each_part",
    "figures_of",
    "halves",
    "labels",
    "read_manifest",
    "weakest",
]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading results folders: what comparing and reporting know of the world."""

from warifu.results.distribution import Distribution
from warifu.results.folder import (
    ESTABLISHMENT,
    FAILED,
    KINDS,
    MEASURED,
    PHASES,
    PREDICTED,
    Results,
    ResultsError,
    duration,
    each_part,
    halves,
    labels,
    read_manifest,
    weakest,
)

__all__ = [
    "ESTABLISHMENT",
    "FAILED",
    "KINDS",
    "MEASURED",
    "PHASES",
    "PREDICTED",
    "Distribution",
    "Results",
    "ResultsError",
    "duration",
    "each_part",
    "halves",
    "labels",
    "read_manifest",
    "weakest",
]

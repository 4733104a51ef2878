# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lab: runs a study's cases on real programs over the emulated link."""

from warifu.lab.card import StandIn
from warifu.lab.cell import Settings
from warifu.lab.drivers import why_not_measurable
from warifu.lab.errors import LabError, LabUnavailable, ResultsMixed, RunRejected
from warifu.lab.measure import Progress, Summary, measure
from warifu.lab.workplace import Leftover, leftovers, sweep

__all__ = [
    "LabError",
    "LabUnavailable",
    "Leftover",
    "Progress",
    "ResultsMixed",
    "RunRejected",
    "Settings",
    "StandIn",
    "Summary",
    "leftovers",
    "measure",
    "sweep",
    "why_not_measurable",
]

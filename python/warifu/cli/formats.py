# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The values of flags, listed here so that `--help` need not load their modules."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """As in `warifu.report.table`."""

    TABLE = "table"
    MD = "md"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"


class Plan(StrEnum):
    """As in `warifu.calibrate.host`."""

    QUICK = "quick"
    DEFAULT = "default"
    THOROUGH = "thorough"

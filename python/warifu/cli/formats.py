# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The formats of tables, told here so that `--help` need not load what prints them."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """As in `warifu.report.table`."""

    TABLE = "table"
    MD = "md"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"
